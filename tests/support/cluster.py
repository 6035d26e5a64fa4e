"""Three nodes behind a balancer, on a PostgreSQL server that can fail over to a standby, and on S3.

::

    clients -> HAProxy -> nodes -> HAProxy -> PostgreSQL, or the standby that was promoted
                               -> HAProxy -> SeaweedFS

No node shares a disk with another one.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.support.postgresql import PostgresServer, server_on_disk
from tests.support.proxies import program
from tests.support.seaweedfs import s3_environment, shared_s3_server
from tests.support.server import DEADLINE_S, Answer, ServerProcess, request_to
from tests.support.waiting import wait_until

NODES = 3
FAKETIME = "faketime/libfaketimeMT.so.1"


@dataclass
class ClusterNode(ServerProcess):
    """A server with the base URL of its balancer."""

    balancer_url: str = ""

    @property
    def base_url(self) -> str:
        return self.balancer_url

    def set_clock(self, ahead_s: int) -> None:
        """From the next start on, its clock is wrong by this."""
        self.own_interpreter = bool(ahead_s)
        self.environment = {
            name: value
            for name, value in self.environment.items()
            if not name.startswith(("LD_", "FAKETIME"))
        }
        if ahead_s:
            wrong = {
                "LD_PRELOAD": str(next(Path("/usr/lib").glob(f"*/{FAKETIME}"))),
                "FAKETIME": f"{ahead_s:+d}",
                # Only the time of day: intervals are as long as they are elsewhere.
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
            self.environment = {**self.environment, **wrong}


@dataclass
class Balancer:
    """HAProxy, with one listening socket for each of its addresses."""

    folder: Path
    listeners: Sequence[socket.socket]
    process: subprocess.Popen[bytes] | None = None

    @property
    def ports(self) -> list[int]:
        return [int(listener.getsockname()[1]) for listener in self.listeners]

    def start(self, configuration: str) -> None:
        """``{sockets[0]}`` and so on stand for the listening sockets."""
        sockets = [f"fd@{listener.fileno()}" for listener in self.listeners]
        file = self.folder / "haproxy.cfg"
        file.write_text(configuration.format(sockets=sockets))
        self.process = subprocess.Popen(
            [program("haproxy"), "-db", "-q", "-f", str(file)],
            pass_fds=[listener.fileno() for listener in self.listeners],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """It passes on nothing, and closes nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE_S)
        for listener in self.listeners:
            listener.close()


@dataclass
class Cluster:
    """The nodes, and what is around them."""

    nodes: list[ClusterNode]
    database: str
    """The URL that the nodes use."""
    servers: list[PostgresServer]
    """The primary first."""
    to_database: Balancer
    to_bodies: Balancer
    url: str
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def primary(self) -> PostgresServer:
        return self.servers[0]

    def create_pod(self, name: str) -> None:
        """A pod, of whose owner :meth:`ask` then sends requests."""
        fields = {"Content-Type": "application/json"}
        sent = json.dumps({"name": name})
        created = request_to("POST", f"{self.url}/.pods", sent, fields)

        def is_answered() -> bool:
            nonlocal created
            if created.status == 503:  # a busy machine has stopped a node, or the database recovers
                created = request_to("POST", f"{self.url}/.pods", sent, fields)
            return created.status != 503

        wait_until(is_answered, "answer other than 503")
        assert created.status == 201, created.text
        self.tokens[name] = json.loads(created.body)["token"]

    def fields(self, target: str) -> dict[str, str]:
        """The headers of a request of the owner of the pod that has the target."""
        token = self.tokens[target.split("/")[1]]
        return {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}

    def ask(self, method: str, target: str, body: str | None = None, **more: str) -> Answer:
        """A request of a pod's owner, by way of the balancer."""
        fields = self.fields(target) | {name.replace("_", "-"): more[name] for name in more}
        return request_to(method, self.url + target, body, fields)

    def connect(self) -> psycopg.Connection:
        """A connection to the database that passes the balancer by."""
        name = psycopg.conninfo.conninfo_to_dict(self.database)["dbname"]
        return psycopg.connect(self.primary.url(str(name)), autocommit=True)

    def fail_over(self) -> None:
        """The primary dies for good, and the standby takes its place."""
        self.servers.pop(0).kill()
        self.primary.promote()


@contextlib.contextmanager
def running_cluster(folder: Path, *, nodes: int = NODES) -> Iterator[Cluster]:
    """Three nodes that have just started, all at the same time."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server_on_disk(PostgresServer)) for _ in range(2)]
        servers[0].create()
        servers[1].create_standby(servers[0])
        url = servers[0].create_database()
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        to_database = _balancer(stack, folder / "database", 2)
        to_database.start(
            _PASSING_ON
            + "".join(
                _LISTENING.format(number, f"unix@{server.socket}")
                for number, server in enumerate(servers)
            )
        )
        ports = ",".join(map(str, to_database.ports))
        database = (
            f"postgresql://postgres@/{name}?host=127.0.0.1,127.0.0.1&port={ports}"
            "&target_session_attrs=read-write"
        )
        bodies = shared_s3_server()
        to_bodies = _balancer(stack, folder / "bodies", 1)
        to_bodies.start(_PASSING_ON + _LISTENING.format(0, f"127.0.0.1:{bodies.port}"))
        through = f"http://127.0.0.1:{to_bodies.ports[0]}"
        location = bodies.new_location().replace(bodies.endpoint, through)
        balancer = _balancer(stack, folder / "balancer", 1)
        balanced = f"http://localhost:{balancer.ports[0]}"
        started: list[ClusterNode] = []
        for number in range(nodes):
            node = ClusterNode(
                folder / f"node{number}",
                options=("--base-url", balanced),
                environment={
                    "PODSTEAD_DATABASE": database,
                    "PODSTEAD_BODIES": location,
                    **s3_environment(),
                },
                balancer_url=balanced,
            )
            stack.callback(node.close)
            started.append(node)
        start_together(started)
        balancer.start(_BALANCING + _node_parts(started))
        yield Cluster(started, database, servers, to_database, to_bodies, balanced)


def start_together(nodes: Sequence[ClusterNode]) -> None:
    """Start nodes at the same time."""
    for node in nodes:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            node.port = node.port or int(listener.getsockname()[1])
    for node in nodes:
        node.launch()
    for node in nodes:
        node.wait_for_line(f"Podstead is ready at {node.base_url}/")


def _balancer(stack: contextlib.ExitStack, folder: Path, listeners: int) -> Balancer:
    folder.mkdir()
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(listeners)]
    balancer = Balancer(folder, sockets)
    stack.callback(balancer.close)
    return balancer


_PASSING_ON = f"""
defaults
    mode tcp
    timeout connect {DEADLINE_S}s
    timeout client 1h
    timeout server 1h
"""


_LISTENING = """
listen place{0}
    bind {{sockets[{0}]}}
    server only {1}
"""

# A request is sent again only if the node could not be connected to.
_BALANCING = f"""
defaults
    mode http
    timeout connect {DEADLINE_S}s
    timeout client {DEADLINE_S}s
    timeout server {DEADLINE_S}s
    retries 3
    option redispatch 1
    option http-server-close
    balance roundrobin
frontend clients
    bind {{sockets[0]}}
    default_backend nodes
"""


def _node_parts(nodes: Sequence[ClusterNode]) -> str:
    servers = "\n".join(
        f"    server node{number} 127.0.0.1:{node.port} check inter 200ms fall 2 rise 1"
        for number, node in enumerate(nodes)
    )
    return f"backend nodes\n{servers}\n"
