"""Opens the listening sockets, once, before anything else starts.

A port is first bound exclusively, so that a busy one is noticed; two servers that both set
SO_REUSEPORT would silently share it. Then one socket is opened for each worker, and the kernel
distributes the connections. Clients that connect while a worker starts (or is being replaced) wait
in its queue instead of being refused.

The socket for HTTP may also come from systemd.
"""

import contextlib
import errno
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from podstead.app.adapters.root import retry_while_busy
from podstead.config import Settings, StartRefused

BACKLOG = 1024
"""How many connections can wait for each worker; the kernel refuses more."""

_FIRST_INHERITED = 3
"""The first descriptor that systemd passes (SD_LISTEN_FDS_START)."""

_FAMILIES = {socket.AF_INET, socket.AF_INET6}

_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""The seconds of silence before the first keep-alive probe, those between probes, and their
number."""


@dataclass(frozen=True, slots=True)
class _BindAddress:
    """Where to listen, and the setting that says so."""

    host: str
    port: int
    option: str


@dataclass(frozen=True, slots=True)
class ListeningSockets:
    """The listening sockets of a server."""

    http: Sequence[socket.socket]
    """One for each worker; the same one for all if the system has no SO_REUSEPORT that distributes
    connections."""
    websocket: Sequence[socket.socket] = ()
    """The same for WebSockets; empty if they have no port of their own."""

    @property
    def all(self) -> Sequence[socket.socket]:
        """Every socket."""
        return (*self.http, *self.websocket)

    def noted_in(self, settings: Settings) -> Settings:
        """The settings with the ports that the system chose."""
        settings = settings.listening_on(chosen_port(self.http))
        if self.websocket:
            settings = replace(settings, sockets_port=chosen_port(self.websocket))
        return settings


def open_listeners(
    settings: Settings, workers: int, inherited: socket.socket | None = None
) -> ListeningSockets:
    """Open all listening sockets; ``inherited``, if given, is the one for HTTP. Raises
    StartRefused."""
    if inherited is None:
        http = _open_all(_BindAddress(settings.host, settings.port, "--port"), workers)
    else:
        http = [inherited] * workers
    port = settings.sockets_port
    if port is None:
        return ListeningSockets(http)
    try:
        websocket = _open_all(_BindAddress(settings.host, port, "--sockets-port"), workers)
    except StartRefused:
        for each in http:
            each.close()
        raise
    return ListeningSockets(http, websocket)


def _open_all(bind: _BindAddress, workers: int) -> list[socket.socket]:
    family, address = _resolve(bind)
    first = _open_exclusively(family, address, bind)
    if workers == 1 or sys.platform != "linux":
        return [first] * workers
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound = first.getsockname()
    others = [_listen(family, bound, share=True) for _ in range(workers - 1)]
    return [first, *others]


def inherited_listener() -> socket.socket | None:
    """The listening socket that systemd has passed to this process, if any (sd_listen_fds(3)). It
    stays open when this process ends, and clients that connect meanwhile wait in its queue. Raises
    StartRefused.
    """
    passed_to, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if passed_to != str(os.getpid()):
        return None
    if count != "1":
        raise StartRefused(
            f"systemd has passed {count} sockets, and the server listens on one. Leave one "
            "ListenStream= in the socket unit; with BindIPv6Only=both, [::]:443 is for IPv4, too."
        )
    listener = socket.socket(fileno=_FIRST_INHERITED)
    with contextlib.suppress(OSError):
        if listener.family in _FAMILIES and listener.getsockopt(
            socket.SOL_SOCKET, socket.SO_ACCEPTCONN
        ):
            listener.set_inheritable(False)
            _prepare(listener)
            return listener
    listener.close()
    raise StartRefused(
        "The socket that systemd has passed is no listening TCP socket. Name a port in "
        "ListenStream= of the socket unit, without Accept=yes."
    )


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


def _resolve(bind: _BindAddress) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(
            bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartRefused(
            f"host is '{bind.host}', which has no address. Set it to a name or an address of "
            "this machine."
        ) from error
    # A name such as localhost has addresses of both families; every client tries IPv4.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _open_exclusively(
    family: socket.AddressFamily, address: tuple[object, ...], bind: _BindAddress
) -> socket.socket:
    try:
        return retry_while_busy(lambda: _listen(family, address, share=False), is_busy=_is_busy)
    except OSError as error:
        raise StartRefused(_why(error, bind)) from error


def _is_busy(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def _why(error: OSError, bind: _BindAddress) -> str:
    if _is_busy(error):
        return (
            f"Port {bind.port} of {bind.host} is in use. Stop the program that listens "
            f"there, or choose another port with {bind.option}."
        )
    if error.errno == errno.EACCES:
        return (
            f"The current user may not open port {bind.port}. Choose one above 1023 with "
            f"{bind.option}."
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"host is '{bind.host}', which is not an address of this machine. Set --host to "
            "one that is."
        )
    return f"Cannot open port {bind.port} of {bind.host}: {error.strerror}."


def _notice_the_vanished(listener: socket.socket) -> None:
    """Have the system probe silent clients. Connections inherit the options. A connection for
    notifications carries nothing but messages, so the connection of a vanished client would
    otherwise stay open until the next message."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # the available options differ between systems
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _prepare(listener: socket.socket) -> None:
    # Connections inherit it. A message on a socket is small and must not wait until the client has
    # acknowledged the one before, which it takes up to 40 ms to do.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _notice_the_vanished(listener)
    listener.settimeout(0)


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
        _prepare(listener)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
