"""Which connections have a request in flight? Noted for every request, so it must be cheap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podstead.web.asgi import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
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
