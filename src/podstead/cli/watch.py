"""``podstead watch``: print the changes of a resource or container as they come."""

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

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.notifications.client.changes import Change
    from podstead.notifications.client.watching import Begun

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_AFTER_SIGNAL: Final = 128
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 section 2.1

_Show = Callable[["Change", str], str]
"""The line for a change of what is watched at a URL."""


@click.command(short_help="Print the changes of a resource as they come.")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print each message as a line of JSON.")
@click.option(
    "--count", metavar="NUMBER", type=click.IntRange(1), help="End after so many changes."
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="PODSTEAD_TOKEN",
    show_envvar=True,
    help="A token of somebody who may read it, if it is not public.",
)
def watch(url: str, *, as_json: bool, count: int | None, token: str | None) -> None:
    """Print the changes of the resource or container at URL, on any Solid server, as they come.

    Each change is a line: when it happened, what it was, and to what. A container tells of its
    members (Add, Remove) and of itself. A lost connection is opened again, and what happened
    meanwhile is printed then if the server tells it.

    Ctrl-C ends it, with exit code 130, and SIGTERM with 143. When nobody reads its output any more
    it ends with 0. Other processes of this machine can see options: set PODSTEAD_TOKEN rather.
    """
    if token is not None and _TOKEN.fullmatch(token) is None:
        raise click.UsageError("The token is none: it holds what no token can hold.")
    show = _as_json if as_json else _as_text
    ended_by = asyncio.run(_watched(url, token=token, count=count, show=show))
    if ended_by is not None:
        sys.exit(_AFTER_SIGNAL + ended_by)


async def _watched(
    url: str, *, token: str | None, count: int | None, show: _Show
) -> signal.Signals | None:
    """Print until it is enough; the signal that ended it, if one did."""
    task = asyncio.create_task(_print_changes(url, token=token, count=count, show=show))
    signals: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        signals.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    if _is_pipe(sys.stdout):
        # At the end that is written to, nothing can be read but that the other end is closed.
        loop.add_reader(sys.stdout.fileno(), _closed, task)
    with suppress(asyncio.CancelledError):
        await task
    return signals[0] if signals else None


def _closed(task: asyncio.Task[None]) -> None:
    """The pipe is closed, which would be told again and again."""
    asyncio.get_running_loop().remove_reader(sys.stdout.fileno())
    task.cancel()


async def _print_changes(url: str, *, token: str | None, count: int | None, show: _Show) -> None:
    from podstead.app.watching import NoSuchAddress, watching
    from podstead.notifications.client.changes import Change
    from podstead.notifications.client.errors import CannotWatch
    from podstead.notifications.client.receiving import Missed
    from podstead.notifications.client.watching import Away, Begun

    printed = 0
    try:
        async with watching(url, token=token) as told:
            watched_url = url
            async for each in told:
                match each:
                    case Begun():
                        watched_url = each.topic.url
                        _say(_begun(each))
                    case Away():
                        _say("The connection is lost; trying again.")
                    case Missed():
                        _say("Something has changed that cannot be told.")
                    case Change():
                        _write(show(each, watched_url))
                        printed += 1
                if printed == count:
                    return
    except BrokenPipeError:
        return
    except NoSuchAddress as error:
        raise click.UsageError(_printable(str(error))) from error
    except CannotWatch as error:
        raise click.ClickException(_printable(str(error))) from error


def _begun(begun: Begun) -> str:
    if not begun.again:
        return f"Watching {begun.topic.url} ({begun.topic.way.protocol.value}); Ctrl-C ends it."
    if begun.is_gapless:
        return "Connected again."
    return "Connected again; not all that happened meanwhile may be told."


def _say(text: str) -> None:
    click.echo(_printable(text), err=True)


def _write(line: str) -> None:
    """Write a line at once. Raises BrokenPipeError if nobody reads any more."""
    try:
        click.echo(line)
    except BrokenPipeError:
        # Nothing more is heard of the pipe, and what could not be written is thrown away, or
        # Python would try it again as it ends.
        asyncio.get_running_loop().remove_reader(sys.stdout.fileno())
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _as_json(change: Change, _: str) -> str:
    return json.dumps(change.said)


def _as_text(change: Change, watched_url: str) -> str:
    at_s = datetime.now(tz=UTC).timestamp()
    if change.published_ms is not None:
        at_s = change.published_ms / 1000
    local = datetime.fromtimestamp(at_s).astimezone()
    resource = _relative(change.resource, watched_url)
    return f"{local:%Y-%m-%d %H:%M:%S}  {_printable(change.activity):<6}  {_printable(resource)}"


def _relative(resource: str, watched_url: str) -> str:
    """The resource as it is seen from what is watched: a member by its name, itself likewise."""
    container, _, name = watched_url.rpartition("/")
    if resource == watched_url:
        return name or "./"
    below = resource.removeprefix(f"{container}/")
    return below if below != resource and not name else resource


def _printable(text: str) -> str:
    """The text without what would move the cursor or change colours of a terminal."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (AttributeError, OSError):  # it is closed, or none of the system's
        return False
