"""Three nodes behind a balancer: what was acknowledged survives each fault, and service returns.

In every test, writers send requests through the balancer and note each write that is acknowledged,
while watchers are connected to nodes. A fault begins, lasts for a while, and ends.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest

from tests.support.cluster import Cluster, running_cluster, start_together
from tests.support.cluster_clients import (
    STORED,
    ResumingWatcher,
    SteadyWatcher,
    Writers,
    watching,
    writing,
)
from tests.support.server import ServerProcess
from tests.support.waiting import wait_until
from tests.support.workers import processes_of

pytestmark = pytest.mark.needs("haproxy")

FAULT_S = 1.0
"""How long writers meet a fault that does not end by itself."""
MINUTE_S = 60

_names = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@contextlib.contextmanager
def killed_node(cluster: Cluster) -> Iterator[None]:
    cluster.nodes[0].kill()
    yield
    cluster.nodes[0].start()


@contextlib.contextmanager
def paused_node(cluster: Cluster) -> Iterator[None]:
    """Its machine stands still, and its clients wait."""
    processes = processes_of(cluster.nodes[0])
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    yield
    for process in processes:
        os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def killed_database(cluster: Cluster) -> Iterator[None]:
    cluster.primary.kill()
    yield
    cluster.primary.start()


@contextlib.contextmanager
def failed_over_database(cluster: Cluster) -> Iterator[None]:
    cluster.fail_over()
    yield


@contextlib.contextmanager
def cut_database(cluster: Cluster) -> Iterator[None]:
    """Nothing reaches the database, and no connection is closed."""
    with cluster.to_database.stopped():
        yield


@contextlib.contextmanager
def read_only_database(cluster: Cluster) -> Iterator[None]:
    """It refuses all writes, and keeps its connections open."""
    cluster.primary.set_parameter("default_transaction_read_only", "on")
    yield
    cluster.primary.set_parameter("default_transaction_read_only", "off")


@contextlib.contextmanager
def paused_bodies(cluster: Cluster) -> Iterator[None]:
    """Nothing reaches S3, and no connection is closed."""
    with cluster.to_bodies.stopped():
        yield


@contextlib.contextmanager
def full_pools(cluster: Cluster) -> Iterator[None]:
    """All statements wait for a lock, so all connections are in use."""
    with cluster.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE resources, tokens IN ACCESS EXCLUSIVE MODE")
        yield


@contextlib.contextmanager
def wrong_clocks(cluster: Cluster) -> Iterator[None]:
    """One node is a minute ahead of the third, and another a minute behind it."""
    nodes = cluster.nodes[:2]
    for node, ahead_s in zip(nodes, (MINUTE_S, -MINUTE_S), strict=True):
        node.stop()
        node.set_clock(ahead_s)
    start_together(nodes)
    yield
    for node in nodes:
        node.stop()
        node.set_clock(0)
    start_together(nodes)


@contextlib.contextmanager
def newer_schema(cluster: Cluster) -> Iterator[None]:
    """A node of a newer version has started, and added a column to each table."""
    with cluster.connect() as connection:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        names = [name for (name,) in connection.execute(tables)]
        connection.execute("UPDATE schema_version SET version = version + 1")
        for name in names:
            connection.execute(f"ALTER TABLE {name} ADD COLUMN added TEXT DEFAULT ''".encode())
        yield
        for name in names:
            connection.execute(f"ALTER TABLE {name} DROP COLUMN added".encode())
        connection.execute("UPDATE schema_version SET version = version - 1")


Fault = Callable[[Cluster], AbstractContextManager[None]]


@pytest.mark.parametrize(
    "fault",
    [
        killed_node,
        paused_node,
        killed_database,
        failed_over_database,
        cut_database,
        read_only_database,
        paused_bodies,
        full_pools,
        newer_schema,
        pytest.param(wrong_clocks, marks=pytest.mark.needs("faketime")),
    ],
    ids=lambda fault: fault.__name__,
)
def test_nothing_acknowledged_is_lost(cluster: Cluster, fault: Fault) -> None:
    writers = Writers(cluster, f"pod{next(_names)}")
    # The last node lives through all faults, and the other watcher begins at the first.
    steady = SteadyWatcher(cluster, cluster.nodes[-1], writers.counter)
    resuming = ResumingWatcher(cluster, writers.counter)
    with watching(steady), watching(resuming), writing(writers):
        writers.wait_for_progress()
        with fault(cluster):
            threading.Event().wait(FAULT_S)
        writers.wait_until_back(time.monotonic())
        writers.wait_for_progress()
        writers.finish()
        writers.check()
        steady.check(writers)
        resuming.check(writers)
    # What is wrong outside of a node is one line in its log.
    for node in cluster.nodes:
        assert "Traceback" not in node.errors


def test_nodes_are_replaced_one_after_the_other_and_no_request_fails(cluster: Cluster) -> None:
    writers = Writers(cluster, f"pod{next(_names)}")
    with writing(writers):
        writers.wait_for_progress()
        for node in cluster.nodes:
            node.restart()
            writers.wait_for_progress()
        writers.finish()
        writers.check()
    assert writers.statuses <= {*STORED, 412}


@pytest.mark.needs("faketime")
def test_a_date_never_stands_for_what_another_node_has_replaced(cluster: Cluster) -> None:
    pod = f"pod{next(_names)}"
    cluster.create_pod(pod)
    target = f"/{pod}/private/note"
    fields = cluster.fields(target)
    with wrong_clocks(cluster), cluster.connect() as connection:
        for node in cluster.nodes:
            assert node.request("PUT", target, "dated", fields).status in STORED
            found = connection.execute(
                "SELECT modified_ms FROM resources WHERE path = %s", [target]
            )
            (modified_ms,) = next(iter(found))
            assert abs(modified_ms / 1000 - time.time()) < MINUTE_S / 2, "by the shared clock"
        for ahead, other in itertools.permutations(cluster.nodes, 2):
            assert ahead.request("PUT", target, "old", fields).status in STORED
            date = ahead.request("HEAD", target, headers=fields).headers["last-modified"]
            assert other.request("PUT", target, "new", fields).status in STORED
            for node in cluster.nodes:
                since = fields | {"If-Modified-Since": date}
                read = node.request("GET", target, headers=since)
                assert (read.status, read.text) == (200, "new")
                unless = fields | {"If-Unmodified-Since": date}
                assert node.request("PUT", target, "lost", unless).status == 412


def test_trouble_is_a_line_in_the_log_and_no_traceback(cluster: Cluster) -> None:
    """Trouble of the database, of S3 and of clients; the node has a watcher meanwhile."""
    writers = Writers(cluster, f"pod{next(_names)}")
    node, large = cluster.nodes[-1], f"/{writers.pod}/private/large"
    fields = cluster.fields(large)
    assert node.request("PUT", large, b"x" * 24 * 1024 * 1024, fields).status == 201
    with watching(SteadyWatcher(cluster, node, writers.counter)):
        _leave_within_bodies(node, large, fields)
        with contextlib.closing(node.connect()) as connection:
            connection.request("GET", large, headers=fields)
            reading = connection.getresponse()
            assert reading.read1(1)
            with cluster.to_bodies.stopped():
                with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                    reading.read()
                answers = [node.request("GET", large, headers=fields)]
        with killed_database(cluster):
            for method, target in itertools.product(("GET", "PUT"), ("note", "large")):
                path = f"/{writers.pod}/private/{target}"
                answers.append(node.request(method, path, None if method == "GET" else "", fields))
            answers.append(node.request("POST", "/.pods", '{"name": "other"}', fields))
            wait_until(lambda: "change log could not be read" in node.errors, "trouble of the feed")
    assert {answer.status for answer in answers} == {503}
    assert "Responded to a request with 503: " in node.errors
    assert "Traceback" not in node.errors


def _leave_within_bodies(node: ServerProcess, target: str, fields: Mapping[str, str]) -> None:
    """As clients do whose network is gone."""
    sent = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    for method, more in ("PUT", "Content-Length: 1000000\r\n\r\nabc"), ("GET", "\r\n"):
        with node.open_socket() as connection:
            head = f"{method} {target} HTTP/1.1\r\nHost: {urlsplit(node.base_url).netloc}\r\n{sent}"
            connection.sendall((head + more).encode())
            if method == "GET":
                assert connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
