"""``podstead start`` around an application of ours, which shows and steers what a server does.

    /pid          the process that answers
    /die          the worker ends at once
    /hold?<name>  says "holding" and answers once the file <name> exists in $STUB_FOLDER
    /body         the number of bytes of the body
    /bytes?<n>    so many bytes, in pieces
    /scope        what the scope says of the connection, as JSON
    /peak         how many bytes of memory the process has used at most

WebSockets get back what they send.

``$STUB_START`` says what the application does when it is to start:
"hang-in-factory", "fail-in-factory", "hang", "fail" or "crash". A file "broken" in $STUB_FOLDER
makes every later start crash.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import click

from podstead.app.process.run import run_server
from podstead.cli.commands import CommandGroup
from podstead.cli.options import settings_from, settings_options
from podstead.cli.start import announce, end
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.web.asgi import Application, Receive, Send

FOLDER = Path(os.environ.get("STUB_FOLDER", "."))
START = os.environ.get("STUB_START", "")
PIECE_BYTES = 64 * 1024


def say(text: str) -> None:
    click.echo(text)


def make(_settings: Settings) -> Application:
    say(f"factory {os.getpid()}")
    if START == "hang-in-factory":
        threading.Event().wait()
    if START == "fail-in-factory":
        raise StorageError("The keys cannot be read.")
    return application


async def application(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    if scope["type"] == "websocket":
        await echo(receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/bytes":
        await stream(int(scope["query_string"]), send)
        return
    body = await answer(scope, receive)
    await send({"type": "http.response.body", "body": body})


async def live(receive: Receive, send: Send) -> None:
    await receive()
    say(f"starting {os.getpid()}")
    if START == "hang":
        await asyncio.Event().wait()
    if START == "fail":
        raise StorageError("The store is broken.")
    if START == "crash" or (FOLDER / "broken").exists():
        raise RuntimeError("A fault of ours")
    await send({"type": "lifespan.startup.complete"})
    await receive()
    say("closing")
    await send({"type": "lifespan.shutdown.complete"})


async def echo(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def stream(size_bytes: int, send: Send) -> None:
    piece = b"x" * PIECE_BYTES
    for _ in range(size_bytes // PIECE_BYTES):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": piece[: size_bytes % PIECE_BYTES]})


async def answer(scope: MutableMapping[str, Any], receive: Receive) -> bytes:
    match scope["path"]:
        case "/die":
            os._exit(3)
        case "/hold":
            released = FOLDER / scope["query_string"].decode()
            say("holding")
            while not released.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
        case "/body":
            return str(await count(receive)).encode()
        case "/scope":
            names = ("client", "server", "scheme", "http_version")
            facts = {name: scope[name] for name in names}
            return json.dumps({**facts, "tls": scope["extensions"].get("tls")}).encode()
        case "/peak":
            return str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024).encode()
    return str(os.getpid()).encode()


async def count(receive: Receive) -> int:
    size_bytes = 0
    while True:
        message = await receive()
        size_bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            return size_bytes


@click.command()
@settings_options()
def start(**options: Any) -> None:  # noqa: ANN401 - one for each setting
    end(run_server(settings_from(options), factory=make, on_ready=announce))


if __name__ == "__main__":
    CommandGroup(commands=[start])()
