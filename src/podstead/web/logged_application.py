"""The application with an access log: each response has the id of its request.

An application of its own, so that a server without an access log does not pay for it.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from msgspec.structs import replace

from podstead.core.request_context import current_mark, requester_address, requester_agent, set_mark
from podstead.web.access_log import AccessLog, SentBytes
from podstead.web.application import Application
from podstead.web.asgi import Receive, Scope, Send
from podstead.web.body import Incoming
from podstead.web.request_ids import id_field, peer_of
from podstead.web.sending import send_response


class LoggedApplication(Application):
    """Logs each request when its response has been sent."""

    is_logged = True

    def __init__(self, access_log: AccessLog, **parts: Any) -> None:  # noqa: ANN401 - those of Application
        super().__init__(**parts)
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        began_s = monotonic()
        mark = self.ids.mark(scope)
        set_mark(mark)
        incoming, sent = Incoming(receive, scope), SentBytes(send)
        response = await self._respond(scope, incoming)
        address, agent = response.requester or (peer_of(scope), None)
        # A copy: the response may be in the cache.
        response = replace(response, headers=[*response.headers, id_field(mark)])
        take_timeout_s = self._body_pace.idle_timeout_s
        try:
            await send_response(response, scope, incoming, sent, take_timeout_s=take_timeout_s)
        finally:
            self._access_log.note(
                scope,
                request_id=mark.request_id,
                client_address=address,
                agent=agent,
                status=response.status,
                sent_bytes=sent.count,
                duration_s=monotonic() - began_s,
            )
        await incoming.linger()

    def note_socket(self, route: str, scope: Scope, status: int, took_s: float) -> None:
        """Count and log a WebSocket that has ended or was refused."""
        super().note_socket(route, scope, status, took_s)
        mark = current_mark()
        self._access_log.note(
            scope,
            request_id="" if mark is None else mark.request_id,
            client_address=requester_address() or peer_of(scope),
            agent=requester_agent(),
            status=status,
            sent_bytes=0,
            duration_s=took_s,
        )
