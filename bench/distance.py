"""The command `python -m bench.distance`: a proxy that makes a database seem farther away.

Every byte arrives half of the delay later, in either direction, so a round trip takes the delay
longer; bytes on the way do not wait for each other, as with `tc netem`. Threads sleep until then:
the timers of event loops are rounded to whole milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
import socket
import threading
import time
from pathlib import Path
from typing import Final

SOCKET_NAME: Final = ".s.PGSQL.5432"
_PIECE_BYTES: Final = 64 * 1024

_Delayed = queue.SimpleQueue[tuple[float, bytes]]


def _receive(source: socket.socket, delayed: _Delayed, delay_s: float) -> None:
    piece = b"before the first"
    while piece:
        try:
            piece = source.recv(_PIECE_BYTES)
        except OSError:
            piece = b""
        delayed.put((time.monotonic() + delay_s, piece))


def _send(target: socket.socket, delayed: _Delayed) -> None:
    with contextlib.suppress(OSError):
        while True:
            due_s, piece = delayed.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            if not piece:
                break
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket, delay_s: float) -> None:
    delayed: _Delayed = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(source, delayed, delay_s), daemon=True).start()
    threading.Thread(target=_send, args=(target, delayed), daemon=True).start()


def _serve(listener: socket.socket, target: Path, delay_s: float) -> None:
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(target))
        except OSError:
            client.close()
            continue
        _pass_on(client, server, delay_s)
        _pass_on(server, client, delay_s)


def main() -> None:
    """Run until it is ended."""
    parser = argparse.ArgumentParser("python -m bench.distance", description=__doc__)
    parser.add_argument("listen", type=Path, help="the folder of the socket to listen on")
    parser.add_argument("target", type=Path, help="the folder of the socket of the database")
    parser.add_argument("delay_ms", type=float, help="what is added to a round trip")
    options = parser.parse_args()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(options.listen / SOCKET_NAME))
        listener.listen()
        with contextlib.suppress(KeyboardInterrupt):
            _serve(listener, options.target / SOCKET_NAME, options.delay_ms / 2000)


if __name__ == "__main__":
    main()
