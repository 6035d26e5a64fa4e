"""The page of an application that runs in a browser, on an origin of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ApplicationPage(BaseHTTPRequestHandler):
    """Shows with which parameters a browser came, in its text; its title is ``Back``."""

    def do_GET(self) -> None:
        self._answer(self.path)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self._answer(self.rfile.read(length).decode())

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        self.wfile.write(f"<!doctype html><title>Back</title><p>{shown}</p>".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def running_application() -> Iterator[str]:
    """The URL of the application's page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ApplicationPage) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
