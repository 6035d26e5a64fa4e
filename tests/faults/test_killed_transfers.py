"""SIGKILL during the move, copy or deletion of a tree: it happened entirely or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from threading import Event, Timer
from urllib.parse import urlsplit

import pytest

from tests.support import tus
from tests.support.client import Client, Pod, create_pod
from tests.support.engine import bodies_in, new_store
from tests.support.server import DEADLINE_S, ServerProcess, running_server
from tests.support.transfers import tree_at
from tests.support.workers import kill_everything

ROUNDS = 8
LONGEST_S = 0.6
A_DAY_MS = 24 * 60 * 60 * 1000
LARGE_BYTES = 200_000

Contents = dict[str, bytes]
"""The bytes of each resource by its path in the tree, but for rules, which name their place."""


async def trees_in(root: Path, container: str) -> dict[str, Contents]:
    """The trees in a container, by name."""
    store = new_store(root)
    await store.open()
    try:
        found: dict[str, Contents] = {}
        for path, (_, content) in (await tree_at(store, container)).items():
            name, _, rest = path.partition("/")
            if rest != "" or path.endswith("/"):
                found.setdefault(name, {})[rest] = b"" if rest.endswith(".acl") else content
        return found
    finally:
        await store.close()


async def swept(root: Path) -> list[int]:
    """The sizes of the large bodies that are in use, after everything unused was removed."""
    store = new_store(root)
    await store.open()
    try:
        await store.sweep(now_ms=time.time_ns() // 1_000_000 + A_DAY_MS)
        former = await store.fetch("SELECT size_bytes FROM former_states WHERE blob IS NOT NULL")
    finally:
        await store.close()
    sizes = Counter(bodies_in(root).sizes_bytes())
    sizes.subtract(size for (size,) in former)
    return list(sizes.elements())


def plant(client: Client, pod: Pod, container: str) -> None:
    for number in range(60):
        body = f"document {number}".encode() * (number + 1)
        path = f"{container}first/{number % 7}/{number}"
        assert client.put(path, body, "text/plain").status == 201
    for number in range(3):
        path = f"{container}first/large{number}"
        assert client.put(path, b"x" * (LARGE_BYTES + number), "text/plain").status == 201
    rules = pod.acl(f"{container}first/0/")
    assert client.put(f"{container}first/0/.acl", rules, "text/turtle").status == 201


@pytest.mark.timeout(300)
def test_a_killed_server_has_each_tree_whole_or_not_at_all(disk_path: Path) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    chance = random.Random(seed)
    server = ServerProcess(root=disk_path / "root", options=("--workers", "1"))
    acknowledged = 0
    try:
        server.start()
        pod = create_pod(server)
        container = f"{pod.root}trees/"
        with pod.owner() as client:
            plant(client, pod, container)
        whole = asyncio.run(trees_in(server.root, container))["first"]
        assert len(whole) > 63
        present, number = {"first"}, 0
        for _ in range(ROUNDS):
            pending: set[str] = present
            timer = Timer(chance.uniform(0, LONGEST_S), kill_everything, (server, chance))
            with pod.owner() as client:
                timer.start()
                try:
                    while True:
                        number += 1
                        source = chance.choice(sorted(present))
                        method, pending = _step(chance, present, source, f"t{number}")
                        headers = (
                            {"Depth": "infinity"}
                            if method == "DELETE"
                            else {"Destination": f"{container}t{number}/"}
                        )
                        answer = client.request(method, f"{container}{source}/", headers=headers)
                        assert answer.status == (204 if method == "DELETE" else 201)
                        present, acknowledged = pending, acknowledged + 1
                except (OSError, HTTPException):
                    pass
            timer.join(DEADLINE_S)
            found = asyncio.run(trees_in(server.root, container))
            assert set(found) in (present, pending)
            assert all(contents == whole for contents in found.values())
            present = set(found)
            server.start()
        assert server.stop() == 0
    finally:
        server.close()
    assert acknowledged > ROUNDS
    sizes = asyncio.run(swept(server.root))
    assert sorted(sizes) == sorted([LARGE_BYTES + n for n in range(3)] * len(present))


def _step(chance: random.Random, present: set[str], source: str, new: str) -> tuple[str, set[str]]:
    """A request, and the trees that are there once it is answered."""
    if len(present) > 1 and chance.random() < 0.4:
        return "DELETE", present - {source}
    if chance.random() < 0.5:
        return "COPY", present | {new}
    return "MOVE", present - {source} | {new}


# --- uploads -----------------------------------------------------------------------------------
#
# SIGKILL in the middle of uploads: what was acknowledged is there, and they can be continued.


PART_BYTES = 200_000
PARTS = 12
UPLOADS = 4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(root=tmp_path / "root", options=["--workers", "2"])) as made:
        yield made


def fields(pod: Pod, **further: str) -> dict[str, str]:
    return {
        **tus.VERSION,
        "Authorization": f"Bearer {pod.token}",
        **{name.replace("_", "-"): value for name, value in further.items()},
    }


class Upload:
    """The client of one upload, which sends until the server is gone."""

    def __init__(self, server: ServerProcess, pod: Pod, number: int) -> None:
        self.server = server
        self.pod = pod
        self.target = f"{pod.root}private/{number}.bin"
        self.content = os.urandom(PART_BYTES * PARTS)
        self.acknowledged = 0
        self.milestone = 0
        self.reached = Event()
        """Set once the milestone has been acknowledged."""
        headers = fields(
            pod,
            Upload_Length=str(len(self.content)),
            Upload_Metadata=tus.metadata(target=self.target, if_none_match="*"),
        )
        answer = server.request("POST", tus.PLACE, headers=headers)
        assert answer.status == 201, answer.text
        self.path = urlsplit(answer.headers["location"]).path

    def offset(self) -> int:
        answer = self.server.request("HEAD", self.path, headers=fields(self.pod))
        assert answer.status == 200
        return int(answer.headers["upload-offset"])

    def send(self) -> None:
        """Send part after part, until the end or until the server is gone."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            offset = self.offset()
            assert offset >= self.acknowledged, "what was acknowledged is missing"
            while offset < len(self.content):
                part = self.content[offset : offset + PART_BYTES]
                headers = fields(self.pod, Upload_Offset=str(offset), Content_Type=tus.OCTETS)
                answer = self.server.request("PATCH", self.path, part, headers)
                assert answer.status == 204, answer.text
                self.acknowledged = offset = int(answer.headers["upload-offset"])
                if offset >= self.milestone:
                    self.reached.set()
        self.reached.set()


@pytest.mark.feature("uploads")
def test_a_killed_server_continues_every_upload_where_it_was_acknowledged(
    server: ServerProcess,
) -> None:
    pod = create_pod(server)
    uploads = [Upload(server, pod, number) for number in range(UPLOADS)]
    for parts in (random.randrange(1, 6), random.randrange(6, 11)):
        uploads[0].milestone = parts * PART_BYTES
        uploads[0].reached.clear()
        with ThreadPoolExecutor(UPLOADS) as threads:
            sending = [threads.submit(upload.send) for upload in uploads]
            assert uploads[0].reached.wait(DEADLINE_S)
            server.kill()
            for each in sending:
                each.result()
        server.start()
    for upload in uploads:
        upload.send()
        assert upload.offset() == len(upload.content)
        answer = server.get(upload.target, {"Authorization": f"Bearer {pod.token}"})
        assert hashlib.sha256(answer.body).digest() == hashlib.sha256(upload.content).digest()
    assert [name for name in bodies_in(server.root).names() if name.startswith("uploads/")] == []
