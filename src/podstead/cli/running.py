"""Runs the operator's commands: reads the settings, opens the data root, and prints the result."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from podstead.cli.options import OPTION_ROWS, root_options, settings_from
from podstead.cli.output import CommandFailed, echo, json_option, print_json
from podstead.config import Settings
from podstead.core.messages import printable

if TYPE_CHECKING:
    from podstead.app.operator.administration import DataRoot


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


C = TypeVar("C", bound=Callable[..., object])
T = TypeVar("T")
Decorator = Callable[[Callable[..., None]], Callable[..., None]]

_FIELDS = frozenset(row.field for row in OPTION_ROWS)


class Note(str):
    """A line for standard error."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: with ``--json`` the value, otherwise the lines; then the notes, and
    the command ends with the exit code."""

    value: object
    lines: Iterable[str] = ()
    notes: Sequence[str] = ()
    exit_code: int = 0

    @classmethod
    def of_each(cls, values: Sequence[object], lines: Iterable[str]) -> Output:
        """What a command says of each of its arguments: of a single one as an object, of several as
        a list."""
        return cls(values[0] if len(values) == 1 else values, lines)

    def show(self, *, as_json: bool) -> None:
        """Print the result, and end the command unless its exit code is 0."""
        if as_json:
            print_json(self.value)
        else:
            for line in self.lines:
                echo(line, err=isinstance(line, Note))
        for note in self.notes:
            echo(note, err=True)
        if self.exit_code:
            sys.exit(self.exit_code)


def shows_result(command: Callable[..., Output]) -> Callable[..., None]:
    """Make a command of a function that returns its result."""

    @wraps(command)
    def run(*, as_json: bool, **values: object) -> None:
        command(**values).show(as_json=as_json)

    return run


def with_settings(command: Callable[..., T]) -> Callable[..., T]:
    """Pass the settings of the command's options to a function, as its first argument."""

    @wraps(command)
    def run(**values: Any) -> T:  # noqa: ANN401 - one for each setting
        options = {name: values.pop(name) for name in _FIELDS & values.keys()}
        return command(settings_from(options), **values)

    return run


def on_settings(
    *options: Decorator,
) -> Callable[[Callable[..., Output]], Callable[..., None]]:
    """Make a command of a function that gets the settings; ``options`` are ``--json`` and those of
    a data root unless stated."""

    def decorate(command: Callable[..., Output]) -> Callable[..., None]:
        run = shows_result(with_settings(command))
        for option in reversed(options or (json_option, root_options)):
            run = option(run)
        return run

    return decorate


def on_root(
    *options: Decorator,
) -> Callable[[Callable[..., Coroutine[Any, Any, Output]]], Callable[..., None]]:
    """Make a command of a function that gets the open data root."""

    def decorate(command: Callable[..., Coroutine[Any, Any, Output]]) -> Callable[..., None]:
        @wraps(command)
        def run(settings: Settings, **values: object) -> Output:
            return in_root(settings, lambda root: command(root, **values))

        return on_settings(*options)(run)

    return decorate


def in_root(settings: Settings, act: Callable[[DataRoot], Awaitable[T]]) -> T:
    """The result of one step in an open data root."""
    from podstead.app.operator.administration import open_root

    async def run() -> T:
        async with open_root(settings) as root:
            return await act(root)

    return asyncio.run(run())


@contextmanager
def showing_progress(
    failure: str | None = None, *, only_on_terminal: bool = False
) -> Iterator[ProgressLine]:
    """Show progress. An error of the system becomes a ``failure``, if there is a text for it."""
    with ProgressLine(only_on_terminal=only_on_terminal) as progress:
        try:
            yield progress
        except OSError as error:
            if failure is None:
                raise
            raise CommandFailed(f"{failure}: {error}") from error


def with_progress(
    act: Callable[[ProgressLine], Coroutine[Any, Any, T]],
    failure: str | None = None,
    *,
    only_on_terminal: bool = False,
) -> T:
    """The result of a step that shows its progress."""
    with showing_progress(failure, only_on_terminal=only_on_terminal) as progress:
        return asyncio.run(act(progress))
