"""One worker's whole handling of a request, in this process and without the HTTP server.

The application is assembled as a worker assembles it, on a data root of its own, and is called as
the HTTP server would call it. The clock stands still and the randomness is seeded, so that the same
requests take the same path through the code each time.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.messages import WrongAnswer
from podstead.app.process.connections.policy import Requests
from podstead.app.services import build_application
from podstead.config import Settings
from podstead.web.asgi import Message, Scope

BASE: Final = "http://localhost:3000"
HOST: Final = "localhost:3000"
POD: Final = "/alice/"
AT_ONCE: Final = 8
"""Requests that are in flight together: their writes share one commit."""

_NOW_MS: Final = 1_800_000_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, and the status that it must be answered with. Header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    status: int = 200


class StandingClock:
    """A clock that does not move."""

    def now_ms(self) -> int:
        """The same moment each time."""
        return _NOW_MS


class SeededRandomness:
    """Values that are the same in every run with the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def token_hex(self, size_bytes: int) -> str:
        """Digits that are random enough to differ."""
        return self._random.randbytes(size_bytes).hex()


class Exchange:
    """One request on its way through the application, made before it is measured."""

    __slots__ = ("_asked", "_received", "body", "headers", "scope", "status")

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._received = False
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body: list[bytes] = []
        fields = {"host": HOST, **asked.headers}
        if asked.body:
            fields["content-length"] = str(len(asked.body))
        path, _, query = asked.path.partition("?")
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": asked.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in fields.items()],
            "client": ("127.0.0.1", "12345"),
            "server": ("127.0.0.1", "3000"),
            "extensions": {},
        }

    async def receive(self) -> Message:
        """The whole body, and after that nothing: the client stays."""
        if self._received:
            await asyncio.Event().wait()
        self._received = True
        return {"type": "http.request", "body": self._asked.body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Note what the application answers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = dict(message["headers"])
        elif message["type"] == "http.response.body":
            self.body.append(message.get("body", b""))

    def require(self) -> bytes:
        """Return the body of the answer.

        Raises:
            WrongAnswer: it has another status than was expected.
        """
        body = b"".join(self.body)
        if self.status != self._asked.status:
            asked = f"{self._asked.method} {self._asked.path}"
            raise WrongAnswer(f"{asked}: status {self.status}: {body[:300]!r}")
        return body


@dataclass(slots=True)
class Worker:
    """The running application. ``token`` is the owner's, once there is a pod."""

    call: Any
    settings: Settings
    token: str = ""

    async def make_pod(self) -> None:
        """Create the pod at `POD`."""
        body = json.dumps({"name": POD.strip("/")}).encode()
        asked = Asked("POST", "/.pods", {"content-type": "application/json"}, body, 201)
        made = await self.ask(asked)
        self.token = str(json.loads(made.require())["token"])

    def authorized(self, headers: Mapping[str, str] | None = None) -> dict[str, str]:
        """The header fields with the owner's token among them."""
        return {"authorization": f"Bearer {self.token}", **(headers or {})}

    async def ask(self, asked: Asked) -> Exchange:
        """Send one request.

        Raises:
            WrongAnswer: it was not answered as expected.
        """
        exchange = Exchange(asked)
        await self.call(exchange.scope, exchange.receive, exchange.send)
        exchange.require()
        return exchange

    async def ask_all(self, every: Iterable[Asked]) -> None:
        """Send these, `AT_ONCE` at a time. Raises WrongAnswer as :meth:`ask` does."""
        exchanges = [Exchange(asked) for asked in every]
        await self.carry_out(exchanges)
        for exchange in exchanges:
            exchange.require()

    async def carry_out(self, exchanges: Sequence[Exchange]) -> None:
        """Do only what a worker does, for requests that were made before."""
        for start in range(0, len(exchanges), AT_ONCE):
            await asyncio.gather(
                *(
                    self.call(each.scope, each.receive, each.send)
                    for each in exchanges[start : start + AT_ONCE]
                )
            )


def root_settings(root: Path, **changes: Any) -> Settings:  # noqa: ANN401 - any of the settings
    """The settings of a worker whose data root this is."""
    return Settings(root=root, base_url=BASE, workers=1, pod_creations_per_hour=0, **changes)


def request_settings(root: Path) -> Settings:
    """The same without the index of the search, which is kept up in the background."""
    return root_settings(root).with_values(search=False)


@asynccontextmanager
async def running_worker(
    settings: Settings, *, seed: int = 1, token: str = ""
) -> AsyncIterator[Worker]:
    """Start the application of a worker. Its data root must be held (`prepared_root`)."""
    application = build_application(
        settings, clock=StandingClock(), randomness=SeededRandomness(seed)
    )
    await application.lifespan.start()
    try:
        yield Worker(partial(Requests().track, application), settings, token)
    finally:
        await application.lifespan.drain()
        await application.lifespan.stop()
