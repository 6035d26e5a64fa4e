"""A client that opens many connections from one address, says nothing, and holds them open.

    python -m tests.serving.flood <port> <address> <count> <reopened>

It says "open" once it has tried ``count`` connections. Then it opens a new one for each that the
server ends, up to ``reopened`` of them, until its standard input ends.
"""

from __future__ import annotations

import resource
import select
import socket
import sys
from collections.abc import Iterator

_BATCH = 100


def main() -> None:
    port, count, reopened = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    opening = _open_all(sys.argv[2], port)
    held = {each.fileno(): each for each in (next(opening) for _ in range(count))}
    ends = select.epoll()
    for descriptor in held:
        ends.register(descriptor, select.EPOLLRDHUP)
    ends.register(sys.stdin, select.EPOLLIN)
    sys.stdout.write("open\n")
    sys.stdout.flush()
    while True:
        for descriptor, _event in ends.poll(maxevents=_BATCH):
            if descriptor == sys.stdin.fileno():
                return
            ends.unregister(descriptor)
            held.pop(descriptor).close()
            if reopened > 0:
                reopened -= 1
                again = next(opening)
                held[again.fileno()] = again
                ends.register(again, select.EPOLLRDHUP)


def _open_all(address: str, port: int) -> Iterator[socket.socket]:
    while True:
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind((address, 0))
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", port))
        yield connection


if __name__ == "__main__":
    main()
