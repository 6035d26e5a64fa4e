"""How many may listen at once, and how do they all end when the server stops?

Each listener (a socket, or an answer that is sent as long as there is something to tell) costs
memory and a connection, so those of one address and of one agent are bounded (N-31). Counted in
each worker by itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from podstead.core.errors import RateLimited
from podstead.core.identity import Identity
from podstead.notifications.subscriber_queue import CAPACITY, EndReason, SubscriberQueue
from podstead.web.limits import address_key

_RETRY_S = 30
MAX_PER_AGENT = 100
"""The maximum number of WebSockets that one authenticated agent may hold open at each worker."""


class OpenSockets:
    """The listeners of one worker."""

    def __init__(
        self, *, per_address: int, per_agent: int = MAX_PER_AGENT, mailbox_capacity: int = CAPACITY
    ) -> None:
        """At most so many of one address and of one agent; 0 for any number. Each gets a mailbox
        for ``mailbox_capacity`` messages."""
        self._per_address = per_address
        self._per_agent = per_agent
        self._capacity = mailbox_capacity
        self._open: Counter[Hashable] = Counter()
        self._mailboxes: set[SubscriberQueue] = set()
        self._all_gone = asyncio.Event()
        self._stopping = False

    @contextmanager
    def admit(self, client_address: str, agent: Identity | None) -> Iterator[SubscriberQueue]:
        """The mailbox of a new listener, who is gone when the context ends. Raises RateLimited."""
        places: list[tuple[Hashable, int]] = [
            (("address", address_key(client_address)), self._per_address)
        ]
        if agent is not None:
            places.append((("agent", agent.iri), self._per_agent))
        if any(0 < most <= self._open[place] for place, most in places):
            raise RateLimited(retry_after_s=_RETRY_S)
        mailbox = SubscriberQueue(capacity=self._capacity)
        self._mailboxes.add(mailbox)
        self._open.update(place for place, _ in places)
        if self._stopping:
            mailbox.close(EndReason.STOPPING)
        try:
            yield mailbox
        finally:
            mailbox.close()
            self._leave(mailbox, [place for place, _ in places])

    async def drain(self) -> None:
        """Tell every listener that the server stops, and wait until they have gone."""
        self._stopping = True
        for mailbox in tuple(self._mailboxes):
            mailbox.close(EndReason.STOPPING)
        self._all_gone.clear()
        if self._mailboxes:
            await self._all_gone.wait()

    def _leave(self, mailbox: SubscriberQueue, places: list[Hashable]) -> None:
        self._mailboxes.discard(mailbox)
        for place in places:
            self._open[place] -= 1
            if self._open[place] == 0:
                del self._open[place]
        if not self._mailboxes:
            self._all_gone.set()
