"""The end of ``spark-cep run``: the last line of its log says why, with which code, what was done
last, and what to do."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Final

from spark_cep.cli.exit_codes import ADVICE, ExitCode, exit_code
from spark_cep.errors import ConfigurationError, Problem, RuleSetError, rendered
from spark_cep.observability.logs import as_json, logger, only

_log = logger(__name__)
_MOST_PROBLEMS: Final = 20
"""Most problems in the last line."""


class Ending:
    """The end of a run. ``last_batch`` gives the number of the batch that was written last, once
    there is a service."""

    def __init__(self) -> None:
        self.last_batch: Callable[[], int | None] = lambda: None

    def done(self, reason: str) -> None:
        """It ended as it should."""
        self.log(ExitCode.DONE, reason)

    def failed(self, error: BaseException) -> ExitCode:
        """It ended by an error, whose exit code is returned."""
        code = exit_code(error)
        if code is ExitCode.INTERNAL_ERROR:
            trace = "".join(traceback.format_exception(error))
            self.log(code, f"{type(error).__name__}: {error}", exception=trace)
        elif as_json():
            problems = rendered(problems_of(error)[:_MOST_PROBLEMS])
            self.log(code, summary(error), **({"problems": problems} if problems else {}))
        else:
            # On a terminal it stands above.
            self.log(code, None)
        return code

    def log(self, code: ExitCode, reason: str | None, **more: object) -> None:
        """Log the last line: nothing is logged after it."""
        only(__name__)
        told = {} if reason is None else {"reason": reason}
        (_log.info if code is ExitCode.DONE else _log.error)(
            "ended",
            exit_code=int(code),
            name=code.name,
            **told,
            advice=ADVICE[code],
            last_batch=self.last_batch(),
            **more,
        )


def problems_of(error: BaseException) -> tuple[Problem, ...]:
    """The problems of settings or rules, where these are the error."""
    return error.problems if isinstance(error, ConfigurationError | RuleSetError) else ()


def summary(error: BaseException) -> str:
    """The error in one line, or the number of its problems."""
    count = len(problems_of(error))
    if not count:
        return str(error)
    return "1 error" if count == 1 else f"{count} errors"
