"""A proxy before a PostgreSQL server that tells what its clients ask, and how often they wait.

It reads the messages of clients (PostgreSQL documentation, "Frontend/Backend Protocol") and passes
all bytes on unchanged.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg.conninfo

_PIECE_BYTES = 64 * 1024
_LENGTH_BYTES = 4
_SOCKET = ".s.PGSQL.5432"


RoundTrip = list[str]
"""What a client has sent before it waited for the answer to all of it: the text of each statement,
with ``$1`` for its first value. A statement that is only prepared for later begins with
:data:`PREPARED`."""

PREPARED = "PREPARE "
BESIDE = (
    PREPARED,
    "FROM entries WHERE entry > ",
    "LISTEN ",
    "SELECT value FROM counters",
    "clock_timestamp()",
)
"""How statements are known that the server sends by itself and not for a request, or that a
connection prepares once."""


def of_requests(trips: Sequence[RoundTrip]) -> list[RoundTrip]:
    """Those round trips in which something was sent for a request; one that asks nothing was."""
    return [
        [each for each in trip if not each.startswith(PREPARED)]
        for trip in trips
        if not trip or any(not any(known in each for known in BESIDE) for each in trip)
    ]


@dataclass
class DatabaseProxy:
    """Stands between the clients of one server and that server."""

    target: str
    folder: str
    silent_after: bytes = b""
    """Once a client has sent this, nothing more of it is passed on, as if it had been stopped,
    until :attr:`goes_on` is set."""
    goes_on: threading.Event = field(default_factory=threading.Event)
    round_trips: list[RoundTrip] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_UNIX))

    def start(self) -> None:
        self._listener.bind(str(Path(self.folder) / _SOCKET))
        self._listener.listen()
        self._run(self._accept)

    def close(self) -> None:
        self.goes_on.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._open):
            each.close()

    def _run(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self) -> list[RoundTrip]:
        """What was asked since the last call."""
        with self._lock:
            taken, self.round_trips = self.round_trips, []
        return taken

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
                connection = _Connection(self, client, server)
                self._open += [client, server]
                self._run(connection.pass_requests)
                self._run(connection.pass_answers)


class _Connection:
    """One connection of a client."""

    def __init__(self, proxy: DatabaseProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._was_answered = True
        self._sent: RoundTrip = []
        self._texts: dict[bytes, str] = {}
        self._buffer = b""
        self._has_begun = False

    def pass_requests(self) -> None:
        with contextlib.suppress(OSError):
            while piece := self._client.recv(_PIECE_BYTES):
                with self._proxy._lock:
                    if self._was_answered:
                        self._was_answered = False
                        self._sent = []
                        self._proxy.round_trips.append(self._sent)
                    self._read(piece)
                self._server.sendall(self._passed_on(piece))
        self._end()

    def _passed_on(self, piece: bytes) -> bytes:
        """What is left of a piece after what stops its client, if that is in it."""
        silent_after = self._proxy.silent_after
        if not silent_after or silent_after not in piece:
            return piece
        end = piece.index(silent_after) + len(silent_after)
        self._server.sendall(piece[:end])
        self._proxy.goes_on.wait()
        return piece[end:]

    def pass_answers(self) -> None:
        with contextlib.suppress(OSError):
            while piece := self._server.recv(_PIECE_BYTES):
                with self._proxy._lock:
                    self._was_answered = True
                self._client.sendall(piece)
        self._end()

    def _end(self) -> None:
        for each in (self._client, self._server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _read(self, piece: bytes) -> None:
        self._buffer += piece
        while True:
            kind_bytes = 1 if self._has_begun else 0
            head = self._buffer[kind_bytes : kind_bytes + _LENGTH_BYTES]
            end = kind_bytes + int.from_bytes(head, "big")
            if len(head) < _LENGTH_BYTES or len(self._buffer) < end:
                return
            kind = self._buffer[:kind_bytes]
            content = self._buffer[kind_bytes + _LENGTH_BYTES : end]
            self._buffer, self._has_begun = self._buffer[end:], True
            self._note(kind, content)

    def _note(self, kind: bytes, content: bytes) -> None:
        if kind == b"Q":
            self._sent.append(content[:-1].decode())
        elif kind == b"P":
            name, text, _ = content.split(b"\0", 2)
            self._texts[name] = text.decode()
            if name:
                self._sent.append(PREPARED + text.decode())
        elif kind == b"B":  # an execution follows each
            _, name, _ = content.split(b"\0", 2)
            self._sent.append(self._texts[name])


@contextlib.contextmanager
def running_database_proxy(database: str) -> Iterator[tuple[DatabaseProxy, str]]:
    """A proxy before the server of a database, and the URL of the database behind it."""
    parameters = psycopg.conninfo.conninfo_to_dict(database)
    with TemporaryDirectory(prefix="podstead-") as folder:
        proxy = DatabaseProxy(str(Path(str(parameters["host"])) / _SOCKET), folder)
        proxy.start()
        try:
            yield (
                proxy,
                f"postgresql://{parameters['user']}@/{parameters['dbname']}?host={folder}",
            )
        finally:
            proxy.close()
