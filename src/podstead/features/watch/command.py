"""``podstead watch``: print the changes of a resource or container as they happen."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

import click

from podstead.cli.output import CommandFailed, echo
from podstead.core.messages import printable

if TYPE_CHECKING:
    from podstead.features.watch.changes import ReceivedChange
    from podstead.features.watch.watching import WatchStarted


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_AFTER_SIGNAL: Final = 128
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 section 2.1

_Show = Callable[["ReceivedChange", str], str]
"""The line for a change of what is watched at a URL."""


@click.command(short_help="Print the changes of a resource as they happen.")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print each message as one line of JSON.")
@click.option(
    "--count", metavar="NUMBER", type=click.IntRange(1), help="Exit after this many changes."
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="PODSTEAD_TOKEN",
    show_envvar=True,
    help="A token of an agent that may read the resource, if it is not public.",
)
def watch(url: str, *, as_json: bool, count: int | None, token: str | None) -> None:
    """Print the changes of the resource or container at URL, on any Solid server, as they happen.

    Each line states the time of a change, its type, and the resource that changed. For a container,
    these include changes of its list of members (Add, Remove). If the connection is lost, the
    command reconnects and prints the changes that it missed, if the server reports them.

    To stop the command, press Ctrl-C (exit code 130) or send SIGTERM (exit code 143). If its output
    is a pipe whose reader exits, it exits with code 0. Other processes on this machine can see
    options, so prefer the variable PODSTEAD_TOKEN.
    """
    if token is not None and _TOKEN.fullmatch(token) is None:
        raise click.UsageError(
            "The token is not valid: it contains characters that a token cannot contain."
        )
    show = _as_json if as_json else _as_text
    ended_by = asyncio.run(_watched(url, token=token, count=count, show=show))
    if ended_by is not None:
        sys.exit(_AFTER_SIGNAL + ended_by)


async def _watched(
    url: str, *, token: str | None, count: int | None, show: _Show
) -> signal.Signals | None:
    """Print until the count is reached; returns the signal that ended the command, if one did."""
    task = asyncio.create_task(_print_changes(url, token=token, count=count, show=show))
    signals: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        signals.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    if _is_pipe(sys.stdout):
        # The writing end becomes readable only when the other end is closed.
        loop.add_reader(sys.stdout.fileno(), _closed, task)
    with suppress(asyncio.CancelledError):
        await task
    return signals[0] if signals else None


def _closed(task: asyncio.Task[None]) -> None:
    """The pipe is closed. Stop watching it, since it would be reported again and again."""
    asyncio.get_running_loop().remove_reader(sys.stdout.fileno())
    task.cancel()


async def _print_changes(url: str, *, token: str | None, count: int | None, show: _Show) -> None:
    from podstead.features.watch.changes import ReceivedChange
    from podstead.features.watch.receiving import ChangesMissed
    from podstead.features.watch.server import WatchError
    from podstead.features.watch.watching import Disconnected, NoSuchAddress, WatchStarted, watching

    printed = 0
    try:
        async with watching(url, token=token) as told:
            watched_url = url
            async for each in told:
                match each:
                    case WatchStarted():
                        watched_url = each.topic.url
                        _say(_begun(each))
                    case Disconnected():
                        _say("The connection is lost; trying again.")
                    case ChangesMissed():
                        _say("Something changed, but the server did not say what.")
                    case ReceivedChange():
                        _write(show(each, watched_url))
                        printed += 1
                if printed == count:
                    return
    except BrokenPipeError:
        return
    except NoSuchAddress as error:
        raise click.UsageError(printable(str(error))) from error
    except WatchError as error:
        raise CommandFailed(str(error)) from error


def _begun(begun: WatchStarted) -> str:
    if not begun.again:
        return f"Watching {begun.topic.url} ({begun.topic.way.protocol.value}); Ctrl-C ends it."
    if begun.is_gapless:
        return "Connected again."
    return "Connected again; some changes in the meantime may be missing."


def _say(text: str) -> None:
    echo(text, err=True)


def _write(line: str) -> None:
    """Write a line immediately. Raises BrokenPipeError if the reader has exited."""
    try:
        echo(line)
    except BrokenPipeError:
        # Stop watching the pipe, and discard what could not be written; otherwise Python would try
        # to write it again when it exits.
        asyncio.get_running_loop().remove_reader(sys.stdout.fileno())
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _as_json(change: ReceivedChange, _: str) -> str:
    return json.dumps(change.said)


def _as_text(change: ReceivedChange, watched_url: str) -> str:
    at_s = datetime.now(tz=UTC).timestamp()
    if change.published_ms is not None:
        at_s = change.published_ms / 1000
    local = datetime.fromtimestamp(at_s).astimezone()
    resource = _relative(change.resource, watched_url)
    return f"{local:%Y-%m-%d %H:%M:%S}  {printable(change.activity):<6}  {printable(resource)}"


def _relative(resource: str, watched_url: str) -> str:
    """The resource relative to the watched one: a member by its name, and so the watched one."""
    container, _, name = watched_url.rpartition("/")
    if resource == watched_url:
        return name or "./"
    below = resource.removeprefix(f"{container}/")
    return below if below != resource and not name else resource


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (AttributeError, OSError):  # it is closed, or none of the system's
        return False
