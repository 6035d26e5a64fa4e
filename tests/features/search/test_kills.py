"""SIGKILL at every step of indexing: what goes on afterwards completes the same index."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.features.search import indexer
from podstead.features.search.extractor import Extractor
from podstead.features.search.indexer import Indexer
from podstead.features.search.worker import index_of
from podstead.storage.disk_space import DiskSpace
from tests.features.search.killed_indexer import MODULE, Order
from tests.features.search.test_index import found_by_rule
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.postgresql import new_database
from tests.support.processes import clean_environment, run_process
from tests.support.usual_roots import usual_settings

pytestmark = pytest.mark.embedded

DEADLINE_S = 120
STEPS = {
    "before a step": (1, 2, 4),
    "within a step": (1, 3, 5),
    "after a step": (1, 2, 4),
    "after the beginning": (1,),
}


@pytest.fixture(params=["embedded", "postgresql"])
def prepared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    with ExitStack() as stack:
        settings = usual_settings(tmp_path / "root")
        if request.param == "postgresql":
            settings = settings.with_values(database=stack.enter_context(new_database()))
        stack.enter_context(prepared_root(settings))
        yield settings


async def write(server: Server) -> None:
    alice = server.alice
    for name in ("a", "b", "f/c", "f/d", "f/g/e"):
        answer = await alice.put(f"/alice/k/{name}.txt", f"words of {name}", "text/plain")
        assert answer.status == 201
    await server.put_acl("/alice/k/f/", (f"acl:agent <{BASE}/bob/#me>", "+Read"))


async def change(server: Server) -> None:
    alice = server.alice
    assert (await alice.put("/alice/k/a.txt", "other words", "text/plain")).status == 204
    assert (await alice.delete("/alice/k/b.txt")).status == 204
    assert (await alice.delete("/alice/k/f/.acl")).status == 204
    await server.put_acl("/alice/k/f/g/", ("acl:agentClass foaf:Agent", "+Read"))
    for name in ("f/h", "n/i", "n/j"):
        assert (await alice.put(f"/alice/k/{name}.txt", name, "text/plain")).status == 201


async def indexed(settings: Settings, *, anew: bool) -> Mapping[ResourcePath, object]:
    """What the index has when it is complete."""
    async with opened_records(settings) as records:
        index = index_of(settings, records, DiskSpace(settings.root))
        async for _ in Indexer(index, records.store, Extractor()).steps(anew=anew):
            pass
        try:
            return await found_by_rule(index)
        finally:
            await index.close()


@pytest.mark.parametrize("step", STEPS)
async def test_an_index_is_completed_after_a_kill(
    prepared: Settings, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "LOOK_S", 1e6)
    async with running(prepared) as application:
        server = await with_two_pods(application)
        await write(server)
        await indexed(prepared, anew=True)
        await change(server)
    kills = 0
    for nth in STEPS[step]:
        for anew in (step == "after the beginning", True):
            order = Order(str(prepared.root), prepared.database, anew, step, nth)
            ended = await asyncio.to_thread(
                run_process,
                [sys.executable, "-m", MODULE, msgspec.json.encode(order).decode()],
                environment=clean_environment(),
                timeout_s=DEADLINE_S,
            )
            assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
            kills += ended.returncode != 0
    assert kills >= len(STEPS[step])
    found = await indexed(prepared, anew=False)
    expected = await indexed(prepared, anew=True)
    assert found == expected
    rules = {rule for rule in expected if rule.startswith("/alice/k/")}
    assert rules == {"/alice/k/f/g/", "/alice/k/f/g/%00"}
