"""Three nodes behind a balancer: what was acknowledged survives each fault, and service returns.

In every test, writers send requests through the balancer and note each write that is acknowledged,
while watchers are connected to nodes. A fault begins, lasts for a while, and ends.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import pytest

from tests.support.cluster import Cluster, ClusterNode, running_cluster, start_together
from tests.support.server import DEADLINE_S, Answer, ServerProcess, request_to
from tests.support.waiting import wait_until
from tests.support.workers import processes_of

# Clients of a cluster while parts of it fail: writers that note what was acknowledged to them, and
# watchers that note what they hear of it.

WRITERS = 8
WRITES = 5
"""How many writes of each kind each writer has acknowledged before and after a fault."""
BACK_S = 10.0
"""How long after the end of a fault the service is back, at the latest."""
STORED = {200, 201, 204, 205}
TROUBLE = {502, 503, 504}
"""What a client may be answered during a fault: the write has been made or not."""
LARGE = " and so on" * 8000
"""What makes a body too large for the database."""

_MESSAGE = re.compile(rb'<(urn:uuid:[^>]+)>[^"]+"[^"]+"[^"]+notify:state "([^"]+)"')
_PAUSE_S = 0.1
"""How long a watcher that was refused waits before it connects to another node."""


@dataclass(frozen=True)
class Increment:
    """An acknowledged replacement of a number by the next one."""

    number: int
    tag: str


@dataclass
class Writers:
    """Several clients at once, and what they know to be stored in one pod."""

    cluster: Cluster
    pod: str
    """Which is new."""
    numbers: dict[str, int] = field(default_factory=dict)
    """What a document contains at least, by target."""
    increments: list[Increment] = field(default_factory=list)
    unknown: int = 0
    """How many increments were not answered, and may have been made."""
    last: int = 0
    """What they have counted to, once :meth:`check` has looked."""
    statuses: set[int] = field(default_factory=set)
    _acknowledged: dict[int, int] = field(default_factory=dict)
    _progress: threading.Condition = field(default_factory=threading.Condition)
    _running: list[Future[None]] = field(default_factory=list)
    _over: bool = False

    @property
    def counter(self) -> str:
        return f"/{self.pod}/private/counter"

    def __post_init__(self) -> None:
        self.cluster.create_pod(self.pod)
        assert self.cluster.ask("PUT", self.counter, "0").status == 201

    def start(self, threads: ThreadPoolExecutor) -> None:
        self._running = [threads.submit(self._run, number) for number in range(WRITERS)]

    def stop(self) -> None:
        self._over = True

    def finish(self) -> None:
        """End all of them, and raise what was wrong."""
        self.stop()
        for each in self._running:
            each.result()

    def wait_for_progress(self) -> None:
        """Wait until each of them has a number of further writes acknowledged."""
        with self._progress:
            goal = {number: self._acknowledged.get(number, 0) + WRITES for number in range(WRITERS)}

            def is_reached() -> bool:
                return all(self._acknowledged.get(each, 0) >= goal[each] for each in goal)

            assert self._progress.wait_for(is_reached, DEADLINE_S), self.statuses

    def wait_until_back(self, ended_s: float) -> None:
        """Wait until each of them has a write acknowledged after a fault that ended at that time.

        Raises AssertionError if that takes longer than :data:`BACK_S`.
        """
        with self._progress:
            before = dict(self._acknowledged)

            def missing() -> set[int]:
                return {
                    number
                    for number in range(WRITERS)
                    if self._acknowledged.get(number, 0) <= before.get(number, 0)
                }

            rest_s = ended_s + BACK_S - time.monotonic()
            is_back = self._progress.wait_for(lambda: not missing(), rest_s)
            took_s = time.monotonic() - ended_s
        assert is_back, (
            f"{took_s:.1f} s after the fault ended, {len(missing())} of {WRITERS} writers still had"
            f" no write acknowledged; {BACK_S:.0f} s are promised (statuses: {self.statuses})"
        )

    def _run(self, number: int) -> None:
        own = f"/{self.pod}/private/own{number}"
        for value in itertools.count():
            if self._over:
                return
            body = str(value) + (LARGE if number % 2 else "")
            answer = self._ask("PUT", own, body)
            if answer is not None:
                self.numbers[own] = value
                if self._increment():
                    self._note(number)

    def _increment(self) -> bool:
        """Replace the number that all writers share by the next one, if it has not changed since it
        was read; whether nothing went wrong."""
        read = self._ask("GET", self.counter)
        if read is None:
            return False
        number = int(read.text) + 1
        stored = self._ask("PUT", self.counter, str(number), If_Match=read.headers["etag"])
        if stored is None:
            with self._progress:
                self.unknown += 1
        elif stored.status != 412:
            with self._progress:
                self.increments.append(Increment(number, stored.headers["etag"].strip('"')))
        return stored is not None

    def _ask(self, method: str, target: str, body: str | None = None, **more: str) -> Answer | None:
        """The answer; ``None`` if there was trouble."""
        try:
            answer = self.cluster.ask(method, target, body, **more)
        except (OSError, http.client.HTTPException):
            self.statuses.add(0)
            return None
        self.statuses.add(answer.status)
        assert answer.status in {*STORED, 412, *TROUBLE}, (method, target, answer)
        if answer.status == 503 and "retry-after" not in answer.headers:
            assert "<html>" in answer.text, "of the balancer, which has no node"
        return None if answer.status in TROUBLE else answer

    def _note(self, number: int) -> None:
        with self._progress:
            self._acknowledged[number] = self._acknowledged.get(number, 0) + 1
            self._progress.notify_all()

    def check(self) -> None:
        """Nothing acknowledged is lost, and no precondition was broken, as each node sees it."""
        made = [each.number for each in self.increments]
        assert len(made) == len(set(made)), "two writers have replaced the same number"
        for node in self.cluster.nodes:
            for target, number in self.numbers.items():
                assert int(self._read(node, target).split()[0]) >= number, (
                    "an acknowledged write is lost"
                )
            self.last = int(self._read(node, self.counter))
            assert max(made) <= self.last <= len(made) + self.unknown

    def _read(self, node: ClusterNode, target: str) -> str:
        answer = node.request("GET", target, headers=self.cluster.fields(target))
        assert answer.status == 200, answer
        return answer.text


@dataclass(frozen=True)
class Heard:
    """A message, and the state of the resource that it states."""

    identifier: str
    state: str


class Watcher(threading.Thread):
    """A client that hears of the changes of a document until it is closed."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._more = threading.Condition(threading.RLock())

    def messages(self) -> Sequence[Heard]:
        """What it has heard, one message for each change."""
        raise NotImplementedError

    def connect(self, node: ClusterNode) -> http.client.HTTPConnection:
        self._connection = node.connect()
        return self._connection

    def check(self, writers: Writers) -> None:
        """There was one message about each change, in order.

        A message states the newest state at the time when it is sent, which may be that of a later
        change.
        """
        numbers = {each.tag: each.number for each in writers.increments}
        with self._more:
            assert self._more.wait_for(lambda: len(self.messages()) >= writers.last, DEADLINE_S)
        messages = self.messages()
        assert len({each.identifier for each in messages}) == len(messages) == writers.last
        heard = [
            (change, numbers[each.state])
            for change, each in enumerate(messages, 1)
            if each.state in numbers
        ]
        assert all(number >= change for change, number in heard), "a change was left out"
        assert heard == sorted(heard, key=lambda each: each[1]), "a state came after a later one"

    def note(self) -> None:
        """Let :meth:`check` look again."""
        with self._more:
            self._more.notify_all()

    def close(self) -> None:
        self.over.set()
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self.join(DEADLINE_S)
        assert not self.is_alive()
        if self._connection is not None:
            self._connection.close()


class SteadyWatcher(Watcher):
    """One that stays connected to a node that lives through all faults."""

    def __init__(self, cluster: Cluster, node: ClusterNode, target: str) -> None:
        super().__init__()
        place = f"/.notifications/StreamingHTTPChannel2023/{quote(cluster.url + target, safe='')}"
        connection = self.connect(node)
        connection.request("GET", place, headers=cluster.fields(target))
        # A message about the state at first comes before all others.
        self._stream = connection.getresponse()
        assert self._stream.status == 200
        self._heard = b""

    def run(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException), self._stream:
            while piece := self._stream.read1(4096):
                self._heard += piece
                self.note()

    def messages(self) -> Sequence[Heard]:
        found = _MESSAGE.findall(self._heard)
        return [Heard(identifier.decode(), state.decode()) for identifier, state in found[1:]]


class ResumingWatcher(Watcher):
    """One that connects to the next node whenever its stream ends, and says what it has heard."""

    def __init__(self, cluster: Cluster, target: str) -> None:
        super().__init__()
        self._nodes = cluster.nodes
        sent = {
            "@context": ["https://www.w3.org/ns/solid/notification/v1"],
            "type": "EventSourceChannel2023",
            "topic": cluster.url + target,
        }
        fields = cluster.fields(target) | {"Content-Type": "application/ld+json"}
        place = f"{cluster.url}/.notifications/EventSourceChannel2023/"
        created = request_to("POST", place, json.dumps(sent), fields)
        assert created.status == 200, created.text
        self._path = urlsplit(json.loads(created.body)["receiveFrom"]).path
        self._position = ""
        self._heard: list[Heard] = []

    def run(self) -> None:
        for node in itertools.cycle(self._nodes):
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                contextlib.closing(self.connect(node)) as connection,
            ):
                self._listen(connection)
            if self.over.wait(_PAUSE_S):
                return

    def _listen(self, connection: http.client.HTTPConnection) -> None:
        """Until the stream ends."""
        fields = {"Last-Event-ID": self._position} if self._position else {}
        connection.request("GET", self._path, headers=fields)
        if self.over.is_set():
            return
        with connection.getresponse() as stream:
            position = ""
            while stream.status == http.client.OK and (line := stream.readline().decode()):
                name, _, value = line.rstrip().partition(": ")
                assert (name, value) != ("event", "lost")
                if name == "id":
                    position = value
                elif name == "data":
                    message = json.loads(value)
                    self._heard.append(Heard(message["id"], message["state"].strip('"')))
                    self._position = position
                    self.note()

    def messages(self) -> Sequence[Heard]:
        return list(self._heard)


@contextlib.contextmanager
def writing(writers: Writers) -> Iterator[None]:
    """Have them at work."""
    with ThreadPoolExecutor(WRITERS) as threads:
        try:
            writers.start(threads)
            yield
        finally:
            writers.stop()


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[Watcher]:
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.close()


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
