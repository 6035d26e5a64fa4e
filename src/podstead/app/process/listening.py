"""Where does the server listen? The sockets are opened once, before anything else starts.

A port is first bound exclusively, so that a busy one is noticed; two servers that both set
SO_REUSEPORT would silently share it. Then one socket is opened for each worker, and the kernel
distributes the connections. Clients that connect while a worker starts (or is being replaced) wait
in its queue instead of being refused.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from podstead.app.adapters.retrying import retry_while_busy
from podstead.config import Settings, StartRefused

BACKLOG = 1024
"""How many connections can wait for each worker; the kernel refuses more."""

_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""The seconds of silence before the first keep-alive probe, those between probes, and their
number."""


def open_listeners(settings: Settings, workers: int) -> list[socket.socket]:
    """The listening sockets, one for each worker; the same one for all if the system has no
    SO_REUSEPORT that distributes connections. Raises StartRefused."""
    family, address = _resolve(settings)
    first = _open_exclusively(family, address, settings)
    if workers == 1 or sys.platform != "linux":
        return [first] * workers
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound = first.getsockname()
    others = [_listen(family, bound, share=True) for _ in range(workers - 1)]
    return [first, *others]


def chosen_port(listeners: Sequence[socket.socket]) -> int:
    """The port that the system chose, or was asked for."""
    port: int = listeners[0].getsockname()[1]
    return port


@contextmanager
def closing_all(listeners: Sequence[socket.socket]) -> Iterator[None]:
    """Close the listeners that are still open."""
    try:
        yield
    finally:
        for listener in listeners:
            listener.close()


def _resolve(settings: Settings) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartRefused(
            f"host is '{settings.host}', which has no address. Set it to a name or an address of "
            "this machine."
        ) from error
    # A name such as localhost has addresses of both families; every client tries IPv4.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _open_exclusively(
    family: socket.AddressFamily, address: tuple[object, ...], settings: Settings
) -> socket.socket:
    try:
        return retry_while_busy(lambda: _listen(family, address, share=False), is_busy=_is_busy)
    except OSError as error:
        raise StartRefused(_why(error, settings)) from error


def _is_busy(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def _why(error: OSError, settings: Settings) -> str:
    if _is_busy(error):
        return (
            f"Port {settings.port} of {settings.host} is in use. Stop the program that listens "
            "there, or choose another port with --port."
        )
    if error.errno == errno.EACCES:
        return (
            f"The current user may not open port {settings.port}. Choose one above 1023 with "
            "--port."
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"host is '{settings.host}', which is not an address of this machine. Set --host to "
            "one that is."
        )
    return f"Cannot open port {settings.port} of {settings.host}: {error.strerror}."


def _notice_the_vanished(listener: socket.socket) -> None:
    """Have the system probe silent clients. Connections inherit the options. A connection for
    notifications carries nothing but messages, so the connection of a vanished client would
    otherwise stay open until the next message."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # the available options differ between systems
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _listen(
    family: socket.AddressFamily, address: tuple[object, ...], *, share: bool
) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of the previous server that the kernel still remembers do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Connections inherit it. A message on a socket is small and must not wait until the client
        # has acknowledged the one before, which it takes up to 40 ms to do.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_the_vanished(listener)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
