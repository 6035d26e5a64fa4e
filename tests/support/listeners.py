"""The listeners of a server: their options, certificates and clients."""

import select
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.support.features import WEBID_TLS_OPTIONS
from tests.support.server import Answer, ServerProcess

MakeServer = Callable[..., ServerProcess]
TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"
"""Self-signed for ``localhost`` and of no use elsewhere."""
_SSL = ("--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY))
LISTENERS = {"http": (), "https": _SSL, "webid-tls": (*_SSL, *WEBID_TLS_OPTIONS)}
"""The options of each."""


def sockets_port(server: ServerProcess) -> int:
    """The port for WebSockets of a server that has just started with one."""
    return int(server.wait_for_line("  sockets").split()[2].rstrip(","))


def client_tls(certificate: Path = CERTIFICATE) -> ssl.SSLContext:
    """What a client needs to trust a server with that certificate."""
    return ssl.create_default_context(cafile=str(certificate))


def hold(server: ServerProcess, threads: ThreadPoolExecutor) -> Future[Answer]:
    """A request that is in flight until the file "release" exists."""
    answer = threads.submit(server.get, "/hold?release")
    server.wait_for_line("holding")
    return answer


def still_open(connections: list[socket.socket]) -> list[socket.socket]:
    """Those of which the other side has not closed its end."""
    waiting = select.poll()
    for connection in connections:
        waiting.register(connection, select.POLLRDHUP)
    ended = {descriptor for descriptor, _ in waiting.poll(0)}
    return [each for each in connections if each.fileno() not in ended]
