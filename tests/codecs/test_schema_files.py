"""Schema files, as commands take them: of Avro, JSON Schemas, messages of ``.proto`` files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cases.document.files import suites
from spark_cep.cli.main import app
from spark_cep.cli.trying.play import _trials
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.language.known.event_types import types_of_file
from spark_cep.language_server.surroundings import Surroundings
from spark_cep.pattern.types import record_type
from spark_cep.play.files.given_files import GivenFile
from spark_cep.play.files.opening import opened
from spark_cep.play.trial import OF_ALL
from tests.play.trials import PAIR, trial

MONEY = 'syntax = "proto3"; package money; message Amount { int64 cents = 1; }'
LOGINS = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "parts/money.proto";
enum Kind { NONE = 0; FAIL = 1; OK = 2; }
message Device { string os = 1; }
message Login {
  string user_id = 1;
  Kind kind = 2;
  int64 tries = 3;
  google.protobuf.Timestamp at = 4;
  money.Amount paid = 5;
  Device device = 6;
}
"""
RULE = """id: pair
key: user_id
pattern:
  - {step: fail, where: kind = 'FAIL' AND tries = 0}
  - {step: ok, after: followed_by, where: kind = 'OK' AND paid.cents > 5}
within: 1 minute
"""
CASES = """
schemas: logins.proto:Login
cases:
  - case: a login
    events:
      - {send: {user_id: ann, kind: FAIL}}
      - {send: {user_id: ann, kind: OK, paid: {cents: 6}}, at: 1 s}
    expect: {matches: [{key: ann}]}
"""
#: As Protobuf writes JSON, but for whole numbers of 64 bits, which are texts there.
EVENTS = """{"userId": "ann", "kind": "FAIL", "at": "2026-01-31T12:00:00Z"}
{"userId": "ann", "kind": "OK", "paid": {"cents": 6}, "at": "2026-01-31T12:00:20Z"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rule, its cases, events in JSON, and the ``.proto`` file of their type."""
    made = tmp_path_factory.mktemp("proto")
    (made / "parts").mkdir()
    for name, text in (
        ("logins.proto", LOGINS), ("parts/money.proto", MONEY), ("pair.yaml", RULE),
        ("pair.cases.yaml", CASES), ("logins.jsonl", EVENTS),
    ):  # fmt: skip
        (made / name).write_text(text, "utf-8")
    return made


def run(*words: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, [*map(str, words)])


def test_commands(folder: Path) -> None:
    """Rules are checked against the message, tested and run with it. A field that is not there is
    0, as the job has it."""
    schema, rule = f"{folder}/logins.proto:shop.Login", folder / "pair.yaml"
    checked = run("check", rule, "--schema", schema)
    assert f"Columns and types were checked against {schema}" in checked.output
    assert run("explain", rule, "--schema", schema).exit_code == 0
    assert "1 passed" in run("test", folder).output
    events = ("--input", folder / "logins.jsonl", "--schema", schema)
    found = run("run", *events, "--rules", rule, "--json", "--quiet")
    assert [json.loads(each)["key"] for each in found.stdout.splitlines()] == ["ann"], found.output


def test_json_schema(tmp_path: Path) -> None:
    """It is taken where a schema of Avro is."""
    schema, rule = tmp_path / "login.json", tmp_path / "pair.yaml"
    properties = {"user_id": {"type": "string"}, "kind": {"type": "string"}}
    schema.write_text(json.dumps({"title": "Login", "properties": properties}), "utf-8")
    rule.write_text("id: r\nkey: user_id\npattern: [{step: a, where: kind = 'a'}]\n", "utf-8")
    assert f"checked against {schema}" in run("check", rule, "--schema", schema).output
    rule.write_text("id: r\nkey: user\npattern: [{step: a, where: kind = 'a'}]\n", "utf-8")
    assert "did you mean" in run("check", rule, "--schema", schema).output


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("logins.proto", r"shop\.Device, shop\.Login; name the one .*, as .*logins\.proto:MESSAGE"),
        ("logins.proto:Logout", r"has no messages called Logout; it has shop\.Device, shop\.Login"),
        ("empty.proto", "empty.proto: has no messages"),
        ("bad.proto", "bad.proto: line 1:.*Expected"),
        ("none.proto", "none.proto: cannot be read: No such file"),
        ("none.avsc", "none.avsc: cannot be read: No such file"),
        ("latin.proto:A", "latin.proto: cannot be read: it is not UTF-8"),
    ],
)
def test_what_is_not_clear(name: str, why: str, folder: Path) -> None:
    """The error says what there is, and what to write."""
    (folder / "empty.proto").write_text('syntax = "proto3";', "utf-8")
    (folder / "bad.proto").write_text("message", "utf-8")
    (folder / "latin.proto").write_bytes("// für".encode("latin-1"))
    with pytest.raises((SchemaError, ConfigurationError), match=why):
        schema_of_file(folder / name)


def test_the_compiler_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the command that installs it."""
    other = folder / "other.proto"
    other.write_text(MONEY, "utf-8")
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    refused = run("check", folder / "pair.yaml", "--schema", other)
    assert "pip install 'spark-cep[protobuf]'" in " ".join(refused.output.split())


def test_defaults_of_columns(tmp_path: Path) -> None:
    """They are those of the file, where a column has such a value."""
    file = tmp_path / "old.proto"
    file.write_text(
        """
        syntax = "proto2";
        enum Mood { BAD = 3; GOOD = 4; }
        message Old {
          optional string t = 1 [default = "x"]; optional bytes b = 2 [default = "\\xff"];
          optional Mood m = 3 [default = GOOD]; optional double d = 4 [default = inf];
          optional uint64 u = 5 [default = 18446744073709551615]; optional bool ok = 6;
          repeated int32 many = 7; map<string, int32> by_name = 8; optional Mood other_mood = 9;
        }""",
        "utf-8",
    )
    schema: Any = schema_of_file(file)
    defaults = {each["name"]: each.get("default", ...) for each in schema.json["fields"]}
    assert defaults == {
        "t": "x", "b": "\xff", "m": "GOOD", "d": ..., "u": ..., "ok": None, "many": [],
        "by_name": {}, "other_mood": None,
    }  # fmt: skip
    assert str(record_type(schema.text).fields["m"]) == "STRING"


def test_files_beside(folder: Path, tmp_path: Path) -> None:
    """A ``.proto`` file counts where there is none of Avro, for cases and in an editor."""
    (tmp_path / "logins.proto").write_text(MONEY, "utf-8")
    (tmp_path / "pair.yaml").write_text(RULE, "utf-8")
    (tmp_path / "pair.cases.yaml").write_text(CASES.replace("schemas: logins.proto:Login", ""))

    def beside() -> Iterator[str]:
        (suite,) = suites([tmp_path], {})
        yield from (Path(str(each)).name for each in suite.schemas.values())
        document = Surroundings().document(tmp_path / "pair.yaml", RULE)
        yield from (name for several in document.types.values() for _, name, _ in several if name)

    assert list(beside()) == ["logins.proto", "money.Amount"]
    fields = [{"name": "user_id", "type": "string", "doc": "Who."}]
    avro = {"type": "record", "name": "Login", "fields": fields}
    (tmp_path / "a.avsc").write_text(json.dumps(avro), "utf-8")
    assert list(beside()) == ["a.avsc", "Login"]
    assert types_of_file(tmp_path / "a.avsc").docs == {"Login.user_id": "Who."}
    (tmp_path / "a.avsc").rename(tmp_path / "A.AVSC")
    assert list(beside()) == ["A.AVSC", "Login"]


def test_the_page_has_it_in_avro(folder: Path) -> None:
    """From the command line with what it imports; one that is dropped stands alone."""
    (found,) = _trials([Path(f"{folder}/logins.proto:Login")])
    assert [each["name"] for each in json.loads(found.schemas[OF_ALL])["fields"]] == [
        "user_id", "kind", "tries", "at", "paid", "device",
    ]  # fmt: skip
    dropped = opened([GivenFile("money.proto", MONEY.encode())], trial(PAIR))
    assert json.loads(dropped.trials[0].schemas[OF_ALL])["name"] == "money.Amount"
    with pytest.raises(SchemaError, match=r"as spark-cep play|spark-cep play a\.proto:MESSAGE"):
        opened([GivenFile("a.proto", b"message A {} message B {}")], trial(PAIR))
