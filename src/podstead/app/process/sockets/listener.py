"""The listener for WebSockets of one worker.

They have a port of their own, since the HTTP server cannot give connections away. It accepts them
as long as the worker has fewer than ``max_connections`` of them; more wait in the system's queue.
How long a connection may be silent, and how many an address may hold, is watched as for the HTTP
server (``connections/``).

A connection is a WebSocket of the application: framing, flow control, closing. The only module that
knows the WebSocket library, of which it uses the part without I/O. The application sees an ASGI
scope of type ``websocket``, as it does from the HTTP server, so every rule about sockets holds in
the same way on both. What differs is the price: no read buffer stays with a connection, and a
message is written to the connection by the caller, without another thread.
"""

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, cast

from websockets.datastructures import Headers
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from podstead.app.process.accepting import Acceptor, Address
from podstead.web.asgi import Application, Message, Scope

logger = logging.getLogger("podstead.app")

MAX_MESSAGE_BYTES: Final = 128 * 1024
"""The maximum size of a message from a client, which is closed with 1009 above it. Endpoints have
lower limits of their own, and answer."""
CLOSE_TIMEOUT_S: Final = 5.0
"""How long a client may take to answer the end of its socket, or to receive a refusal."""
_MAX_UNREAD: Final = 4
"""How many messages of a client are kept for the application before nothing more is read."""
_MAX_UNSENT_BYTES: Final = 16 * 1024
"""How much may wait here for a slow client; further messages wait in its queue."""


class SocketConnection(asyncio.Protocol):
    """One connection, from its handshake to its end."""

    __slots__ = (
        "_address",
        "_handshake",
        "_has_unsent",
        "_is_connected",
        "_is_lost",
        "_is_open",
        "_is_paused",
        "_is_text",
        "_loop",
        "_owner",
        "_parts",
        "_plain",
        "_protocol",
        "_received",
        "_sending",
        "_serving",
        "_timer",
        "_transport",
        "_waiter",
    )

    def __init__(
        self,
        owner: "SocketListener",
        address: Address,
        loop: asyncio.AbstractEventLoop,
        plain: socket.socket | None,
    ) -> None:
        """``plain`` is the connected socket if what is written to it needs no TLS."""
        self._plain = plain
        self._owner = owner
        self._address = address
        self._loop = loop
        self._protocol = ServerProtocol(max_size=MAX_MESSAGE_BYTES)
        self._transport: asyncio.Transport  # from connection_made on
        self._timer: asyncio.TimerHandle | None = None
        self._serving: asyncio.Task[None] | None = None
        self._handshake: Response | None = None
        self._received: deque[Message] = deque()
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._sending: asyncio.Future[None] | None = None
        """Pending while the client takes too little; the result of the sends meanwhile."""
        self._is_connected = False
        self._is_open = False
        self._has_unsent = False
        self._is_text = False
        self._is_paused = False
        self._is_lost = False

    # --- what the event loop calls ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_MAX_UNSENT_BYTES)
        self._timer = self._loop.call_later(self._owner.handshake_timeout_s, self.abort)

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._begin(event)
            elif isinstance(event, Frame):
                self._take(event)
        self._flush()

    def eof_received(self) -> None:
        self._protocol.receive_eof()

    def pause_writing(self) -> None:
        self._sending = self._loop.create_future()
        # Else the answers to pings of a client that reads nothing would accumulate.
        self._pause_reading()

    def resume_writing(self) -> None:
        if self._sending is not None and not self._sending.done():
            self._sending.set_result(None)
        self._sending = None
        if len(self._received) < _MAX_UNREAD:
            self._resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_lost = True
        self._is_open = False
        self._cancel_timer()
        if self._sending is not None and not self._sending.done():
            _fail(self._sending)
        self._put({"type": "websocket.disconnect", "code": self._close_code()})
        self._owner.note_end(self)

    # --- what the listener calls --------------------------------------------------------------

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    # --- what the application calls -----------------------------------------------------------

    async def receive(self) -> Message:
        """The next event."""
        if not self._is_connected:
            self._is_connected = True
            return {"type": "websocket.connect"}
        while not self._received:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._received.popleft()
        if self._is_paused and self._sending is None and not self._received:
            self._resume_reading()
        return message

    def send(self, message: Message) -> asyncio.Future[None]:
        """Carry out an event. The future is done when the client takes more; it fails with
        RuntimeError if the client has disconnected."""
        kind = message["type"]
        if kind == "websocket.send":
            if not self._is_open:
                return _fail(self._loop.create_future())
            # Not by the protocol, which would write the same frame anew for each watcher.
            self._write_at_once(self._owner.frame_of(message["text"]))
        elif self._is_lost:
            return _fail(self._loop.create_future())
        elif kind == "websocket.accept":
            self._accept(message.get("subprotocol"))
        elif kind == "websocket.close":
            self._close(message.get("code", CloseCode.NORMAL_CLOSURE), message.get("reason") or "")
        elif kind == "websocket.http.response.start":
            self._handshake = _response(message["status"], message["headers"])
        elif kind == "http.response.body":
            self._refuse(message["body"])
        return self._sending or self._owner.done

    # --- steps --------------------------------------------------------------------------------

    def _begin(self, request: Request) -> None:
        response = self._protocol.accept(request)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._protocol.send_response(response)
            self._end_soon()
            return
        self._handshake = response
        # Kept, because the event loop holds tasks by weak references only.
        self._serving = self._loop.create_task(self._serve(self._scope(request)))

    async def _serve(self, scope: Scope) -> None:
        try:
            await self._owner.application(scope, self.receive, self.send)
        except Exception:
            logger.exception("A WebSocket ended with an unexpected error")
        finally:
            self._serving = None
            if self._is_open:
                self._close(CloseCode.INTERNAL_ERROR, "")
            elif self._handshake is not None:
                self.abort()

    def _scope(self, request: Request) -> Scope:
        path, _, query = request.path.partition("?")
        owner = self._owner
        offered = request.headers.get_all("Sec-WebSocket-Protocol")
        return {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": owner.scheme,
            "path": path,
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "root_path": "",
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in request.headers.raw_items()
            ],
            "client": self._address,
            "server": owner.server_address,
            "subprotocols": [each.strip() for line in offered for each in line.split(",")],
            "extensions": {"websocket.http.response": {}},
        }

    def _accept(self, protocol: str | None) -> None:
        response, self._handshake = self._handshake, None
        if response is None:
            return
        self._cancel_timer()
        if protocol is not None:
            response.headers["Sec-WebSocket-Protocol"] = protocol
        self._protocol.send_response(response)
        self._is_open = True
        self._flush()

    def _refuse(self, body: bytes) -> None:
        response, self._handshake = self._handshake, None
        if response is None:
            return
        response.body = body
        if "Content-Length" not in response.headers:
            response.headers["Content-Length"] = str(len(body))
        self._protocol.send_response(response)
        self._flush()
        self._end_soon()

    def _close(self, code: int, reason: str) -> None:
        self._is_open = False
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
        self._flush()
        self._end_soon()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self._is_open = False
            self._put({"type": "websocket.disconnect", "code": self._close_code()})
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._parts = []
            self._is_text = frame.opcode is Opcode.TEXT
        if frame.data:  # else a client could send empty fragments forever
            self._parts.append(bytes(frame.data))
        if not frame.fin:
            return
        content, self._parts = b"".join(self._parts), []
        if not self._is_text:
            self._put({"type": "websocket.receive", "bytes": content})
            return
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "not UTF-8")
            return
        self._put({"type": "websocket.receive", "text": text})

    def _write_at_once(self, frame: bytes) -> None:
        """Write a frame before the next one is prepared for another client. The event loop would
        write all of them together, and the first client would wait for the last."""
        transport = self._transport
        if self._has_unsent:
            self._has_unsent = transport.get_write_buffer_size() > 0
        if self._plain is not None and not self._has_unsent:
            try:
                sent = self._plain.send(frame)
            except OSError:  # it would block, or the connection is gone, as the loop will find
                sent = 0
            if sent == len(frame):
                return
            frame = frame[sent:]
        self._has_unsent = True
        transport.write(frame)

    def _put(self, message: Message) -> None:
        self._received.append(message)
        if len(self._received) >= _MAX_UNREAD:
            self._pause_reading()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _flush(self) -> None:
        transport = self._transport
        if transport.is_closing():
            return
        for data in self._protocol.data_to_send():
            if data:
                self._has_unsent = True
                transport.write(data)
            else:
                self._finish()
                return

    def _finish(self) -> None:
        """End the server's side, which closes first (RFC 6455 section 7.1.1)."""
        self._end_soon()
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        # What comes now is read and dropped until the client has seen the end: closing a socket
        # with unread data resets the connection, and the client could lose the reason.
        self._transport.write_eof()
        self._resume_reading()

    def _end_soon(self) -> None:
        """Close the connection after a while, whatever the client does."""
        self._cancel_timer()
        if not self._is_lost:
            self._timer = self._loop.call_later(CLOSE_TIMEOUT_S, self.abort)

    def _close_code(self) -> int:
        received = self._protocol.close_rcvd
        return CloseCode.ABNORMAL_CLOSURE if received is None else received.code

    def _pause_reading(self) -> None:
        if not self._is_paused and not self._is_lost:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_paused and not self._is_lost:
            self._is_paused = False
            self._transport.resume_reading()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def text_frame(text: str) -> bytes:
    """The frame of a message to a client (RFC 6455 section 5.2)."""
    return Frame(Opcode.TEXT, text.encode("utf-8")).serialize(mask=False)


def _response(status: int, fields: Sequence[tuple[bytes, bytes]]) -> Response:
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields])
    headers["Connection"] = "close"
    return Response(status, HTTPStatus(status).phrase, headers)


def _fail(sending: asyncio.Future[None]) -> asyncio.Future[None]:
    sending.set_exception(RuntimeError("The client has disconnected"))
    sending.exception()  # nobody has to ask for it
    return sending


class SocketListener(Acceptor[SocketConnection]):
    """Accepts connections for WebSockets."""

    def __init__(
        self,
        listener: socket.socket,
        application: Application,
        *,
        tls: Callable[[], ssl.SSLContext | None],
        handshake_timeout_s: float,
        max_connections: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``tls`` is asked for each connection, since certificates are renewed."""
        super().__init__(listener, max_connections=max_connections, loop=loop)
        self.application = application
        self.handshake_timeout_s = handshake_timeout_s
        self.scheme = "ws" if tls() is None else "wss"
        self.done: asyncio.Future[None] = loop.create_future()
        """What sends return that need not wait."""
        self.done.set_result(None)
        self._tls = tls
        self._framed: tuple[str, bytes] = ("", b"")

    def frame_of(self, text: str) -> bytes:
        """The frame of a message."""
        # A notification goes to many clients, one after the other.
        if text != self._framed[0]:
            self._framed = (text, text_frame(text))
        return self._framed[1]

    def _open(self, accepted: socket.socket, peer: Address) -> None:
        tls = self._tls()
        plain = accepted if tls is None else None
        self._connect(SocketConnection(self, peer, self._loop, plain), accepted, tls)
