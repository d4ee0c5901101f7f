"""Every error that spark-cep raises on purpose.

::

    SparkCepError
    ├── ConfigurationError     a setting is wrong, unknown or missing
    ├── RuleSetError           one or more rules are refused; carries all the problems at once
    │   └── RulesUnavailableError         the source of the rules does not answer
    │       └── RulesTopicUnavailableError    it is a Kafka topic
    ├── RegistryError          the schema registry refuses a request
    │   └── RegistryUnavailableError      it does not answer
    ├── SchemaError            a schema cannot be used: for input, for reading or for output
    ├── StateError             the checkpointed state cannot be used by this version or rule
    ├── OutputError            an output record could not be written
    │   └── TakenOverError     another instance writes the output now
    ├── CircuitBreakerError    too many records became dead letters
    ├── StartError             Spark, a port or Kafka is not available
    │   └── KafkaUnavailableError         Kafka does not answer
    ├── PagesUnavailableError         the pages of a running job do not answer
    ├── JavaEndedError         the Java process that Spark runs in ended by itself
    └── GraceError             the job was told to stop and took too long

A message names the file, field, rule or offset, what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

#: What is left when a checkpoint is damaged.
RESTORE = "restore the checkpoint from a copy, or start from a new checkpoint"


class SparkCepError(Exception):
    """Base of all errors that spark-cep raises on purpose."""


class ConfigurationError(SparkCepError):
    """A setting is wrong, unknown or missing; the message names file and setting. ``problems``: all
    that is wrong with the settings, if that is the reason."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class RegistryError(SparkCepError):
    """The schema registry refuses a request."""


class RegistryUnavailableError(RegistryError):
    """The schema registry does not answer; asked again later, it may."""


class SchemaNotFoundError(RegistryError):
    """The registry answers, and does not know the schema id, GUID, subject or version."""


class SchemaError(SparkCepError):
    """A schema cannot be used for input, reading or output."""


class StateError(SparkCepError):
    """The checkpointed state cannot be used by this version or rule."""


def damaged_state(why: str) -> StateError:
    """Return the error for stored state that is not what was written."""
    return StateError(f"the stored state is damaged: {why}; {RESTORE}")


class OutputError(SparkCepError):
    """An output record could not be written to its topic."""


class TakenOverError(OutputError):
    """Another instance of the service has taken over the output; this one must end."""


class CircuitBreakerError(SparkCepError):
    """The circuit breaker stopped the job: too large a share of records became dead letters."""


class StartError(SparkCepError):
    """Spark, a port or Kafka is not available."""


class KafkaUnavailableError(StartError):
    """Kafka does not answer; asked again later, it may."""


class PagesUnavailableError(SparkCepError):
    """The pages of a running job do not answer; asked again later, they may."""


class JavaEndedError(SparkCepError):
    """The Java process that Spark runs in was killed, ran out of memory, or ended by itself."""


class GraceError(SparkCepError):
    """The job was told to stop, and its batch did not end within the grace period."""


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Raise ConfigurationError, with the command that installs the extra, where the block imports a
    package that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{purpose}: the package {error.name} is not installed; install it with the extra"
            f" `{extra}`: pip install 'spark-cep[{extra}]'"
        ) from error


#: Problems looked for in one document, and shown in one error.
MOST_PROBLEMS = 1_000
MOST_RENDERED = 200
#: Characters shown of a line, of a name and of a sentence.
MOST_SHOWN = 200
_MOST_OF_NAME = 100
_MOST_OF_SENTENCE = 1_000


def printable(text: str) -> str:
    """The text with line ends, control and direction characters written as escapes: what others
    have written must not move the cursor of the terminal that shows it, nor look like a line of
    ours."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def printable_lines(text: str) -> str:
    """Return the text with unprintable characters escaped and its lines kept."""
    return "\n".join(map(printable, text.split("\n")))


def shortened(text: str, most: int = _MOST_OF_SENTENCE) -> str:
    """The text, of a long one the beginning."""
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a rule file: 1-based line and column, and how many characters it covers."""

    line: int
    column: int
    length: int = 1


class Related(NamedTuple):
    """Another place of the same file that a problem is about, and what stands there."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or, as a warning, costly) in a rule or in the settings.

    ``source`` is the file's name (or ``<python>``), ``excerpt`` the whole line that ``span`` points
    into. ``allowed`` says what would have been right. ``field`` names the wrong
    field of a rule that was never text; ``span`` and ``excerpt`` are then of the field's own value.
    ``code`` is that of a warning about a rule; ``fix``: what can be written in place of ``span``;
    ``related``: other places that it is about.
    """

    message: str
    source: str | None = None
    span: Span | None = None
    excerpt: str | None = None
    rule: str | None = None
    step: str | None = None
    allowed: str | None = None
    field: str | None = None
    code: str | None = None
    fix: str | None = None
    related: tuple[Related, ...] = ()

    def render(self) -> str:
        """The problem as text for people: place, message, underlined line, help."""
        place = printable(self.source or "<rule>")
        if self.span is not None and self.field is None:
            place += f":{self.span.line}:{self.span.column}"
        names = (("rule", self.rule), ("step", self.step), ("field", self.field))
        where = "".join(
            f" [{kind} {printable(shortened(name, _MOST_OF_NAME))}]" for kind, name in names if name
        )
        code = f" [{self.code}]" if self.code else ""
        lines = [f"{place}:{where} {printable(shortened(self.message))}{code}"]
        if self.span is not None and self.excerpt is not None:
            gutter = f"{self.field or self.span.line} | "
            shown, column, length = _around(self.excerpt, self.span)
            # Each character keeps its column.
            lines.append(gutter + "".join(c if c.isprintable() else " " for c in shown))
            lines.append(" " * (len(gutter) + column) + "^" * length)
        if self.allowed:
            lines.append(f"  help: {printable(shortened(self.allowed))}")
        return "\n".join(lines)


def _around(line: str, span: Span) -> tuple[str, int, int]:
    """Return the part of a line to show, and the span's beginning (0-based) and length in it: the
    whole of a line of ordinary length, else the part around the span's beginning."""
    column, length = span.column - 1, max(1, span.length)
    if len(line) <= MOST_SHOWN:
        return line, column, length
    start = max(0, min(column - MOST_SHOWN // 4, len(line) - MOST_SHOWN))
    shown = line[start : start + MOST_SHOWN]
    before, after = ("…" if cut else "" for cut in (start, len(line) > start + MOST_SHOWN))
    length = min(length, start + len(shown) - column)
    return before + shown + after, column - start + len(before), max(1, length)


def rendered(problems: Sequence[Problem], kind: str = "") -> list[str]:
    """The first ``MOST_RENDERED`` problems as text, each behind ``kind``, such as ``error: ``."""
    lines = [f"{kind}{problem.render()}" for problem in problems[:MOST_RENDERED]]
    if len(problems) > MOST_RENDERED:
        lines.append(f"and {len(problems) - MOST_RENDERED:,} more")
    return lines


class RuleSetError(SparkCepError):
    """One or more rules are refused; ``problems`` holds every reason found, in file order, and the
    text the first ``MOST_RENDERED`` of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n\n".join(rendered(self.problems)))


class RulesUnavailableError(RuleSetError):
    """The source of the rules does not answer; asked again later, it may."""


class RulesTopicUnavailableError(RulesUnavailableError):
    """The Kafka topic of the rules cannot be read now."""
