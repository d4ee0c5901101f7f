"""The rules that are measured; ``bench/flink`` has them in Flink's terms, under the same names."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

PAYMENTS = Path(__file__).with_name("payments.yaml")
#: What the rule asks, with {share} for what narrows it to some users.
_PATTERNS = {
    # Three or more failed log-ins, then one that succeeds.
    "fails": """\
  - {{step: fail, where: "event_type = 'login_fail'{share}", times: 3+}}
  - {{step: ok, after: followed_by, where: "event_type = 'login_ok'{share}"}}
""",
    # Every event meets one of the conditions, and what comes between counts: none can be left out.
    "relevant": """\
  - {{step: low, where: "amount < 250{share}", times: 5, loop: consecutive}}
  - {{step: high, after: next, where: "amount >= 250{share}"}}
""",
    # Two views, each of more than what was seen last. Without skipping: a match that a skip
    # strategy holds back is released at an exact deadline here, and with the next event or
    # watermark in Flink, where partial matches that it ends may time out before.
    "look_back": """\
  - {{step: bought, where: "event_type = 'purchase'{share}"}}
  - {{step: seen, after: followed_by,
     where: "event_type = 'view' AND amount > LAST(bought.amount){share}"}}
  - {{step: more, after: followed_by,
     where: "event_type = 'view' AND amount > LAST(seen.amount){share}"}}
""",
    # A failed log-in that waits for one that succeeds.
    "open": """\
  - {{step: fail, where: "event_type = 'login_fail'{share}"}}
  - {{step: ok, after: followed_by, where: "event_type = 'login_ok'{share}"}}
""",
    # No event is of this type.
    "untouched": """\
  - {{step: fail, where: "event_type = 'never_{number}'", times: 3+}}
  - {{step: ok, after: followed_by, where: "event_type = 'nor_{number}'"}}
""",
}


_NO_SKIP = frozenset({"look_back"})


def document(name: str, within_ms: int, share: str = "", number: int = 0) -> str:
    """The rule ``name`` as YAML. ``share``: the end of the ids of the users that it is for."""
    narrowed = f" AND user_id LIKE '%{share}'" if share else ""
    pattern = _PATTERNS[name].format(share=narrowed, number=number)
    return (
        f"id: {name.replace('_', '-')}-{number}\n"
        "key: user_id\n"
        f"pattern:\n{pattern}"
        f"within: {within_ms} ms\n"
        f"after_match: {'no_skip' if name in _NO_SKIP else 'skip_past_last_event'}\n"
    )


def shares(count: int) -> list[str]:
    """Ends of user ids that divide the users among ``count`` rules: 1, 10, 100 and so on.

    Together these rules find what the one rule for all users finds.
    """
    digits = len(str(count)) - 1
    if count != 10**digits:
        raise ValueError(f"users are divided by last digits: by 1, 10, 100, …, not by {count}")
    return [f"{number:0{digits}d}" if digits else "" for number in range(count)]


def payments_rules(folder: Path) -> Path:
    """A folder with the rules of payments."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PAYMENTS, folder)
    return folder


def write_rules(
    folder: Path, name: str, within_ms: int, parts: Sequence[str] = ("",), untouched: int = 0
) -> Path:
    """A folder of rule files: ``name`` for each of ``parts``, and rules that no event touches."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, share in enumerate(parts):
        file = folder / f"{name}-{number}.yaml"
        file.write_text(document(name, within_ms, share, number), "utf-8")
    for number in range(untouched):
        file = folder / f"untouched-{number}.yaml"
        file.write_text(document("untouched", within_ms, number=number), "utf-8")
    return folder
