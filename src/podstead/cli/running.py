"""Runs the operator's commands: reads the settings, opens the data root, and prints the result."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from podstead.cli.options import OPTION_ROWS, root_options, settings_from
from podstead.cli.output import CommandFailed, ProgressLine, echo, json_option, print_json
from podstead.config import Settings

if TYPE_CHECKING:
    from podstead.app.operator.administration import DataRoot


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
