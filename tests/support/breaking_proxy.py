"""A proxy on this machine whose connections break in the middle, as those of trains do."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.server import ServerProcess, running_server

_PIECE_BYTES = 16 * 1024


@dataclass
class ProxiedServer(ServerProcess):
    """A server whose base URL is that of a proxy."""

    proxy_port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.proxy_port}"


@dataclass
class BreakingProxy:
    """Passes on bytes in both directions. Each time that clients have sent a number of bytes of
    ``breaks`` in all, the connection that carries them is reset."""

    breaks: list[int] = field(default_factory=list)
    stays_down: bool = False
    """Whether it breaks every connection with the first one, those that browsers keep open too, and
    accepts no others until ``is_down`` is set to false."""
    is_down: bool = False
    broken: int = 0
    target_port: int = 0
    sent: int = 0
    """What clients have sent in all."""
    recorded: bytearray | None = None
    """The bytes of it, if they are kept."""
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: set[socket.socket] = field(default_factory=set)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._open:
                _reset(each)

    def break_after(self, further: Sequence[int]) -> None:
        """Break connections once clients have sent so much more."""
        with self._lock:
            self.breaks = [self.sent + number for number in further]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port))
        except OSError:
            _reset(client)
            return
        with self._lock:
            is_up = not self.is_down
            if is_up:
                self._open |= {client, server}
        if not is_up:
            _reset(client)
            _reset(server)
            return
        back = threading.Thread(target=self._pass_on, args=[server, client], daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while piece := client.recv(_PIECE_BYTES):
                if self.recorded is not None:
                    self.recorded += piece
                if self._breaks_at(len(piece)):
                    break
                server.sendall(piece)
        for each in (client, server):
            _reset(each)
        back.join()
        with self._lock:
            self._open -= {client, server}

    def _breaks_at(self, size_bytes: int) -> bool:
        with self._lock:
            self.sent += size_bytes
            if not self.breaks or self.sent < self.breaks[0]:
                return False
            del self.breaks[0]
            self.broken += 1
            if self.stays_down:
                self.is_down = True
                for each in self._open:
                    _shut_down(each)
            return True

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    _shut_down(connection)
    connection.close()


def _shut_down(connection: socket.socket) -> None:
    """Wake the threads that read from it; the one that serves it closes it then."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def running_breaking_proxy() -> Iterator[BreakingProxy]:
    """A proxy; its target is set later."""
    proxy = BreakingProxy()
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()


@contextlib.contextmanager
def running_behind(proxy: BreakingProxy, root: Path, *options: str) -> Iterator[ProxiedServer]:
    """A server with these options whose clients come by the proxy."""
    base_url = f"http://localhost:{proxy.port}"
    server = ProxiedServer(root, (*options, "--base-url", base_url), proxy_port=proxy.port)
    with running_server(server):
        assert server.port is not None
        proxy.target_port = server.port
        yield server
