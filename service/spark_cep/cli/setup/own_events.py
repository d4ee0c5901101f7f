"""A few events for those who have none at hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final

_NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: Seconds since noon, user, what happened, address.
_LOGINS: Final = (
    (0, "ann", "login_ok", "10.0.0.7"),
    (40, "bob", "login_fail", "203.0.113.9"),
    (52, "bob", "login_fail", "203.0.113.9"),
    (65, "bob", "login_fail", "203.0.113.9"),
    (71, "cleo", "login_ok", "10.0.0.8"),
    (80, "bob", "login_ok", "203.0.113.9"),
    (130, "ann", "logout", "10.0.0.7"),
    (200, "cleo", "login_fail", "10.0.0.8"),
    (210, "cleo", "login_ok", "10.0.0.8"),
    (260, "dan", "login_fail", "198.51.100.4"),
    (275, "dan", "login_ok", "198.51.100.4"),
    (400, "bob", "logout", "203.0.113.9"),
)


def logins() -> str:
    """Logins as JSON lines."""
    lines = []
    for seconds, user, kind, address in _LOGINS:
        time = (_NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
        event = {"ts": time, "user_id": user, "event_type": kind, "ip": address}
        lines.append(json.dumps(event) + "\n")
    return "".join(lines)
