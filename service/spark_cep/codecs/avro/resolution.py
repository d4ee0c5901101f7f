"""Can records of one schema be read with another? Avro's resolution rules, as a list of reasons.

The rules are those of the Avro Java library, which decodes the events: aliases of the reader apply
to the writer first; a record may have any name, but in a union the reader's branch is chosen by
full name, then by structure; an enum or a fixed needs the reader's name, namespace aside; numbers
widen; string and bytes change places. Beyond them, two timestamps of different units and two
decimals of different scales are refused: Java reads them without complaint, and wrongly. Where an
alias is also the name of another field, Java's answer depends on the rest of the schema, and this
one may refuse what Java would read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, children, kind
from spark_cep.errors import SchemaError

#: What a writer's primitive may be read as.
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_UNITS = frozenset({"date", "decimal", "duration"})
#: Pairs of types that are compared for two schemas: records in unions in records can be paired in
#: more ways than anyone waits for.
_MOST_COMPARED = 500_000


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a writer's records cannot be read. ``always`` is false where only records
    with certain content are concerned (a branch, a symbol, a non-empty array)."""

    path: str
    message: str
    always: bool = True

    def __str__(self) -> str:
        some = "" if self.always else " (in some records)"
        return f"at {self.path}: {self.message}{some}" if self.path else f"{self.message}{some}"


def resolves(writer: AvroSchema, reader: AvroSchema) -> list[str]:
    """Readable reasons why records of ``writer`` cannot be read with ``reader``; none: they can."""
    return [str(problem) for problem in incompatibilities(writer, reader)]


def incompatibilities(writer: AvroSchema, reader: AvroSchema) -> list[Incompatibility]:
    """Return the incompatibilities as values, in the order of the reader's fields."""
    return list(dict.fromkeys(Resolution(writer, reader).check(writer.root, reader.root, "")))


class Resolution:
    """The rules between two schemas; ``_open`` holds the pairs of records being compared, for
    recursion."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema) -> None:
        self._writer = writer
        self._reader = reader
        self._open: set[tuple[str, str]] = set()
        self._compared = 0
        #: By the names of two records and the pairs that are open, whether their structure fits.
        self._fitting: dict[tuple[str, str, frozenset[tuple[str, str]]], bool] = {}
        self._equal = _without_aliases(writer.json) == _without_aliases(reader.json)
        self._renamed = _twice(
            {
                alias: name
                for name, definition in reader.named.items()
                for alias in definition.get("aliases", ())
                if not self._equal
            }
        )

    def check(self, writer: Node, reader: Node, path: str) -> Iterator[Incompatibility]:
        """Why values of ``writer`` cannot be read as ``reader``."""
        self._compared += 1
        if self._compared > _MOST_COMPARED:
            raise SchemaError(
                f"{self._writer.origin}: its records can be paired with those of"
                f" {self._reader.origin} in too many ways to be compared"
            )
        w, r = self._writer.resolve(writer), self._reader.resolve(reader)
        if isinstance(w, list) and isinstance(r, list) and self.equivalent(w, r):
            for pair in zip(w, r, strict=True):
                yield from self.check(*pair, path)
        elif isinstance(w, list):
            yield from self._writer_union(w, reader, path)
        elif isinstance(r, list):
            branch = self.branch(writer, r)
            if branch is None:
                yield Incompatibility(
                    path, f"the writer's {_name(w)} is none of the reader's {_name(r)}"
                )
            else:
                yield from self.check(writer, branch, path)
        elif kind(w) == kind(r):
            yield from self._same_type(w, r, path)
        elif kind(r) not in PROMOTIONS.get(kind(w), ()):
            yield Incompatibility(path, f"the writer has {_name(w)}, the reader {_name(r)}")

    def _writer_union(
        self, writer: list[Any], reader: Node, path: str
    ) -> Iterator[Incompatibility]:
        found = [list(self.check(branch, reader, path)) for branch in writer]
        none_reads = all(any(problem.always for problem in problems) for problems in found)
        for problems in found:
            for problem in problems:
                yield Incompatibility(problem.path, problem.message, none_reads and problem.always)

    def branch(self, writer: Node, branches: list[Node]) -> Node | None:
        """The branch that Java takes: same type and name, else a record of fitting structure,
        else the first that the writer's type widens to."""
        w = self._writer.resolve(writer)
        structural: Node | None = None
        for branch in branches:
            b = self._reader.resolve(branch)
            if kind(b) != kind(w):
                continue
            if not isinstance(w, dict) or not isinstance(b, dict) or "name" not in w:
                return branch
            if self._full_name(w) == b["name"]:
                return branch
            if kind(w) == "record" and self._fits(w, b):
                same = _short(self._full_name(w)) == _short(b["name"])
                structural = branch if structural is None or same else structural
        if structural is not None:
            return structural
        widened = PROMOTIONS.get(kind(w), ())
        return next((b for b in branches if kind(self._reader.resolve(b)) in widened), None)

    def _fits(self, w: dict[str, Any], r: dict[str, Any]) -> bool:
        """Return whether some values of a record can be read as another one, names aside. The
        answer is kept: each union inside would else be gone through twice as often as the one
        around it."""
        key = w["name"], r["name"], frozenset(self._open)
        if key not in self._fitting:
            # All of it, or the pair stays open.
            problems = list(self._record(w, r, ""))
            self._fitting[key] = not any(problem.always for problem in problems)
        return self._fitting[key]

    def equivalent(self, writer: list[Any], reader: list[Any]) -> bool:
        """Return whether two unions are the same but for namespaces: then Java goes by position."""
        return self._equivalent(writer, reader, set())

    def _equivalent(self, writer: Node, reader: Node, seen: set[tuple[str, str]]) -> bool:
        w, r = self._writer.resolve(writer), self._reader.resolve(reader)
        if kind(w) != kind(r):
            return False
        if isinstance(w, dict) and isinstance(r, dict) and "name" in w:
            pair = (w["name"], r["name"])
            if pair in seen:
                return True
            seen.add(pair)
            if _short(self._full_name(w)) != _short(r["name"]):
                return False
            if w.get("size") != r.get("size") or w.get("symbols") != r.get("symbols"):
                return False
            renames = self._renames(w, r)
            names = [renames.get(f["name"], f["name"]) for f in w.get("fields", ())]
            if names != [f["name"] for f in r.get("fields", ())]:
                return False
        below = children(w), children(r)
        return len(below[0]) == len(below[1]) and all(
            self._equivalent(*pair, seen) for pair in zip(*below, strict=True)
        )

    def _same_type(self, w: Node, r: Node, path: str) -> Iterator[Incompatibility]:
        if not isinstance(w, dict) or not isinstance(r, dict):
            return
        match w["type"]:
            case "array":
                for problem in self.check(w["items"], r["items"], f"{path}[]"):
                    yield Incompatibility(problem.path, problem.message, always=False)
            case "map":
                for problem in self.check(w["values"], r["values"], f"{path}{{}}"):
                    yield Incompatibility(problem.path, problem.message, always=False)
            case "record":
                yield from self._record(w, r, path)
            case "enum":
                yield from self._enum(w, r, path)
            case "fixed":
                yield from self._named(w, r, path)
                if w["size"] != r["size"]:
                    yield Incompatibility(
                        path, f"the writer has {w['size']} bytes, the reader {r['size']}"
                    )
        yield from _logical(w, r, path)

    def _record(self, w: dict[str, Any], r: dict[str, Any], path: str) -> Iterator[Incompatibility]:
        pair = (w["name"], r["name"])
        if pair in self._open:
            return
        self._open.add(pair)
        written = self.fields(w, r)
        for field in r["fields"]:
            below = f"{path}.{field['name']}" if path else field["name"]
            sources = written.get(field["name"], [])
            if len(sources) > 1:
                names = ", ".join(source["name"] for source in sources)
                yield Incompatibility(below, f"the writer has the field and its alias: {names}")
            elif sources:
                yield from self.check(sources[0]["type"], field["type"], below)
            elif "default" not in field:
                yield Incompatibility(
                    below, "the writer does not have the field and the reader has no default"
                )
        self._open.discard(pair)

    def fields(self, w: dict[str, Any], r: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The writer's fields by the name that the reader knows."""
        renames = self._renames(w, r)
        written: dict[str, list[dict[str, Any]]] = {}
        for field in w["fields"]:
            written.setdefault(renames.get(field["name"], field["name"]), []).append(field)
        return written

    def _renames(self, w: dict[str, Any], r: dict[str, Any]) -> dict[str, str]:
        """The reader's aliases of fields; in Java they count only where the record's name fits."""
        if self._equal or self._full_name(w) != r["name"]:
            return {}
        return _twice({a: f["name"] for f in r.get("fields", ()) for a in f.get("aliases", ())})

    def _enum(self, w: dict[str, Any], r: dict[str, Any], path: str) -> Iterator[Incompatibility]:
        yield from self._named(w, r, path)
        unknown = [symbol for symbol in w["symbols"] if symbol not in r["symbols"]]
        if unknown and "default" not in r:
            yield Incompatibility(
                path,
                f"the reader's enum has no default and lacks {', '.join(unknown)}",
                always=len(unknown) == len(w["symbols"]),
            )

    def _named(self, w: dict[str, Any], r: dict[str, Any], path: str) -> Iterator[Incompatibility]:
        if _short(self._full_name(w)) != _short(r["name"]):
            yield Incompatibility(
                path,
                f"the writer's {w['type']} is {w['name']}, the reader's {r['name']} (no alias)",
            )

    def _full_name(self, definition: dict[str, Any]) -> str:
        name: str = definition["name"]
        return self._renamed.get(name, name)


def _logical(w: dict[str, Any], r: dict[str, Any], path: str) -> Iterator[Incompatibility]:
    written, read = w.get("logicalType"), r.get("logicalType")
    if written != read and _unit(written) and _unit(read):
        yield Incompatibility(path, f"the writer has {written}, the reader {read}")
    elif written == read == "decimal" and w.get("scale", 0) != r.get("scale", 0):
        yield Incompatibility(
            path,
            f"the writer's decimal has scale {w.get('scale', 0)}, the reader's {r.get('scale', 0)}",
        )


def _twice(renames: dict[str, str]) -> dict[str, str]:
    """Java applies aliases twice, so one that is also another's name leads on to the other."""
    return {old: renames.get(new, new) for old, new in renames.items()}


def _without_aliases(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_aliases(item) for item in node]
    if isinstance(node, dict):
        return {n: _without_aliases(value) for n, value in node.items() if n != "aliases"}
    return node


def _unit(logical: Any) -> bool:
    """Return whether a logical type gives its number a meaning that another one would change."""
    return isinstance(logical, str) and (
        logical in _UNITS or logical.startswith(("timestamp-", "local-timestamp-", "time-"))
    )


def _name(node: Node) -> str:
    if isinstance(node, list):
        return f"[{', '.join(_name(branch) for branch in node)}]"
    if isinstance(node, dict):
        return f"{node['type']} {node['name']}" if "name" in node else kind(node)
    return node


def _short(full: str) -> str:
    return full.rpartition(".")[2]
