"""Three nodes behind a balancer: what was acknowledged survives each fault, and service returns.

In every test, writers send requests through the balancer and note each write that is acknowledged,
while watchers are connected to nodes. A fault begins, lasts for a while, and ends.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

from tests.support.cluster import Cluster, ClusterNode, running_cluster, start_together
from tests.support.server import DEADLINE_S, Answer
from tests.support.workers import processes_of

pytestmark = pytest.mark.needs("haproxy")

WRITERS = 8
WRITES = 5
"""How many writes of each kind each writer has acknowledged before and after a fault."""
FAULT_S = 1.0
"""How long writers meet a fault that does not end by itself."""
MINUTE_S = 60
LARGE = " and so on" * 8000
"""What makes a body too large for the database."""

_STORED = {200, 201, 204, 205}
_TROUBLE = {502, 503, 504}
"""What a client may be answered during a fault: the write has been made or not."""
_MESSAGE = re.compile(rb'<(urn:uuid:[^>]+)>[^"]+"[^"]+"[^"]+notify:state "([^"]+)"')
_names = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


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
        assert answer.status in {*_STORED, 412, *_TROUBLE}, (method, target, answer)
        if answer.status == 503 and "retry-after" not in answer.headers:
            assert "<html>" in answer.text, "of the balancer, which has no node"
        return None if answer.status in _TROUBLE else answer

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


class Watcher(threading.Thread):
    """A client of one node that hears of the changes of a document."""

    def __init__(self, cluster: Cluster, node: ClusterNode, target: str) -> None:
        super().__init__(daemon=True)
        self._connection = node.connect()
        topic = (cluster.url + target).replace(":", "%3A").replace("/", "%2F")
        place = f"/.notifications/StreamingHTTPChannel2023/{topic}"
        self._connection.request("GET", place, headers=cluster.fields(target))
        self._stream = self._connection.getresponse()
        assert self._stream.status == 200
        self._heard = b""
        self._more = threading.Condition(threading.RLock())

    def run(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            while piece := self._stream.read1(4096):
                with self._more:
                    self._heard += piece
                    self._more.notify_all()

    def messages(self) -> list[tuple[str, str]]:
        """The identifier of each message, and the state that it states."""
        with self._more:
            return [(each[1].decode(), each[2].decode()) for each in _MESSAGE.finditer(self._heard)]

    def check(self, writers: Writers) -> None:
        """After one about the state at first, there was one message about each change, in order.

        A message states the newest state at the time when it is sent, which may be that of a later
        change.
        """
        numbers = {each.tag: each.number for each in writers.increments}
        with self._more:
            assert self._more.wait_for(lambda: len(self.messages()) > writers.last, DEADLINE_S)
        _first, *messages = self.messages()
        assert len({identifier for identifier, _ in messages}) == len(messages) == writers.last
        heard = [
            (change, numbers[tag]) for change, (_, tag) in enumerate(messages, 1) if tag in numbers
        ]
        assert all(number >= change for change, number in heard), "a change was left out"
        assert heard == sorted(heard, key=lambda each: each[1]), "a state came after a later one"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self.join(DEADLINE_S)
        self._connection.close()


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


Fault = Callable[[Cluster], AbstractContextManager[None]]


@pytest.mark.parametrize(
    "fault",
    [
        killed_node,
        paused_node,
        killed_database,
        failed_over_database,
        cut_database,
        paused_bodies,
        full_pools,
        pytest.param(wrong_clocks, marks=pytest.mark.needs("faketime")),
    ],
    ids=lambda fault: fault.__name__,
)
def test_nothing_acknowledged_is_lost(cluster: Cluster, fault: Fault) -> None:
    writers = Writers(cluster, f"pod{next(_names)}")
    # The last node lives through all faults.
    with watching(cluster, cluster.nodes[-1], writers.counter) as watcher, writing(writers):
        writers.wait_for_progress()
        with fault(cluster):
            threading.Event().wait(FAULT_S)
        writers.wait_for_progress()
        writers.finish()
        writers.check()
        watcher.check(writers)


def test_nodes_are_replaced_one_after_the_other_and_no_request_fails(cluster: Cluster) -> None:
    writers = Writers(cluster, f"pod{next(_names)}")
    with writing(writers):
        writers.wait_for_progress()
        for node in cluster.nodes:
            node.restart()
            writers.wait_for_progress()
        writers.finish()
        writers.check()
    assert writers.statuses <= {*_STORED, 412}


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
def watching(cluster: Cluster, node: ClusterNode, target: str) -> Iterator[Watcher]:
    watcher = Watcher(cluster, node, target)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.close()
