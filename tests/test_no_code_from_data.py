"""The service runs no code that comes from data: what its modules may not name, and what packets
and state are made of."""

from __future__ import annotations

import ast
import pickle
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from spark_cep.errors import StateError
from spark_cep.packing import unpack
from tests.sources import ROOT, texts, trees

FORBIDDEN_IMPORTS = {
    "pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "dbm",
    "jsonpickle", "code", "codeop", "runpy",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.execvp",
    "yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.add_constructor",
    "numpy.load", "np.load", "numpy.fromfile", "pd.read_pickle", "pandas.read_pickle",
    "pd.eval", "pa.deserialize",
}  # fmt: skip
_LAST_PARTS = {name.rpartition(".")[2] for name in FORBIDDEN_CALLS}
_SUSPECT = (
    r"\b(?:" + "|".join({*FORBIDDEN_IMPORTS, "subprocess", "shell", "allow_pickle"}) + r")\b"
    r"|\b(?:" + "|".join(_LAST_PARTS) + r")\("
)
_SPARK = "service/spark_cep/pipeline/spark"
PROCESSES = {
    f"{_SPARK}/jvm.py",
    f"{_SPARK}/java.py",
    f"{_SPARK}/prepared_classes.py",
    "service/spark_cep/codecs/protobuf/descriptors.py",
    "service/spark_cep/pipeline/compiled_code.py",
}
"""Modules that start Java, this package or the compiler of .proto files by a list of arguments of
their own making, or wait for its end."""
ALLOWED = {
    f"{_SPARK}/forking/fork_server.py": {"runpy"},
    f"{_SPARK}/forking/fork_client.py": {"os.execv"},
}
"""What runs Spark's own commands, asked for at a socket that the service's user alone may open."""


def _names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """What is called, by its dotted name, and where: of all that has the last part of a forbidden
    name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            last = getattr(node.func, "attr", getattr(node.func, "id", None))
            if last in _LAST_PARTS:
                yield ast.unparse(node.func), node.lineno


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


def _offences(tree: ast.Module, name: str) -> list[str]:
    allowed = ALLOWED.get(name, set())
    found = [
        f"{name}:{line}: calls {called}"
        for called, line in _names(tree)
        if called in FORBIDDEN_CALLS - allowed
    ]
    for module, line in _imports(tree):
        top = module.partition(".")[0]
        if top in FORBIDDEN_IMPORTS - allowed or (top == "subprocess" and name not in PROCESSES):
            found.append(f"{name}:{line}: imports {module}")
    found += [
        f"{name}:{node.value.lineno}: passes {node.arg}"
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle")
    ]
    return found


def test_no_module_runs_data() -> None:
    """No eval, exec, pickle, marshal, unsafe YAML or shell anywhere in the service."""
    assert len(texts()) > 90
    offences = [
        offence
        for path, tree in trees(_SUSPECT)
        for offence in _offences(tree, str(path.relative_to(ROOT)))
    ]
    assert offences == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "x = eval('1')",
        "import yaml\nyaml.load(t, yaml.Loader)",
        "import subprocess",
        "run(x, shell=True)",
        "np.load(f, allow_pickle=True)",
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    """Each is an offence."""
    assert _offences(ast.parse(text), "service/any.py")


def test_ruff_looks_too() -> None:
    """The rules of flake8-bandit are on for the service, with two exceptions that are not about
    data: assertions, and processes started by a list of arguments."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    assert "S" in ruff["select"]
    assert {rule for rule in ruff["ignore"] if rule.startswith("S1") or rule == "S603"} == {
        "S101",
        "S603",
    }
    relaxed = {
        rule
        for pattern, rules in ruff["per-file-ignores"].items()
        if pattern.startswith(("service", "**"))
        for rule in rules
        if rule.startswith("S")
    }
    assert relaxed <= {"S106"}


class _Harm:
    """What a pickle would run when it is read."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(self._file),)  # type: ignore[return-value]


def test_state_that_is_a_pickle_is_no_state(tmp_path: Path) -> None:
    """Whoever can write the checkpoint can make state wrong, and cannot run code by it."""
    owned = tmp_path / "owned"
    harmful = pickle.dumps(_Harm(owned))
    with pytest.raises(StateError, match="damaged"):
        unpack(harmful)
    assert not owned.exists()


def test_unknown_extension_types_are_refused() -> None:
    """MessagePack's own door for objects leads to numbers and times of ours, and no further."""
    with pytest.raises(StateError, match="unknown kind 42"):
        unpack(msgpack.packb([msgpack.ExtType(42, b"os.system")]))
