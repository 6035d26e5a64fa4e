"""Strangers have large documents converted: others are answered, and the memory goes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.client import Client, create_pod
from tests.support.process_memory import resident_bytes
from tests.support.processes import becomes_readable
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until
from tests.support.workers import processes_of

TURTLE = "text/turtle"
FORMATS = ("application/ld+json", "application/n-triples", "application/trig")
DOCUMENTS = 6
MAX_WORKER_BYTES = 256 * 1024 * 1024
"""What the documentation promises for a worker with caches of the default size."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root", ["--workers", "2"])) as server:
        yield server


def test_others_are_answered_and_the_memory_goes_back(server: ServerProcess) -> None:
    """No time is measured: somebody else's requests are answered while those of the strangers still
    wait, which had to wait for all of them before."""
    pod = create_pod(server)
    before = processes_of(server)
    large = "@prefix e: <http://example.org/> .\n" + "".join(
        f"e:s{number} e:p{number % 7} e:o{number}, 'a text with the number {number}' .\n"
        for number in range(45_000)
    )
    with ExitStack() as stack:
        owner = stack.enter_context(pod.owner())
        for number in range(DOCUMENTS):
            assert owner.put(f"{pod.root}large/{number}", large, TURTLE).status == 201
        rules = owner.put(
            f"{pod.root}large/.acl", pod.acl(f"{pod.root}large/", public=["Read"]), TURTLE
        )
        assert rules.status == 201, rules.text
        strangers = []
        for number in range(DOCUMENTS):
            for media_type in FORMATS:
                stranger = stack.enter_context(Client(server))
                strangers.append(stranger)
                stranger.send("GET", f"{pod.root}large/{number}", headers={"Accept": media_type})
        head = owner.request(
            "HEAD", f"{pod.root}large/0", headers={"Accept": "application/n-quads"}
        )
        assert (head.status, head.headers.get("content-length")) == (200, None)
        for number in range(5):
            target = f"{pod.root}small-{number}"
            assert owner.put(target, "<#a> <#p> 1 .", TURTLE).status == 201
            patch = "DELETE { ?a <#p> 1 } INSERT { ?a <#p> 2 } WHERE { ?a <#p> 1 }"
            kind = {"Content-Type": "application/sparql-update"}
            assert owner.request("PATCH", target, patch, kind).status == 204
            assert "2" in owner.get(target, Accept=FORMATS[0]).text
        sockets = [each.socket for each in strangers]
        answered = [each for each in sockets if becomes_readable(each, 0)]
        assert len(answered) < len(strangers)
        statuses = [each.receive().status for each in strangers]
        assert set(statuses) <= {200, 429, 503}
        assert 200 in statuses
    wait_until(lambda: processes_of(server) <= before, "the end of the processes")
    taken_bytes = [resident_bytes(process) for process in before]
    assert max(taken_bytes) < MAX_WORKER_BYTES
