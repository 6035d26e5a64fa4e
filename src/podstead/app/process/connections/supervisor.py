"""Closes connections and blocks addresses, in a thread of each worker, about once a second."""

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from podstead.app.process.connections.kernel import Descriptors, PacketFilter, Peer, read_name
from podstead.app.process.connections.policy import Bounds, Client, Connection, Requests, Shares
from podstead.config import Settings

logger = logging.getLogger("podstead.app")

_LOOK_S = 1.0
"""How long to wait between two looks, at most; less if the timeouts are short."""
_LOOKS_FOR_EACH_TIMEOUT = 4
_LOOK_WHEN_CONTENDED_S = 0.1
"""The same while an address holds more than its share."""
_LOOK_WHEN_FULL_S = 0.25
_FULL = 0.875
"""The part of all connections above which the worker is nearly full."""
ADDRESS_SHARE = 0.25
"""The part of all connections that one client address (for IPv6, one /64 network) may hold: enough
for a whole office behind one address, and a single attacker cannot take the rest."""

Network = IPv4Network | IPv6Network


def bounds_of(settings: Settings) -> Bounds:
    """The bounds of one worker."""
    return Bounds(
        connections=settings.max_connections,
        per_address=max(1, int(settings.max_connections * ADDRESS_SHARE)),
        idle_timeout_s=settings.header_read_timeout_s,
        stall_timeout_s=settings.body_idle_timeout_s,
    )


@dataclass(slots=True)
class _Tracked:
    """A connection, with what identifies it at the next look."""

    descriptor: int
    name: bytes
    port: int
    client: Client
    connection: Connection
    is_ended: bool = False


class Supervisor:
    """Watches the connections of one worker. Linux only; does nothing elsewhere."""

    def __init__(
        self,
        *,
        filters: Mapping[int, PacketFilter],
        bounds: Bounds,
        trusted: tuple[Network, ...],
    ) -> None:
        """``filters`` has the ports of the worker, each with the filter of its listener."""
        self._filters = filters
        self._bounds = bounds
        self._trusted = trusted
        self.requests = Requests()
        """The application notes here which requests are in flight."""
        self._shares = Shares(bounds)
        self._descriptors = Descriptors()
        self._known: dict[int, _Tracked] = {}
        self._others: dict[int, bytes] = {}
        """Connected sockets that are not clients' connections, by descriptor. Remembered, so that
        each is examined once and not at every look."""
        shortest_s = min(bounds.idle_timeout_s, bounds.stall_timeout_s)
        self._look_s = min(_LOOK_S, shortest_s / _LOOKS_FOR_EACH_TIMEOUT)
        self._asked_s = 0.0

    def watch(self) -> None:
        """Look again and again, until the process ends."""
        if sys.platform != "linux":
            return
        while True:
            time.sleep(self._pause_s())
            try:
                self.look(time.monotonic())
            except Exception:  # without this thread, no bound would hold any more
                logger.exception("The connections could not be looked at")

    def block_nobody(self) -> None:
        """The worker accepts no more connections. Those that it has are still watched."""
        for each in self._filters.values():
            each.detach()

    def _pause_s(self) -> float:
        if self._shares.is_contended:
            return min(self._look_s, _LOOK_WHEN_CONTENDED_S)
        if len(self._known) > self._bounds.connections * _FULL:
            return min(self._look_s, _LOOK_WHEN_FULL_S)
        return self._look_s

    def look(self, now_s: float) -> None:
        """Look once at all connections, and do what the policy says."""
        self._find(now_s)
        self.requests.forget_all_but({each.client for each in self._known.values()})
        # While there is contention, shares are checked more often than timeouts need to be, and
        # asking TCP_INFO of every connection takes time.
        is_due = now_s - self._asked_s >= self._look_s
        if is_due:
            self._asked_s = now_s
        for known in self._known.values():
            known.connection.note_requests(self.requests.of(known.client), now_s=now_s)
            if is_due and not known.is_ended:
                self._judge(known, now_s)
        connections = {each.connection: each for each in self._known.values() if not each.is_ended}
        for connection in self._shares.excess(connections, now_s=now_s):
            self._end(connections[connection], abort=True)
        blocked = self._shares.blocked(now_s=now_s)
        for each in self._filters.values():
            each.block(blocked)

    def _judge(self, known: _Tracked, now_s: float) -> None:
        connection, bounds = known.connection, self._bounds
        sent = self._descriptors.sent(known.descriptor)
        if sent is not None:
            connection.note_sent(sent, now_s=now_s)
        if connection.is_stalled(bounds, now_s=now_s):
            # Otherwise the kernel would keep what is unsent for minutes.
            self._end(known, abort=True)
        elif connection.is_idle(bounds, now_s=now_s):
            self._end(known, abort=False)

    def _find(self, now_s: float) -> None:
        before, self._known = self._known, {}
        others, self._others = self._others, {}
        for descriptor, name in self._descriptors.connected():
            known = before.get(descriptor)
            # The same number may by now be another connection, which has another peer.
            if known is not None and known.name == name:
                self._known[descriptor] = known
            elif others.get(descriptor) == name:
                self._others[descriptor] = name
            else:
                self._meet(descriptor, name, now_s)

    def _meet(self, descriptor: int, name: bytes, now_s: float) -> None:
        peer = read_name(name)
        port = self._descriptors.local_port(descriptor)
        if peer is None or port is None or port not in self._filters:
            self._others[descriptor] = name
            return
        connection = Connection(client_network(peer, self._trusted), now_s)
        self._known[descriptor] = _Tracked(descriptor, name, port, peer.client, connection)

    def _end(self, known: _Tracked, *, abort: bool) -> None:
        # It stays known until the HTTP server has closed it; otherwise the next look would take it
        # for a new connection.
        known.is_ended = self._descriptors.end(
            known.descriptor, known.name, port=known.port, abort=abort
        )


def client_network(peer: Peer, trusted: tuple[Network, ...]) -> Network | None:
    """The network that one customer usually gets: an IPv4 address, or an IPv6 /64; ``None`` for a
    trusted proxy."""
    address: IPv4Address | IPv6Address = peer.address
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in trusted):
        return None
    return ip_network((address, 64 if isinstance(address, IPv6Address) else 32), strict=False)
