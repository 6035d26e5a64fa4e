"""How long does a watcher wait for a notification? From sending a PUT until the message arrives.

A thousand sockets watch the same document, or a document each. A document is replaced, and the next
one only when everybody who watches it has been notified, so the figure is the delay of one change,
not a rate. The sockets and the writer are in this process for every server alike: the delays
include its own time, so compare them with each other, but do not quote them.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import urlsplit

import aiohttp

from bench.messages import JSON_LD, WrongAnswer
from bench.rounds import FAILURES, progress
from bench.servers import Feature, Server
from bench.site import LOOPBACK, Site

WATCHERS: Final = 1000
CHANGES_OF_ONE: Final = 10
CHANGES_OF_MANY: Final = 200
HEARD_WITHIN_S: Final = 20.0
_OPENED_AT_ONCE: Final = 50
_PERCENT: Final = 100
_FOLDER: Final = "public/watched/"
_NOTIFICATION: Final = "http://www.w3.org/ns/solid/notifications#"


@dataclass(frozen=True, slots=True)
class Watching:
    """One line of the table: which protocol, and whether all watch the same document."""

    key: str
    title: str
    protocol: type[Listener]
    together: bool


@dataclass(slots=True)
class Delays:
    """What one server did. `why` says why there are no figures."""

    waited_ms: Sequence[float] = ()
    watcher_bytes: float | None = None
    """Resident memory that one more watcher takes; unknown where the server has had watchers
    before, whose memory it uses again."""
    message_cpu_us: float = 0.0
    """Processor time of the server for each message, its share of the PUT included."""
    why: str = ""

    @property
    def median_ms(self) -> float:
        """Half of the messages came sooner."""
        return statistics.median(self.waited_ms)

    @property
    def p99_ms(self) -> float:
        """One message in a hundred came later."""
        return statistics.quantiles(self.waited_ms, n=_PERCENT)[-1]


@dataclass(frozen=True, slots=True)
class Watched:
    """One cell of the table."""

    watching: Watching
    column: str
    delays: Delays


class Listener(ABC):
    """One socket that watches one document."""

    needs: ClassVar[Feature]

    def __init__(self, site: Site, session: aiohttp.ClientSession, path: str) -> None:
        """Nothing is opened; `path` is below the pod, and public."""
        self.site = site
        self.session = session
        self.url = site.url(path)
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    @abstractmethod
    async def open(self) -> None:
        """Watch. Raises WrongAnswer if the server does not let it."""

    @abstractmethod
    def is_news(self, text: str) -> bool:
        """Whether a message tells of a change of the document."""

    async def connect(self, url: str, *protocols: str) -> aiohttp.ClientWebSocketResponse:
        """Open the socket."""
        near = url.replace("//localhost:", f"//{LOOPBACK}:", 1)
        headers = {"Host": urlsplit(url).netloc}
        self._socket = await self.session.ws_connect(near, protocols=protocols, headers=headers)
        return self._socket

    async def heard_s(self) -> float:
        """When the next news came, by the clock `time.perf_counter`."""
        assert self._socket is not None, "not opened"
        while True:
            text = await self._socket.receive_str()
            at_s = time.perf_counter()
            if self.is_news(text):
                return at_s

    async def close(self) -> None:
        """Close the socket, if it was opened."""
        if self._socket is not None:
            await self._socket.close()


class LegacyListener(Listener):
    """The protocol solid-0.1."""

    needs = Feature.LEGACY_SOCKETS

    async def open(self) -> None:
        socket = await self.connect(await self._address(), "solid-0.1")
        await socket.send_str(f"sub {self.url}")
        while (text := await socket.receive_str()) != f"ack {self.url}":
            if not text.startswith(("protocol ", "warning ")):
                raise WrongAnswer(f"not subscribed: {text}")

    def is_news(self, text: str) -> bool:
        return text == f"pub {self.url}"

    async def _address(self) -> str:
        near = self.url.replace("//localhost:", f"//{LOOPBACK}:", 1)
        headers = {"Host": self.site.authority}
        async with self.session.head(near, headers=headers) as answer:
            return answer.headers["Updates-Via"]


class ChannelListener(Listener):
    """A WebSocketChannel2023 of the Solid Notifications Protocol."""

    needs = Feature.CHANNELS

    async def open(self) -> None:
        asked = {
            "@context": ["https://www.w3.org/ns/solid/notification/v1"],
            "type": f"{_NOTIFICATION}WebSocketChannel2023",
            "topic": self.url,
        }
        where = f"http://{LOOPBACK}:{self.site.port}/.notifications/WebSocketChannel2023/"
        headers = {"Host": self.site.authority, "Content-Type": JSON_LD}
        async with self.session.post(where, data=json.dumps(asked), headers=headers) as answer:
            text = await answer.text()
            if answer.status not in (200, 201):
                raise WrongAnswer(f"not subscribed: status {answer.status}: {text[:200]}")
        await self.connect(str(json.loads(text)["receiveFrom"]))

    def is_news(self, text: str) -> bool:
        return bool(json.loads(text)["type"] == "Update")


WATCHINGS: Final = (
    Watching("legacy-one", "solid-0.1, all watch one document", LegacyListener, together=True),
    Watching(
        "legacy-many", "solid-0.1, each watches its own document", LegacyListener, together=False
    ),
    Watching(
        "channel-one",
        "WebSocketChannel2023, all watch one document",
        ChannelListener,
        together=True,
    ),
    Watching(
        "channel-many",
        "WebSocketChannel2023, each watches its own document",
        ChannelListener,
        together=False,
    ),
)


def watched(only: Sequence[str], servers: Sequence[Server]) -> list[Watched]:
    """Measure each server that offers the protocol, one after the other."""
    cells: list[Watched] = []
    watched_before: set[Server] = set()
    for watching in WATCHINGS:
        if watching.key not in only:
            continue
        for column in dict.fromkeys(server.column for server in servers):
            able = [
                server
                for server in servers
                if server.column == column and watching.protocol.needs in server.features
            ]
            if able:
                server = able[0]
                delays = _delays(watching, server, is_first=server not in watched_before)
                watched_before.add(server)
                cells.append(Watched(watching, column, delays))
    return cells


def _delays(watching: Watching, server: Server, *, is_first: bool) -> Delays:
    where = f"{watching.key:14} {server.column:9}"
    try:
        delays = asyncio.run(_Audience(watching, server, is_first=is_first).delays())
    except (*FAILURES, aiohttp.ClientError, TypeError, TimeoutError) as failure:
        why = str(failure) or f"not all had heard after {HEARD_WITHIN_S:.0f} s"
        progress(f"{where}: VOID, {why}")
        return Delays(why=why)
    cost = f"{delays.message_cpu_us:.0f} µs of CPU a message"
    progress(f"{where}: p50 {delays.median_ms:.1f} p99 {delays.p99_ms:.1f} ms, {cost}")
    return delays


class _Audience:
    """All watchers of one server, and who gives them something to hear."""

    def __init__(self, watching: Watching, server: Server, *, is_first: bool) -> None:
        self._watching = watching
        self._server = server
        self._is_first = is_first
        documents = 1 if watching.together else WATCHERS
        self._paths = [f"{_FOLDER}{watching.key}-{number}" for number in range(documents)]

    async def delays(self) -> Delays:
        """Open all sockets, change documents, and close the sockets again."""
        everything = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=everything) as session:
            for path in self._paths:
                await self._write(session, path, 0)
            listeners = [
                self._watching.protocol(self._server.site, session, self._path(number))
                for number in range(WATCHERS)
            ]
            before_bytes = self._server.rss_bytes()
            try:
                await _open_all(listeners)
                taken_bytes = self._server.rss_bytes() - before_bytes
                before_s = self._server.cpu_s()
                waited_ms = await self._change(session, listeners)
                cpu_s = self._server.cpu_s() - before_s
            finally:
                await asyncio.gather(*(listener.close() for listener in listeners))
        watcher_bytes = max(taken_bytes, 0) / WATCHERS if self._is_first else None
        return Delays(waited_ms, watcher_bytes, cpu_s * 1e6 / len(waited_ms))

    def _path(self, number: int) -> str:
        return self._paths[number % len(self._paths)]

    async def _change(
        self, session: aiohttp.ClientSession, listeners: Sequence[Listener]
    ) -> list[float]:
        waited_ms: list[float] = []
        changes = CHANGES_OF_ONE if self._watching.together else CHANGES_OF_MANY
        for number in range(changes):
            # Far apart in the order of subscribing.
            chosen = number * 7919 % len(self._paths)
            audience = listeners if self._watching.together else [listeners[chosen]]
            hearing = [asyncio.ensure_future(each.heard_s()) for each in audience]
            await asyncio.sleep(0)  # all listen now
            sent_s = time.perf_counter()
            await self._write(session, self._paths[chosen], number + 1)
            async with asyncio.timeout(HEARD_WITHIN_S):
                heard_s = await asyncio.gather(*hearing)
            waited_ms.extend((at_s - sent_s) * 1000 for at_s in heard_s)
        return waited_ms

    async def _write(self, session: aiohttp.ClientSession, path: str, number: int) -> None:
        site = self._server.site
        body = json.dumps({"@id": "#it", "http://example.org/ns#turn": number})
        typed = {"Content-Type": JSON_LD}
        request = site.request("PUT", path, headers=typed, body=body, authorized=True)
        where = f"http://{LOOPBACK}:{site.port}{request.path}"
        async with session.put(where, data=body, headers=site.filled(request.headers)) as answer:
            if answer.status not in (200, 201, 204, 205):
                raise WrongAnswer(f"status {answer.status}: {(await answer.text())[:200]}")


async def _open_all(listeners: Sequence[Listener]) -> None:
    for start in range(0, len(listeners), _OPENED_AT_ONCE):
        await asyncio.gather(*(each.open() for each in listeners[start : start + _OPENED_AT_ONCE]))
