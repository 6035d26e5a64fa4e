"""Decides which connections are to be closed, and which addresses blocked for a while. Pure.

The rules, in the order in which they apply:

- A connection that receives nothing of what is sent to it for ``stall_timeout_s`` is closed.
- A connection without a request in flight for ``idle_timeout_s`` is closed, whatever it has sent
  in the meantime: half a preface, a TLS handshake, pings.
- An address that holds more than its share loses connections: first those that never had a
  request, then idle ones, each from the oldest; then those with a request in flight, from the
  newest. It stays blocked while it comes back faster than connections can be closed.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from podstead.web.asgi import Application, Receive, Scope, Send

SIGNIFICANT_BYTES = 4096
"""How much a client must receive within ``idle_timeout_s`` for that to be a response. The answers
to HTTP/2 pings stay below it."""
BLOCK_S = 2.0
"""How long an address stays blocked after it held more than its share for the last time."""
PRESSURE = 0.5
"""The part of all connections above which an address beyond its share is blocked."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """``per_address`` connections of ``connections`` may belong to one address."""

    connections: int
    per_address: int
    idle_timeout_s: float
    stall_timeout_s: float


@dataclass(frozen=True, slots=True)
class Sent:
    """What the kernel knows about the data sent on a connection."""

    is_pending: bool
    """Whether there is data that the client has not acknowledged."""
    acknowledged_bytes: int


@dataclass(slots=True, eq=False)
class Connection:
    """One connection. ``holder`` is the address whose share it is part of; ``None`` for a trusted
    proxy, which may hold any number."""

    holder: Hashable | None
    since_s: float
    requests: int = 0
    """How many requests have begun."""
    is_busy: bool = False
    """Whether a request is in flight."""
    _seen: tuple[int, int] = (0, 0)
    _idle_since_s: float = field(init=False)
    _idle_at_bytes: int = 0
    _pending_since_s: float | None = None
    _pending_at_bytes: int = 0

    def __post_init__(self) -> None:
        self._idle_since_s = self.since_s

    def note_requests(self, counts: tuple[int, int], *, now_s: float) -> None:
        """Note how many requests have begun and ended."""
        begun, ended = counts
        self.requests, self.is_busy = begun, begun != ended
        # A request that began and ended between two looks shows in the counts only.
        if self.is_busy or counts != self._seen:
            self._idle_since_s = now_s
        self._seen = counts

    def note_sent(self, sent: Sent, *, now_s: float) -> None:
        """Note what the client has received."""
        taken = sent.acknowledged_bytes
        # Any progress starts the time anew: slow readers are served, only stalled ones are not.
        if sent.is_pending:
            if self._pending_since_s is None or taken != self._pending_at_bytes:
                self._pending_since_s, self._pending_at_bytes = now_s, taken
        else:
            self._pending_since_s = None
        # A response may still be on its way after its request has ended here, or have gone out
        # since the last look. The answers to pings are too small to keep a connection open.
        if sent.is_pending or taken - self._idle_at_bytes >= SIGNIFICANT_BYTES:
            self._idle_since_s, self._idle_at_bytes = now_s, taken

    def is_stalled(self, bounds: Bounds, *, now_s: float) -> bool:
        """Whether the client has received nothing for too long."""
        since_s = self._pending_since_s
        return since_s is not None and now_s - since_s > bounds.stall_timeout_s

    def is_idle(self, bounds: Bounds, *, now_s: float) -> bool:
        """Whether there was no request for too long."""
        return not self.is_busy and now_s - self._idle_since_s > bounds.idle_timeout_s

    @property
    def precedence(self) -> tuple[bool, bool, float]:
        """The connection with the lowest value is closed first."""
        # Of connections in use the newest is closed first (hence the minus), of others the oldest.
        if self.is_busy or self._pending_since_s is not None:
            return True, True, -self.since_s
        return False, self.requests > 0, self.since_s


class Shares:
    """Enforces that no address holds more than its share."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._blocked_until_s: dict[Hashable, float] = {}

    @property
    def is_contended(self) -> bool:
        """Whether an address was beyond its share a moment ago."""
        return bool(self._blocked_until_s)

    def excess(self, connections: Iterable[Connection], *, now_s: float) -> list[Connection]:
        """Which of the open connections to close."""
        by_holder: dict[Hashable, list[Connection]] = {}
        total = 0
        for connection in connections:
            total += 1
            if connection.holder is not None:
                by_holder.setdefault(connection.holder, []).append(connection)
        closed: list[Connection] = []
        for holder, held in by_holder.items():
            if len(held) > self._bounds.per_address:
                closed += sorted(held, key=attrgetter("precedence"))[
                    : len(held) - self._bounds.per_address
                ]
                # Closing is enough while there is room for others; the filter drops everything from
                # the address, whoever sends it.
                if total > self._bounds.connections * PRESSURE:
                    self._blocked_until_s[holder] = now_s + BLOCK_S
        return closed

    def blocked(self, *, now_s: float) -> Sequence[Hashable]:
        """The addresses from which no connection is accepted at the moment, the latest last."""
        for holder, until_s in list(self._blocked_until_s.items()):
            if until_s < now_s:
                del self._blocked_until_s[holder]
        return [
            holder
            for holder, _ in sorted(self._blocked_until_s.items(), key=lambda entry: entry[1])
        ]


Client = tuple[str, str]
"""A host and a port, both as text, as the HTTP server passes them."""


class Requests:
    """Counts the requests of each open connection. Written by the event loop, read by a thread.

    For each client there is a list of two numbers: the requests that have begun and those that have
    ended. Both only grow, so the reader needs no lock: a change of either means that the connection
    is in use, and a request is in flight while they differ.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Client, list[int]] = {}

    async def track(
        self, application: Application, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have the application answer a request, or serve a WebSocket to its end."""
        client = scope["client"]
        counts = self._counts.get(client)
        if counts is None:
            self._counts[client] = counts = [0, 0]
        counts[0] += 1
        try:
            await application(scope, receive, send)
        finally:
            counts[1] += 1

    def of(self, client: Client) -> tuple[int, int]:
        """How many requests have begun, and how many of them have ended."""
        counts = self._counts.get(client)
        return (0, 0) if counts is None else (counts[0], counts[1])

    def forget_all_but(self, clients: set[Client]) -> None:
        """Drop the counts of connections that are gone."""
        for client in list(self._counts):
            if client not in clients:
                begun, ended = self.of(client)
                # A request may still run when its connection is gone, and will note its end.
                if begun == ended:
                    self._counts.pop(client, None)
