"""SIGKILL at any moment loses nothing that was acknowledged and corrupts nothing (P-54).

The processes die, the system lives on: what this cannot show is that acknowledged writes survive a
power cut, for which they must have reached the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.quota import fixed_charge
from tests.support.client import Client, Pod, create_pod
from tests.support.crash_writers import (
    INLINE_BYTES,
    Model,
    Writer,
    check_server,
    document_sizes,
    settle_all,
    shared_container,
)
from tests.support.engine import bodies_in, new_store
from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.workers import clients_of_every_worker, kill_everything, processes_of, worker_of

ROUNDS = 10
WRITERS = 6
LONGEST_S = 0.5
"""How long a round of writing lasts at most before the server is killed."""
LONGEST_START_S = 0.8
A_DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def chance() -> random.Random:
    """Decides moments and requests. To have the same again, give pytest its --randomly-seed."""
    seed = random.getrandbits(32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    return random.Random(seed)


@pytest.fixture(params=[1, 2], ids="{} workers".format)
def server(request: pytest.FixtureRequest, disk_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(root=disk_path / "root", options=("--workers", str(request.param)))
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(params=["first", "second"])
def repetition(request: pytest.FixtureRequest) -> str:
    """The same again with other moments: two tests of half the length run at the same time."""
    part: str = request.param
    return part


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    pod = create_pod(server)
    with pod.owner() as client:
        assert client.put(shared_container(pod), "", "text/turtle").status == 201
    return pod


@pytest.fixture
def writers(pod: Pod, chance: random.Random) -> Sequence[Writer]:
    seed = str(chance.random())
    return [Writer(pod, number, seed=seed) for number in range(WRITERS)]


@contextlib.contextmanager
def writing(
    writers: Sequence[Writer], clients: Sequence[Client], *, dying: Event, enough: Event
) -> Iterator[list[Future[bool]]]:
    """Have all writers write, and wait for their end; the results tell who was cut off."""
    with ThreadPoolExecutor(len(writers)) as threads:
        under_way = [
            threads.submit(writer.write, client, dying=dying, enough=enough)
            for writer, client in zip(writers, clients, strict=True)
        ]
        yield under_way
        for writer in under_way:
            writer.result(DEADLINE_S)


def until_a_moment(chance: random.Random, longest_s: float) -> None:
    time.sleep(chance.uniform(0, longest_s))  # for nothing: any moment is as good


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("repetition")
def test_a_killed_server_has_all_that_it_acknowledged_and_nothing_torn(
    server: ServerProcess, pod: Pod, writers: Sequence[Writer], chance: random.Random
) -> None:
    used_at_first = asyncio.run(used_bytes(server.root, pod))
    model: Model = {}
    for _ in range(ROUNDS):
        dying = Event()
        with contextlib.ExitStack() as connections:
            clients = [connections.enter_context(pod.owner()) for _ in writers]
            with writing(writers, clients, dying=dying, enough=Event()):
                until_a_moment(chance, LONGEST_S)
                dying.set()
                kill_everything(server, chance)
        if chance.random() < 0.3:
            server.launch()
            until_a_moment(chance, LONGEST_START_S)
            kill_everything(server, chance)
        server.start()
        model = settle_all(pod, writers)
        check_server(pod, model)
    assert server.stop() == 0
    assert sum(writer.acknowledged for writer in writers) > 10 * ROUNDS
    asyncio.run(check_disk(server.root, pod, model, used_at_first))


async def used_bytes(root: Path, pod: Pod) -> int:
    store = new_store(root)
    await store.open()
    try:
        return await store.used_bytes(pod.name)
    finally:
        await store.close()


async def check_disk(root: Path, pod: Pod, model: Model, used_at_first: int) -> None:
    """Nothing is lost to the quota, and after a sweep each large body is in use or kept of the
    past."""
    sizes = document_sizes(model)
    store = new_store(root)
    await store.open()
    try:
        await store.sweep(now_ms=time.time_ns() // 1_000_000 + A_DAY_MS)
        former = await store.fetch("SELECT size_bytes FROM former_states WHERE blob IS NOT NULL")
    finally:
        await store.close()
    paths = [path for path, thing in model.items() if thing and path != shared_container(pod)]
    fixed = sum(fixed_charge(ResourcePath(path)) for path in paths)
    assert await used_bytes(root, pod) == used_at_first + sum(sizes) + fixed
    large = [size for size in sizes if size > INLINE_BYTES] + [size for (size,) in former]
    assert sorted(bodies_in(root).sizes_bytes()) == sorted(large)


@pytest.mark.parametrize("server", [2], indirect=True)
def test_a_killed_worker_costs_only_the_connections_it_had(
    server: ServerProcess, pod: Pod, writers: Sequence[Writer], chance: random.Random
) -> None:
    """Its unfinished writes are undone by whoever writes next, and the others notice nothing."""
    # Each once: a server whose worker dies again and again stops.
    for victim in processes_of(server) - {server.pid}:
        enough = Event()
        every_worker = clients_of_every_worker(
            server, workers=2, each=WRITERS // 2, token=pod.token
        )
        with every_worker as clients:
            doomed = [worker_of(server, client) == victim for client in clients]
            with writing(writers, clients, dying=Event(), enough=enough) as under_way:
                until_a_moment(chance, LONGEST_S)
                os.kill(victim, signal.SIGKILL)
                until_a_moment(chance, LONGEST_S)
                enough.set()
            assert [writer.result() for writer in under_way] == doomed
        check_server(pod, settle_all(pod, writers))
    assert server.errors.count("Unexpected exit from worker") == 2
