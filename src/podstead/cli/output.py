"""Prints lines, lists in columns, times in UTC, and JSON, without anything that a terminal would
act on; shows progress, asks questions, and reads passwords.

Everything that commands print comes through here, because any of it can contain names that
strangers chose.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, TypeVar

import click
import msgspec

from podstead.config.value_types import ValueType
from podstead.core.messages import printable


class CommandFailed(click.ClickException):
    """A command ends with a message and exit code 1."""

    def format_message(self) -> str:
        return printable(self.message)


def echo(line: str = "", *, err: bool = False) -> None:
    """Print one line, to standard error if ``err``. Line breaks in it are escaped, too."""
    click.echo(printable(line), err=err)


def echo_lines(text: str) -> None:
    """Print text of ours that has several lines."""
    for line in text.rstrip("\n").split("\n"):
        echo(line)


def confirm(question: str) -> None:
    """Ask the operator. Raises Abort unless the answer is yes."""
    click.confirm(printable(question), abort=True)


def read_password(*, confirmed: bool = False) -> str:
    """The password that the operator types, twice if it is to be ``confirmed``, or the first line
    of standard input. Never an argument, which everybody on the machine could see."""
    if sys.stdin.isatty():
        typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=confirmed)
        return typed
    line = sys.stdin.readline().rstrip("\r\n")
    if confirmed and not line:
        raise click.UsageError(
            "The first line of standard input must be the password, but is empty."
        )
    return line


def read_secret(name: str) -> str:
    """A secret that the operator types, or the first line of standard input."""
    if sys.stdin.isatty():
        typed: str = click.prompt(name, hide_input=True)
        return typed
    return sys.stdin.readline().rstrip("\r\n")


T = TypeVar("T")

_KIB: Final = 1024

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option of every command that prints something about the server's data; docs/operate says
what the objects have in common."""


names_argument = click.argument("names", metavar="NAME...", nargs=-1, required=True)
"""The argument of a command that does the same with each of several things."""


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table whose columns are as wide as their widest cells."""
    lines = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()


def print_json(value: object) -> None:
    """Print a value as JSON, for programs."""
    for line in _json(value, indent=2).split("\n"):
        echo(_escaped(line))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON, at once."""
    echo(_escaped(_json(value)))


def _json(value: object, indent: int | None = None) -> str:
    # msgspec's own encoder refuses the halves of surrogate pairs that stand for bytes in names.
    return json.dumps(msgspec.to_builtins(value, enc_hook=str), ensure_ascii=False, indent=indent)


def _escaped(text: str) -> str:
    """JSON with what cannot be printed as JSON has it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def parsed(kind: ValueType[T], text: str, hint: str) -> T:
    """An argument or option as its value. Raises BadParameter."""
    try:
        return kind.parse(text)
    except ValueError as error:
        raise click.BadParameter(kind.expected, param_hint=hint) from error


def now_s() -> int:
    """The time, in Unix seconds."""
    return int(datetime.now(tz=UTC).timestamp())


def bytes_text(size_bytes: int) -> str:
    """A size as ``4.2 MiB``."""
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"


def time_text(unix_s: int) -> str:
    """A time as ``2026-11-21T05:30:00Z``."""
    return datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_PERIOD_S: Final = 0.2
_CLEAR: Final = "\r\x1b[K"
_LARGE: Final = 10_000
"""Above this, numbers are bytes, or as good as bytes, and only the share is shown."""


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """The progress of a command that goes from step to step."""

    def __init__(self, *, only_on_terminal: bool = False) -> None:
        """``only_on_terminal`` is for services, whose log is not for steps."""
        self._is_terminal = sys.stderr.isatty()
        self._is_shown = self._is_terminal or not only_on_terminal
        self._step = ""
        self._shown_s = 0.0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show how much of a step is done, if that is known, and of how much."""
        if not self._is_shown:
            return
        step = printable(step)
        is_new, self._step = step != self._step, step
        if not self._is_terminal:
            if is_new:
                sys.stderr.write(f"{step}\n")
                sys.stderr.flush()
            return
        now_s = time.monotonic()
        if is_new or now_s - self._shown_s >= _PERIOD_S:
            self._shown_s = now_s
            sys.stderr.write(f"{_CLEAR}{step}{_share(done, total)}")
            sys.stderr.flush()

    def end(self) -> None:
        """Remove the line, before something else is printed. Idempotent."""
        if self._is_terminal and self._step:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
        self._step = ""


def _share(done: int, total: int) -> str:
    if not total:
        return f" {done:,} …" if done else " …"
    if total <= _LARGE:
        return f" {done} of {total}"
    return f" {100 * done // total} %"
