"""Containers of many members."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from tests.blackbox.limited_server import Owner
from tests.storage.engine_suite.engine import commit, put, write
from tests.support.engine import new_store
from tests.support.server import ServerProcess
from tests.support.wire import Wire
from tests.support.workers import (
    forget_peak_memory,
    only_worker,
    peak_memory_bytes,
)

#
# A long listing on a real connection: clients that do not read it or disconnect cost little. The
# kernel's buffers hold some MiB of each connection; what the listing is beyond them, the server
# must not have made.


MEMBERS = 10_000
READERS = 12
NAMES = [f"member-{number:05d}.ttl" for number in range(MEMBERS)]
N_TRIPLES = {"Accept": "application/n-triples"}


@pytest.fixture
def container(owner: Owner) -> str:
    """A container of many members in the owner's pod, put there beside the running server."""
    path = f"{owner.root}large/"
    asyncio.run(_fill(owner.server, path))
    return path


async def _fill(server: ServerProcess, path: str) -> None:
    store = new_store(server.root)
    await store.open()
    await commit(store, write(put(path)))
    for first in range(0, MEMBERS, 2500):
        names = NAMES[first : first + 2500]
        await commit(store, write(*(put(path + name, b"x") for name in names)))
    await store.close()


def test_clients_that_do_not_read_a_listing_fill_no_memory(owner: Owner, container: str) -> None:
    """C-29: pieces are made as they are taken, and others are served meanwhile."""
    expected = {container + name for name in NAMES}
    assert owner.client.members(container) == expected
    size_bytes = len(owner.client.get(container, **N_TRIPLES).body)
    worker = only_worker(owner.server)
    forget_peak_memory(worker)
    before = peak_memory_bytes(worker)
    request = owner.compose("GET", container, N_TRIPLES)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(owner.server)) for _ in range(READERS)]
        for wire in wires:
            wire.send(request)
        for wire in wires:
            assert wire.receive_bytes(9) == b"HTTP/1.1 "
        assert owner.client.members(container) == expected
        for _ in range(50):
            assert owner.client.head(container).status == 200
        assert peak_memory_bytes(worker) - before < READERS * size_bytes / 4
        for wire in wires[::2]:
            wire.reset()
    assert owner.client.members(container) == expected
