"""An HTTP server for the few requests that the main process answers itself, in threads.

For the private address and for the challenges of a certificate authority; everything else is
answered by workers.
"""

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, ClassVar, Final

MAX_REQUESTS: Final = 16
"""How many connections are served at a time."""
REQUEST_TIMEOUT_S: Final = 10
"""How long a client may be silent, and how long it may take for its request if somebody looks."""


class AdminHttpServer(ThreadingMixIn, TCPServer):
    """Answers each request in a thread, which does not keep the process alive.

    When all threads are in use, the connection that has been sending its request for the longest
    time is closed for the new one: a request takes milliseconds to arrive, so whoever sends none,
    or sends it byte by byte, keeps nobody else waiting. Requests that have arrived are answered.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, handler: type["AdminHttpHandler"]) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._free = threading.Semaphore(MAX_REQUESTS)
        self._lock = threading.Lock()
        self._arriving: dict[socket.socket, float] = {}
        """Connections whose request has not arrived, and since when, the oldest first."""

    def note_arrived(self, connection: socket.socket) -> None:
        """The request on the connection is complete."""
        with self._lock:
            self._arriving.pop(connection, None)

    def process_request(  # type: ignore[override]
        self,
        request: socket.socket,
        client_address: Any,  # noqa: ANN401 - as there
    ) -> None:
        if not self._free.acquire(blocking=False):
            self._end_oldest()
            self._free.acquire()
        with self._lock:
            self._arriving[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(  # type: ignore[override]
        self,
        request: socket.socket,
        client_address: Any,  # noqa: ANN401 - as there
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.note_arrived(request)
            self._free.release()

    def service_actions(self) -> None:
        """Called at each look for connections: ends those that have taken too long."""
        before_s = time.monotonic() - REQUEST_TIMEOUT_S
        with self._lock:
            late = [each for each, since_s in self._arriving.items() if since_s < before_s]
            for each in late:
                _end(each)

    def handle_error(self, *_arguments: object) -> None:
        """What a client does wrong is no trouble of the server."""

    def _end_oldest(self) -> None:
        with self._lock:
            for each in self._arriving:
                _end(each)
                del self._arriving[each]
                return


class AdminHttpHandler(BaseHTTPRequestHandler):
    """One request. HTTP/1.0, so that a connection has one."""

    server: AdminHttpServer
    timeout: ClassVar[float] = REQUEST_TIMEOUT_S

    def parse_request(self) -> bool:
        """Called when the first line is there; reads the rest."""
        is_valid = super().parse_request()
        self.server.note_arrived(self.connection)
        return is_valid

    def version_string(self) -> str:
        return "Podstead"

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: whoever scans the port would fill the log."""


def _end(connection: socket.socket) -> None:
    """The thread that reads from the connection finds its end."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
