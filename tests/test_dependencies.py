"""The packages that pyproject.toml declares are those that the code imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, requires

from packaging.requirements import Requirement

from tests.sources import ROOT, SERVICE, trees

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

#: Imported by us, and part of what another package promises: its version goes with that one's.
BROUGHT = {
    "py4j": "pyspark", "llvmlite": "numba", "pydantic-core": "pydantic", "fastapi": "nicegui",
    "markdown2": "nicegui", "starlette": "nicegui", "uvicorn": "nicegui",
    "opentelemetry-api": "opentelemetry-sdk",
}  # fmt: skip
#: Required, and imported by others alone, or by a name in a string.
NOT_IMPORTED = {
    "grpcio-tools": "the compiler of .proto files, which runs as a program",
    "tzdata": "the standard library's zoneinfo",
    "psycopg": "SQLAlchemy, for rules.sql.url of PostgreSQL",
}
#: Modules that import an extra's packages; what imports them asks for the extra first.
EXTRAS = {
    "sql": {"spark_cep/rules/sources/sql_table.py"},
    "protobuf": set(),
    "dot": {"spark_cep/compiler/explain/dot_text.py"},
    "play": {
        f"spark_cep/play/page/{name}.py"
        for name in (
            "automaton",
            "event_table",
            "page",
            "problem_list",
            "rule_editor",
            "server",
            "serving",
            "settings_menu",
            "stepping",
            "timeline",
        )
    }
    | {
        f"spark_cep/watch/page/{name}.py"
        for name in ("adding", "open_view", "page", "rule_list", "trend_chart")
    },
    "fmt": {"spark_cep/cli/authoring/formatting.py"},
    "otel": {"spark_cep/observability/traces.py"},
    "lsp": {"spark_cep/language_server/protocol.py", "spark_cep/language_server/server.py"},
}

#: Packages that several distributions share, by the distribution that a module comes from.
SHARED = {
    "google.protobuf": "protobuf",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.": "opentelemetry-api",
}

#: Extras for people at their own desks, which no image has and `all` does not name.
AT_A_DESK = {"play"}


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", Requirement(requirement).name).lower()


REQUIRED = [_name(each) for each in PROJECT["dependencies"]]
OPTIONAL = {
    extra: [_name(each) for each in PROJECT["optional-dependencies"][extra]] for extra in EXTRAS
}


#: A line that imports something of neither the package nor the standard library.
_IMPORT = (
    r"^[ \t]*(?:import|from)[ \t]+(?!(?:spark_cep|"
    + "|".join(map(re.escape, sorted(sys.stdlib_module_names)))
    + r")\b)"
)


@cache
def imported() -> dict[str, set[str]]:
    """The distributions that modules of the package import, each with these modules."""
    found: dict[str, set[str]] = {}
    distributions = packages_distributions()
    for path, tree in trees(_IMPORT):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "spark_cep":
                    shared = [of for prefix, of in SHARED.items() if name.startswith(prefix)]
                    (distribution,) = shared[:1] or set(distributions[top])
                    module = path.relative_to(SERVICE).as_posix()
                    found.setdefault(_name(distribution), set()).add(module)
    return found


def test_each_import_is_declared() -> None:
    """As required, or as an extra's where one module alone imports it."""
    in_extras = {name for names in OPTIONAL.values() for name in names}
    undeclared = set(imported()) - set(REQUIRED) - in_extras - set(BROUGHT)
    assert undeclared == set()
    for extra, names in OPTIONAL.items():
        for name in names:
            assert imported().get(name, set()) <= EXTRAS[extra], name


def test_each_declared_package_is_imported_or_has_its_reason() -> None:
    """What is no longer imported is no longer declared; and no reason stays without its package."""
    declared = {*REQUIRED, *(name for names in OPTIONAL.values() for name in names)}
    assert declared - set(imported()) == set(NOT_IMPORTED)


def test_what_another_package_brings_is_required_by_it() -> None:
    """And by nobody but it."""
    for name, by in BROUGHT.items():
        assert by in (*REQUIRED, *(each for names in OPTIONAL.values() for each in names))
        assert name in {_name(each) for each in requires(by) or ()}
        assert name in imported()


def test_no_package_is_declared_twice() -> None:
    """In one place, with one range."""
    declared = [*REQUIRED, *(name for names in OPTIONAL.values() for name in names)]
    assert sorted(declared) == sorted(set(declared))


def test_all_extras_are_in_all() -> None:
    """The extra `all` names each extra of the run time."""
    (whole,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(whole).extras == set(OPTIONAL) - AT_A_DESK
    assert set(PROJECT["optional-dependencies"]) == {*OPTIONAL, "all", "dev"}


def test_the_image_installs_all_extras() -> None:
    """The lock that the image is made of holds each package, required or optional."""
    lock = (ROOT / "requirements-runtime.lock").read_text("utf-8")
    pinned = {_name(line.split("==")[0]) for line in re.findall(r"^[a-z]\S*==", lock, re.MULTILINE)}
    wanted = {extra: names for extra, names in OPTIONAL.items() if extra not in AT_A_DESK}
    assert {*REQUIRED, *(name for names in wanted.values() for name in names)} <= pinned
