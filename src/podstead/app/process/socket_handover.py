"""How does a new server take the place of a running one without refusing a connection?

It asks the running one for its listening sockets, over a Unix socket in the data root, and gets the
same sockets (``SCM_RIGHTS``, unix(7)). Others on the same port would not do: connections that wait
in the queue of a socket are reset when its last descriptor is closed. Then it tells the running
server to stop, waits until that has finished its requests and ended, and serves. Whoever connects
meanwhile waits in the queue.

Only the account that owns the data root, which is private, can connect to the Unix socket.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from podstead.app.process.listening import ListeningSockets
from podstead.app.process.worker import start_thread
from podstead.config import StartRefused
from podstead.storage.layout import RootLayout

logger = logging.getLogger("podstead.app")

_GREETING: Final = b"podstead sockets 1 "
"""Comes with the sockets, and how many of them are for HTTP."""
_MAX_GREETING_BYTES: Final = 64
_STOP: Final = b"stop\n"
_MAX_SOCKETS: Final = 253
"""The most descriptors that Linux passes in one message."""
_TIMEOUT_S: Final = 30.0
"""How long either side waits for the other's next message."""


class RunningServer(AbstractContextManager["RunningServer"]):
    """The running server that is to be replaced, and its listening sockets."""

    def __init__(self, connection: socket.socket, listening: ListeningSockets) -> None:
        self._connection = connection
        self.listening = listening

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def stop(self) -> None:
        """Have it stop, and wait until it has ended. Raises StartRefused."""
        try:
            self._connection.sendall(_STOP)
            # It finishes its requests first, within its own drain-timeout-s. The connection ends
            # with the process.
            self._connection.settimeout(None)
            while self._connection.recv(1):
                pass
        except ConnectionResetError:
            return
        except OSError as error:
            raise StartRefused(f"The running server does not stop: {error.strerror}.") from error


def find_running_server(root: Path) -> RunningServer | None:
    """The server that is running on the data root; ``None`` if there is none, or if it is of a
    version that cannot be replaced in this way. Raises StartRefused."""
    with contextlib.ExitStack() as cleanup:
        connection = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.settimeout(_TIMEOUT_S)
        try:
            with _short_address(RootLayout(root).handover) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):  # no file, or one that was left behind
            return None
        except OSError as error:
            raise StartRefused(f"The running server cannot be reached: {error}.") from error
        try:
            greeting, descriptors, _flags, _address = socket.recv_fds(
                connection, _MAX_GREETING_BYTES, _MAX_SOCKETS
            )
        except OSError as error:
            raise StartRefused(f"The running server does not answer: {error}.") from error
        listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        for listener in listeners:
            cleanup.callback(listener.close)
            listener.settimeout(0)
        for_http = greeting.removeprefix(_GREETING).strip()
        if not greeting.startswith(_GREETING) or not for_http.isdigit() or not listeners:
            raise StartRefused(
                "The running server does not hand over its sockets. Stop it first, and start "
                "without --take-over."
            )
        cleanup.pop_all()
        http = int(for_http)
        return RunningServer(connection, ListeningSockets(listeners[:http], listeners[http:]))


@contextmanager
def offering(
    listening: ListeningSockets, root: Path, be_replaced: Callable[[], None]
) -> Iterator[None]:
    """Offer the sockets to a successor, who may then have this process call ``be_replaced``. The
    signals of the process must be blocked."""
    path = RootLayout(root).handover
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            path.unlink(missing_ok=True)  # left behind: the data root is ours now
            with _short_address(path) as address:
                door.bind(address)
            path.chmod(0o600)
            door.listen(1)
        except OSError as error:
            logger.warning("No other server can take over from this one: %s", error)
            yield
            return
        # A worker must not keep the door open when this process has ended.
        os.register_at_fork(after_in_child=door.close)
        start_thread(_HandoverServer(door, listening, be_replaced).serve)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


class _HandoverServer:
    """Answers those who connect, one after the other."""

    def __init__(
        self,
        door: socket.socket,
        listening: ListeningSockets,
        be_replaced: Callable[[], None],
    ) -> None:
        self._door = door
        http = _distinct(listening.http)
        self._greeting = _GREETING + str(len(http)).encode() + b"\n"
        self._descriptors = http + _distinct(listening.websocket)
        self._be_replaced = be_replaced

    def serve(self) -> None:
        """Run until the door is closed, or until a successor takes over."""
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return
            try:
                connection.settimeout(_TIMEOUT_S)
                socket.send_fds(connection, [self._greeting], self._descriptors)
                is_replaced = connection.recv(len(_STOP)) == _STOP
            except OSError:
                is_replaced = False
            if is_replaced:
                logger.info("Another server takes over: this one finishes its requests and ends")
                self._be_replaced()
                connection.detach()  # stays open until this process has ended
                return
            connection.close()


def _distinct(listeners: Sequence[socket.socket]) -> list[int]:
    return list(dict.fromkeys(listener.fileno() for listener in listeners))


@contextmanager
def _short_address(path: Path) -> Iterator[str]:
    """An address of the socket at the path. Addresses have at most 108 bytes, paths may be longer;
    on Linux, the folder then has a short name."""
    if sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
