"""Small HTTP servers on this machine, in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType


class Handler(BaseHTTPRequestHandler):
    """A request, of which nothing is logged."""

    def respond(self) -> None:
        """Answer it, whatever its method is."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.respond()

    def do_POST(self) -> None:
        self.respond()

    def do_PATCH(self) -> None:
        self.respond()

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def serving(handler: type[Handler]) -> Iterator[int]:
    """The port of a server that answers so until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
