"""An account that prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_cep.why.account import Account
from spark_cep.why.data import account_data
from spark_cep.why.text import MOST_SHOWN, account_text


@dataclass(frozen=True, repr=False)
class Answer:
    """The account of one key, which prints itself as text."""

    account: Account

    def __repr__(self) -> str:
        return account_text(self.account)

    def text(self, most: int = MOST_SHOWN) -> str:
        """The account as text; of its moments the last ``most``."""
        return account_text(self.account, most)

    def data(self) -> dict[str, Any]:
        """The account as plain data, for JSON."""
        return account_data(self.account)
