"""Passes the bytes of one connection between the client and the HTTP server.

There are two halves, each the protocol of one socket: the client's, with TLS, and the HTTP
server's, in plain text over a Unix socket. A half that cannot send makes the other one stop
reading, so data for a slow reader stays with the sender and does not accumulate here. The end of
one direction is passed on as such: a client may end its side and still get the response.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, cast

from podstead.app.process.tls.engine import Handshake, TlsConnection, TlsFailed

logger = logging.getLogger("podstead.app")

HANDSHAKE_TIMEOUT_S = 10.0
"""How long a handshake may take; the same as on the ordinary TLS listener."""
LINGER_S = 1.0
"""How long a client may go on sending after the last response, until it has received its end.
Closing a socket with unread data resets the connection, and the client could lose the part of the
response that is still on its way (RFC 9112 section 9.6)."""
MAX_ANSWERED_BYTES = 64 * 1024
"""How many bytes TLS itself may send in response to a client on one connection after the handshake.
Otherwise the responses to a client that requests key updates again and again, and does not read,
would accumulate here (RFC 8446 section 4.6.3)."""


class Owner(Protocol):
    """What a connection needs besides its two halves."""

    async def admit(self, client: ClientHalf, handshake: Handshake) -> ServerHalf:
        """Connect a client whose handshake is complete to the HTTP server. Raises OSError, which
        has been logged."""

    def note_end(self, connection: ClientHalf) -> None:
        """The client's connection is closed."""


class _Half(asyncio.Protocol):
    """The operations that one half offers the other."""

    _transport: asyncio.Transport | None = None

    def pause_reading(self) -> None:
        if (transport := self._open_transport()) is not None:
            transport.pause_reading()

    def resume_reading(self) -> None:
        if (transport := self._open_transport()) is not None:
            transport.resume_reading()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _open_transport(self) -> asyncio.Transport | None:
        # The halves call each other from callbacks in any order, so each call checks this first.
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport


class ClientHalf(_Half):
    """The client's side."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: TlsConnection,
        owner: Owner,
        address: tuple[str, str],
    ) -> None:
        self._loop = loop
        self._tls = tls
        self._owner = owner
        self._server: ServerHalf | None = None
        self._admission: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answered_bytes = 0
        self._ending = False
        self.address = address
        self.is_shaking_hands = True

    @property
    def has_sent_all(self) -> bool:
        """Whether the client has received everything."""
        return self._transport is None or self._transport.get_write_buffer_size() == 0

    # --- what the event loop calls ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self.abort)

    def data_received(self, data: bytes) -> None:
        if not self._ending:  # while lingering, data is received only to be dropped
            self._tls.feed(data)
            self._go_on()

    def eof_received(self) -> bool:
        """Whether to keep the connection open for what is still to be sent.

        Anyone on the path can end the transport. Without a preceding close_notify, the data may be
        truncated, and the connection is treated as broken (RFC 8446 section 6.1).
        """
        return self._tls.ended and not self._ending

    def pause_writing(self) -> None:
        if self._server is not None:
            self._server.pause_reading()

    def resume_writing(self) -> None:
        if self._server is not None:
            self._server.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self._cancel_timer()
        # If it is still being admitted, _be_admitted finds the transport closed and does the same.
        if self._server is not None:
            self._server.abort()
        self._owner.note_end(self)

    # --- what the other half calls ------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send data of the HTTP server to the client."""
        transport = self._open_transport()
        if transport is None:
            return
        try:
            transport.write(self._tls.write(data))
        except TlsFailed as failure:
            self._fail(transport, failure)

    def finish(self) -> None:
        """End this direction, because the HTTP server has sent everything, and then close."""
        transport = self._open_transport()
        if transport is None:
            return
        self._ending = True
        transport.write(self._tls.close())
        if self._tls.ended:  # nothing more can come, so closing resets nothing
            transport.close()
            return
        transport.write_eof()
        # What comes now is read and dropped until the client has seen the end. Reading may have
        # been paused for a server that is gone.
        transport.resume_reading()
        self._linger(transport)

    # --- steps --------------------------------------------------------------------------------

    def _open_transport(self) -> asyncio.Transport | None:
        return None if self._ending else super()._open_transport()

    def _go_on(self) -> None:
        transport = self._open_transport()
        if transport is None:
            return
        try:
            if self.is_shaking_hands:
                self._shake_hands(transport)
            elif self._server is not None:
                self._pass_on(transport, self._server)
        except TlsFailed as failure:
            self._fail(transport, failure)

    def _shake_hands(self, transport: asyncio.Transport) -> None:
        complete = self._tls.shake_hands()
        transport.write(self._tls.taken())
        if complete:
            self._cancel_timer()
            self.is_shaking_hands = False
            transport.pause_reading()  # until there is a server half to pass data on to
            # Kept, because the event loop holds tasks by weak references only.
            self._admission = self._loop.create_task(self._be_admitted())

    async def _be_admitted(self) -> None:
        try:
            self._server = await self._owner.admit(self, self._tls.handshake())
        except OSError:
            self.abort()
            return
        except Exception:
            logger.exception("A client could not be connected to the application")
            self.abort()  # else the connection would stay, paused and without a timer
            return
        if self._open_transport() is None:  # the client has gone in the meantime
            self._server.abort()
            return
        self.resume_reading()
        # A request that arrived together with the end of the handshake is in the TLS buffers
        # already, and no socket event will report it.
        self._go_on()

    def _pass_on(self, transport: asyncio.Transport, server: ServerHalf) -> None:
        said = self._tls.read()
        answer = self._tls.taken()
        if answer:  # to a key update, for example
            self._answer(transport, answer)
        if said:
            server.send(said)
        if self._tls.ended:  # after the data: reading it is what found the end
            server.end_sending()

    def _answer(self, transport: asyncio.Transport, answer: bytes) -> None:
        transport.write(answer)
        self._answered_bytes += len(answer)
        if self._answered_bytes > MAX_ANSWERED_BYTES:
            raise TlsFailed("The client requests too many key updates")

    def _fail(self, transport: asyncio.Transport, failure: TlsFailed) -> None:
        """Send the alert, if there is one, and close."""
        logger.debug("A TLS connection failed: %s", failure)
        self._ending = True
        transport.write(self._tls.taken())
        transport.close()
        self._cancel_timer()
        # close() waits until the alert is sent, and a client that does not read would hold on to
        # its connection.
        self._timer = self._loop.call_later(LINGER_S, self.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _linger(self, transport: asyncio.Transport) -> None:
        # The time begins when everything has been sent; there is no limit for slow readers here.
        unsent = transport.get_write_buffer_size() > 0
        self._timer = self._loop.call_later(
            LINGER_S, *((self._linger, transport) if unsent else (self.abort,))
        )


class ServerHalf(_Half):
    """The HTTP server's side."""

    def __init__(self, client: ClientHalf, note_end: Callable[[], None]) -> None:
        self._client = client
        self._note_end = note_end
        self._has_ended_sending = False

    # --- what the event loop calls ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._client.send(data)

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        # Also with an error, as when the server did not read the whole request: its response has
        # been passed on by then, and the client must get the end of it.
        self._note_end()
        self._client.finish()

    # --- what the other half calls ------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send data of the client to the HTTP server."""
        if (transport := self._open_transport()) is not None:
            transport.write(data)

    def end_sending(self) -> None:
        """Pass on, once, that the client has ended its side."""
        if not self._has_ended_sending and (transport := self._open_transport()) is not None:
            self._has_ended_sending = True
            transport.write_eof()
