"""The process that evaluates queries: ``python -I -m …evaluation <seconds> <MiB> <MiB>``.

The arguments are the processor time of each query, the memory of the process, and the size of a
result. It receives documents, keeps their statements, and answers one query after the other until
its standard input ends. It is killed at once when it exceeds its time or memory. It opens nothing:
once it is ready, it cannot get another file descriptor, so it has neither files nor connections.
"""

import os
import resource
import struct
import sys
from contextlib import suppress
from typing import Final

import msgspec

from podstead.core.errors import PodsteadError, Unprocessable
from podstead.rdf.tasks import Failure

FRAME: Final = struct.Struct("!cQ")
"""What precedes each message: its kind and its size."""
PUT: Final = b"p"
REMOVE: Final = b"r"
QUERY: Final = b"q"
READY: Final = b"s"
DATA: Final = b"d"
FAILED: Final = b"f"
DONE: Final = b"e"

PIECE_BYTES: Final = 64 * 1024
_LOADING_S: Final = 60
"""The processor time for the documents that come before a query."""
_NICENESS: Final = 5


class StoredDocument(msgspec.Struct, array_like=True):
    """A document as it is stored."""

    url: str
    content_type: str
    content: bytes


class _Pieces:
    """Sends a result in pieces (:class:`podstead.rdf.sparql_query.ResultOutput`)."""

    def __init__(self, max_bytes: int) -> None:
        self._left_bytes = max_bytes
        self._piece = bytearray()

    def write(self, piece: bytes) -> int:
        """Raises Unprocessable for a result that is too large."""
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise Unprocessable("The result is too large. LIMIT and OFFSET give a part of it.")
        self._piece += piece
        if len(self._piece) >= PIECE_BYTES:
            self.flush()
        return len(piece)

    def flush(self) -> None:
        """Send what is left."""
        for start in range(0, len(self._piece), PIECE_BYTES):
            send(DATA, bytes(self._piece[start : start + PIECE_BYTES]))
        self._piece.clear()


def send(kind: bytes, content: bytes = b"") -> None:
    """Send a message to the worker."""
    write = sys.stdout.buffer
    write.write(FRAME.pack(kind, len(content)))
    write.write(content)
    write.flush()


def _main() -> None:
    os.nice(_NICENESS)
    processor_s, memory_mib, result_mib = map(int, sys.argv[1:])
    memory_bytes = memory_mib * 1024 * 1024
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    from podstead.app.adapters.bundled_contexts import bundled_contexts
    from podstead.rdf.codecs import parse
    from podstead.rdf.sparql_query import QueryStore, SparqlQuery

    contexts, store = bundled_contexts(), QueryStore()
    read = sys.stdin.buffer
    _bound_time(_LOADING_S)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    send(READY)
    used_s = _processor_s()
    while prefix := read.read(FRAME.size):
        kind, size = FRAME.unpack(prefix)
        content = read.read(size)
        if kind == PUT:
            document = msgspec.msgpack.decode(content, type=StoredDocument)
            with suppress(PodsteadError):  # without its statements; GET says why
                url, type_ = document.url, document.content_type
                parsed = parse(document.content, type_, base_iri=url, contexts=contexts)
                store.put(url, parsed.graph)
        elif kind == REMOVE:
            store.remove(content.decode())
        else:
            query, media_type = msgspec.msgpack.decode(content, type=tuple[SparqlQuery, str])
            _bound_time(processor_s)
            pieces = _Pieces(result_mib * 1024 * 1024)
            try:
                store.evaluate(query, media_type, pieces)
                pieces.flush()
            except PodsteadError as error:
                send(FAILED, msgspec.msgpack.encode(Failure.of(error)))
            now_s = _processor_s()
            send(DONE, msgspec.msgpack.encode(now_s - used_s))
            used_s = now_s
            _bound_time(_LOADING_S)


def _bound_time(processor_s: int) -> None:
    """Have the system kill the process when it has used so much more."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(_processor_s()) + processor_s + 1, hard))


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _main()
