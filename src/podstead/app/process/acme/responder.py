"""Who answers the challenges of an authority? A listener for plain HTTP, while there are some.

It answers the paths of challenges and nothing else, and exists for as long as an order takes: a
minute every two months.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from podstead.app.process.acme.client import OrderFailed, Publish
from podstead.app.process.admin_http import AdminHttpHandler, AdminHttpServer

_POLL_S: Final = 0.1


@contextmanager
def answering_challenges(host: str, port: int) -> Iterator[Publish]:
    """Listen, and answer what is published. Raises OrderFailed if the port cannot be opened."""
    answers: dict[str, bytes] = {}

    class Handler(_Handler):
        published = answers

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise OrderFailed(_why(error, port)) from error
    server = AdminHttpServer(listener, Handler)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
    thread.start()
    try:
        yield answers.__setitem__
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(AdminHttpHandler):
    published: ClassVar[dict[str, bytes]]

    def do_GET(self) -> None:  # noqa: N802 - as http.server has it
        """Answer the path of a challenge."""
        body = self.published.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        reason = "it is in use"
    elif error.errno == errno.EACCES:
        reason = "the current user may not"
    else:
        reason = str(error.strerror)
    return (
        f"Cannot open port {port} for the challenge of the authority: {reason}. The authority "
        "always asks port 80; forward that port to another one that you set with --acme-port."
    )
