"""The worker processes of a server: which they are, and which of them serves a connection.

The kernel spreads new connections over workers as it likes; a test that needs every worker to be
asked opens connections until each has one. Read from ``/proc``, so for Linux only.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.client import Client
from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S, ServerProcess

PROC = Path("/proc")
_MAX_CONNECTIONS = 500
_ESTABLISHED = "01"
_LISTENING = "0A"


def processes_of(server: ServerProcess) -> set[int]:
    """The main process and everything it has started."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                children.setdefault(_parent_of(entry), []).append(int(entry.name))
    found, unseen = set(), [server.pid]
    while unseen:
        pid = unseen.pop()
        found.add(pid)
        unseen += children.get(pid, [])
    return found


def _parent_of(process: Path) -> int:
    # The name, in parentheses, may hold anything.
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def kill_everything(server: ServerProcess, order: random.Random) -> None:
    """End all processes of a server with SIGKILL, one right after the other, and wait for each."""
    with contextlib.ExitStack() as handles:
        processes = []
        for pid in sorted(processes_of(server)):
            with contextlib.suppress(ProcessLookupError):
                processes.append(os.pidfd_open(pid))
                handles.callback(os.close, processes[-1])
        order.shuffle(processes)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        server.wait()
        for process in processes:
            assert becomes_readable(process, DEADLINE_S), "a process outlives its SIGKILL"


def worker_of(server: ServerProcess, client: Client) -> int:
    """The process that serves a connection."""
    # An answer shows that the connection was taken up.
    assert client.request("OPTIONS", "/").status == 204
    assert server.port is not None
    return worker_with_connection(server, server.port, client.local_port)


def holds_connection(server: ServerProcess, local_port: int, remote_port: int) -> bool:
    """Whether the end of a connection at the local port is that of the server."""
    inode = _socket_inode(local_port, remote_port)
    return any(inode in _socket_inodes(pid) for pid in processes_of(server))


def worker_with_connection(server: ServerProcess, server_port: int, client_port: int) -> int:
    """The process that has taken up the connection between these ports."""
    inode = _socket_inode(server_port, client_port)
    for pid in processes_of(server):
        if inode in _socket_inodes(pid):
            return pid
    raise AssertionError("no process serves the connection")


def _socket_inode(local_port: int, remote_port: int) -> str:
    """The inode of the local end of a connection over IPv4. Connections to several servers can come
    from one port."""
    for line in (PROC / "net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        here, there, state, inode = fields[1], fields[2], fields[3], fields[9]
        ports = int(here.rpartition(":")[2], 16), int(there.rpartition(":")[2], 16)
        if ports == (local_port, remote_port) and state == _ESTABLISHED:
            return inode
    raise AssertionError("the connection is not there")


def _socket_inodes(pid: int) -> set[str]:
    links = {str(path) for path in open_files(pid)}
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def open_files(pid: int) -> list[Path]:
    """What the descriptors of a process refer to; the names of removed files say so at their
    end."""
    found = []
    with contextlib.suppress(FileNotFoundError):  # the process or a descriptor is gone
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(descriptor.readlink())
    return found


@contextlib.contextmanager
def clients_of_every_worker(
    server: ServerProcess, *, workers: int, each: int = 1, token: str | None = None
) -> Iterator[Sequence[Client]]:
    """Connections to all workers, ``each`` to every one, the workers taking turns in the list."""
    by_worker: dict[int, list[Client]] = {}
    with contextlib.ExitStack() as connections:
        for _ in range(_MAX_CONNECTIONS):
            client = connections.enter_context(Client(server, token=token))
            served = by_worker.setdefault(worker_of(server, client), [])
            if len(served) < each:
                served.append(client)
            if len(by_worker) == workers and all(len(own) == each for own in by_worker.values()):
                break
        assert len(by_worker) == workers
        rounds = zip(*by_worker.values(), strict=True)
        yield [client for one_of_each in rounds for client in one_of_each]


@contextlib.contextmanager
def clients_of(
    servers: Sequence[ServerProcess], workers: int, *, each: int = 1, token: str | None = None
) -> Iterator[Sequence[Client]]:
    """Connections to every worker, or to every node, taking turns."""
    if len(servers) == 1:
        [server] = servers
        with clients_of_every_worker(server, workers=workers, each=each, token=token) as clients:
            yield clients
        return
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Client(node, token=token)) for _ in range(each) for node in servers
        ]


def only_worker(server: ServerProcess) -> int:
    """The worker of a server that has one."""
    [worker] = processes_of(server) - {server.pid}
    return worker


def forget_peak_memory(pid: int) -> None:
    """Let :func:`peak_memory_bytes` count from now on."""
    (PROC / str(pid) / "clear_refs").write_text("5")


def peak_memory_bytes(pid: int) -> int:
    """The most memory that a process had at once, by what was resident."""
    status = (PROC / str(pid) / "status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def descriptor_count(pid: int) -> int:
    """How many descriptors a process has open, without connections that it has opened itself: it
    keeps those to S3 for later requests."""
    connections = [line.split() for line in (PROC / "net/tcp").read_text().splitlines()[1:]]
    listening = {fields[1].rpartition(":")[2] for fields in connections if fields[3] == _LISTENING}
    opened = {
        f"socket:[{fields[9]}]"
        for fields in connections
        if fields[1].rpartition(":")[2] not in listening
    }
    return sum(str(path) not in opened for path in open_files(pid))
