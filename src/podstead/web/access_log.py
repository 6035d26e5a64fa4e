"""Writes one line for each request, in the Common Log Format or as JSON.

A line never contains a query, since sign-ins send codes in it, nor the rest of a path of the
server's own pages, which may be a secret. Everything that clients choose is escaped, so that no
request can forge a line.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from podstead.core import request_context
from podstead.core.clock import Clock
from podstead.idp.administration.audit_log import shown_path
from podstead.web.application import Application
from podstead.web.asgi import Message, Receive, Scope, Send
from podstead.web.body import RequestReceiver
from podstead.web.request_ids import id_field, peer_of
from podstead.web.sending import send_response

COMMON: Final = "common"
_NONE: Final = "-"
_LOWEST_SERVER_ERROR: Final = 500
_UNSAFE: Final = re.compile(r"[^\x21\x23-\x5b\x5d-\x7e]")
"""Control characters, spaces, quotes, backslashes, and what is not ASCII."""
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class LoggedRequest(msgspec.Struct, frozen=True):
    """One line. ``agent`` is the WebID of whoever made the request, if it is known."""

    time: str
    request_id: str
    client_address: str
    agent: str | None
    method: str
    path: str
    protocol: str
    status: int
    sent_bytes: int
    duration_ms: float


class SentBytes:
    """Counts the bytes of a body on their way to the HTTP server."""

    __slots__ = ("_announced_bytes", "_send", "count")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._announced_bytes = 0
        self.count = 0
        """The bytes of the body so far."""

    async def __call__(self, message: Message) -> None:
        """Pass a message on."""
        kind = message["type"]
        if kind == "http.response.start":
            fields = dict(message["headers"])
            self._announced_bytes = int(fields.get(b"content-length", b"0"))
        await self._send(message)
        if kind == "http.response.body":
            self.count += len(message["body"])
        elif kind != "http.response.start":  # a file, which the HTTP server reads
            self.count = self._announced_bytes


class AccessLog:
    """Writes lines about some requests, or all."""

    def __init__(
        self, write: Callable[[bytes], None], *, clock: Clock, form: str, percent: int
    ) -> None:
        """``write`` gets each line with its end. Of a hundred requests, ``percent`` are logged, and
        all errors of the server."""
        self._write = write
        self._clock = clock
        self._is_common = form == COMMON
        self._percent = percent
        self._sum = 0

    def note(
        self,
        scope: Scope,
        *,
        request_id: str,
        client_address: str,
        agent: str | None,
        status: int,
        sent_bytes: int,
        duration_s: float,
    ) -> None:
        """Log a request, if it is one of those that are logged."""
        if not self._is_chosen(status):
            return
        path = shown_path(scope["path"]).replace("…", "...")
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, tz=UTC)
        entry = LoggedRequest(
            time=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            request_id=request_id,
            client_address=client_address,
            agent=agent,
            method=scope["method"],
            path=f"{path}?..." if scope["query_string"] else path,
            protocol=f"HTTP/{scope['http_version']}",
            status=status,
            sent_bytes=sent_bytes,
            duration_ms=round(duration_s * 1000, 3),
        )
        line = _common(entry, now) if self._is_common else msgspec.json.encode(entry)
        self._write(line + b"\n")

    def _is_chosen(self, status: int) -> bool:
        # Evenly spread: of 100 requests in a row, exactly `percent`.
        self._sum += self._percent
        chosen = self._sum >= 100
        self._sum %= 100
        return chosen or status >= _LOWEST_SERVER_ERROR


def _common(entry: LoggedRequest, now: datetime) -> bytes:
    """The Common Log Format, with the id of the request at the end."""
    month = _MONTHS[now.month - 1]
    moment = f"{now.day:02d}/{month}/{now:%Y:%H:%M:%S} +0000"
    request = f"{_escaped(entry.method)} {_escaped(entry.path)} {entry.protocol}"
    return (
        f"{_escaped(entry.client_address) or _NONE} - {_escaped(entry.agent or _NONE)} "
        f'[{moment}] "{request}" {entry.status} {entry.sent_bytes or _NONE} {entry.request_id}'
    ).encode("ascii")


def _escaped(text: str) -> str:
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    octets = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"\\x{octet:02x}" for octet in octets)


# The application with an access log: each response has the id of its request.
#
# An application of its own, so that a server without an access log does not pay for it.


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
        request_context.set_request_id(mark)
        incoming, sent = RequestReceiver(receive, scope), SentBytes(send)
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
        mark = request_context.current_request_id()
        self._access_log.note(
            scope,
            request_id="" if mark is None else mark.request_id,
            client_address=request_context.requester_address() or peer_of(scope),
            agent=request_context.requester_agent(),
            status=status,
            sent_bytes=0,
            duration_s=took_s,
        )
