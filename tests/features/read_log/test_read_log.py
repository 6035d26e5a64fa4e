"""Read logs: what they record, who sees them, and how they end."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.errors import Conflict
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.read_log import recording
from podstead.features.read_log.recording import BATCHES, ReadRecorder
from tests.support.application import BASE, Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.postgresql import new_database

FOLDER = "/alice/photos/"
SEA, LAKE = f"{FOLDER}sea.txt", f"{FOLDER}lakes/lake.txt"
LOG = f"/.pages/read-log{FOLDER}"
ALICE, BOB = f"{BASE}/alice/#me", f"{BASE}/bob/#me"
BOB_READS = f"acl:agent <{BOB}>"
DAY_S = 24 * 3600


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await with_photos(await start(clock=clock, token_lifetime_s=366 * DAY_S))


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_by_token(server, server.alice)


async def with_photos(server: Server) -> Server:
    for path in (SEA, LAKE, "/alice/other.txt"):
        assert (await server.alice.put(path, path, "text/plain")).status == 201
    await server.put_acl(FOLDER, (BOB_READS, "+Read"), ("acl:agentClass foaf:Agent", "+Read"))
    return server


async def switch(browser: Browser, log: str, address: str = LOG) -> str:
    return (await browser.send(await browser.get(address), address, log=log)).text


async def logged(browser: Browser, address: str = LOG) -> dict[tuple[str | None, str | None], int]:
    """How often who has read what, by the JSON of the page."""
    answer = await browser.get(address, accept="application/json")
    assert answer.status == 200, answer.text
    read: list[dict[str, Any]] = answer.answer.json()["reads"]
    resources = [str(each["resource"]).removeprefix(BASE) for each in read]
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for each, resource in zip(read, resources, strict=True):
        counts[each["agent"], resource] += each["count"]
    return counts


async def test_who_reads_what_is_recorded_once_the_log_is_on(
    server: Server, alice: Browser
) -> None:
    assert (await server.bob.get(SEA)).status == 200
    assert "Nothing is recorded here" in (await alice.get(LOG)).text
    assert "From now on" in await switch(alice, "on")
    assert await logged(alice) == {}
    for client, path in (
        (server.bob, SEA),
        (server.bob, SEA),
        (server.bob, LAKE),
        (server.public, SEA),
        (server.public, FOLDER),
        (server.alice, SEA),
        (server.bob, "/alice/other.txt"),
        (server.bob, f"{FOLDER}.acl"),
        (server.bob, f"{FOLDER}none"),
    ):
        await client.get(path)
    assert await logged(alice) == {
        (BOB, SEA): 2, (BOB, LAKE): 1, (None, SEA): 1, (None, FOLDER): 1, (ALICE, SEA): 1
    }  # fmt: skip
    page = (await alice.get(LOG)).text
    for shown in ("bob", "Somebody who was not signed in", "lake.txt", "photos</bdi></a>"):
        assert shown in page


async def test_no_cache_hides_a_read(server: Server, alice: Browser) -> None:
    """What was cached before the log was on, and conditional requests, are counted, too."""
    await server.bob.get(SEA)
    etag = (await server.bob.get(SEA)).header("etag")
    await switch(alice, "on")
    for _ in range(3):
        assert (await server.bob.get(SEA)).status == 200
    assert (await server.bob.get(SEA, if_none_match=etag or "")).status == 304
    assert (await server.bob.head(SEA)).status == 200
    assert await logged(alice) == {(BOB, SEA): 4}


async def test_pages_archives_and_copies_read_as_well(server: Server, alice: Browser) -> None:
    bob = await sign_in_by_token(server, server.bob)
    await switch(alice, "on")
    for _ in range(2):
        assert (await bob.get(f"/.pages/files{FOLDER}")).status == 200
    assert (await bob.get(f"/.pages/raw{SEA}")).status == 200
    seen = await logged(alice)
    assert seen[BOB, FOLDER] >= 2
    assert seen[BOB, SEA] == 1
    assert (await bob.get(f"/.pages/zip{FOLDER}")).status == 200
    seen = await logged(alice)
    assert (seen[BOB, SEA], seen[BOB, LAKE]) == (2, 1)
    copied = await server.bob.request("COPY", SEA, headers={"Destination": "/bob/sea.txt"})
    assert copied.status == 201
    assert (await logged(alice))[BOB, SEA] == 3


async def test_each_document_of_a_copied_tree_and_of_one_that_leaves_its_pod_is_recorded(
    server: Server, alice: Browser
) -> None:
    await server.put_acl("/alice/photos/", (BOB_READS, "+Read +Write +Control"))
    await server.put_acl("/alice/", (BOB_READS, "+Read +Write"))
    deep = f"{LOG}lakes/"
    await switch(alice, "on", deep)
    copied = await server.bob.request(
        "COPY", FOLDER, headers={"Destination": "/bob/copy/", "Depth": "infinity"}
    )
    assert copied.status == 201
    assert (await logged(alice, deep))[BOB, LAKE] == 1
    within = {"Destination": f"{FOLDER}lake.txt"}
    assert (await server.bob.request("MOVE", LAKE, headers=within)).status == 201
    assert (await logged(alice, deep))[BOB, LAKE] == 1
    within = {"Destination": LAKE}
    assert (await server.bob.request("MOVE", f"{FOLDER}lake.txt", headers=within)).status == 201
    leaving = {"Destination": "/bob/lake.txt"}
    assert (await server.bob.request("MOVE", LAKE, headers=leaving)).status == 201
    assert (await logged(alice, deep))[BOB, LAKE] == 2


@pytest.mark.feature("history")
async def test_what_is_restored_elsewhere_is_recorded(server: Server, alice: Browser) -> None:
    await server.put_acl(FOLDER, (BOB_READS, "+Read +Write"))
    await switch(alice, "on")
    assert (await server.bob.delete(SEA)).status in (200, 204, 205)
    [item] = (await server.bob.get("/.history/trash/alice/")).json()["items"]
    restored = await server.bob.request(
        "POST",
        item["id"].removeprefix(BASE),
        headers={"Content-Type": "application/json"},
        body=json.dumps({"to": f"{BASE}/bob/sea.txt"}).encode(),
    )
    assert restored.status == 201
    assert (await logged(alice))[BOB, SEA] == 1


@pytest.mark.feature("history")
async def test_who_reads_an_earlier_version_is_recorded(
    server: Server, alice: Browser, clock: FakeClock
) -> None:
    clock.advance(60)
    assert (await server.alice.put(SEA, "new", "text/plain")).status in (200, 204, 205)
    timemap = (await server.bob.get(f"/.history/timemap{SEA}")).text
    (former, _present) = re.findall(r"<[^>]*(/\.history/version/[^>]+)>", timemap)
    await switch(alice, "on")
    for _ in range(2):
        assert (await server.bob.get(former)).text == SEA
    assert await logged(alice) == {(BOB, SEA): 2}


async def test_only_who_controls_the_folder_sees_and_switches(
    server: Server, alice: Browser
) -> None:
    await switch(alice, "on")
    await server.bob.get(SEA)
    bob = await sign_in_by_token(server, server.bob)
    nobody = Browser(server.application)
    assert (await bob.get(LOG)).status == 403
    assert (await bob.get(LOG, accept="application/json")).status == 403
    assert (await nobody.get(LOG)).path == "/.pages/sign-in"
    page = await bob.get("/.pages/read-log/bob/")
    token = page.form("/.pages/read-log/bob/").fields["csrf_token"]
    assert (await bob.post(LOG, {"csrf_token": token, "log": "off"})).status == 403
    assert await logged(alice) == {(BOB, SEA): 1}
    assert (await alice.get(f"/.pages/read-log{SEA}")).status == 404
    assert (await alice.get(f"/.pages/read-log{FOLDER}none/")).status == 404


async def test_what_the_viewer_does_not_control_is_left_out(server: Server, alice: Browser) -> None:
    """Who controls a folder need not control all that is in it."""
    await server.put_acl(FOLDER, (BOB_READS, "+Read +Control"))
    await server.put_acl(LAKE, (BOB_READS, "Read"))
    await switch(alice, "on")
    for path in (SEA, LAKE):
        await server.bob.get(path)
    bob = await sign_in_by_token(server, server.bob)
    assert await logged(bob) == {(BOB, SEA): 1}
    assert await logged(alice) == {(BOB, SEA): 1, (BOB, LAKE): 1}


async def test_switching_off_deletes(server: Server, alice: Browser) -> None:
    await switch(alice, "on")
    await server.bob.get(SEA)
    assert await logged(alice) == {(BOB, SEA): 1}
    assert "the log was deleted" in await switch(alice, "off")
    await server.bob.get(SEA)
    await switch(alice, "on")
    assert await logged(alice) == {}


async def test_a_log_follows_its_folder_and_ends_with_it(server: Server, alice: Browser) -> None:
    lakes = f"/.pages/read-log{FOLDER}lakes/"
    await switch(alice, "on", lakes)
    await server.bob.get(LAKE)
    moved = f"{FOLDER}waters/"
    headers = {"Destination": moved}
    assert (await server.alice.request("MOVE", f"{FOLDER}lakes/", headers=headers)).status == 201
    await server.bob.get(f"{moved}lake.txt")
    waters = f"/.pages/read-log{moved}"
    assert await logged(alice, waters) == {(BOB, LAKE): 1}
    token = (await alice.get(waters)).form(waters).fields["csrf_token"]
    await alice.post(waters, {"csrf_token": token, "log": "on"})  # it is; the worker learns of it
    await server.bob.get(f"{moved}lake.txt")
    assert await logged(alice, waters) == {(BOB, LAKE): 1, (BOB, f"{moved}lake.txt"): 1}
    assert (await server.alice.delete(f"{moved}lake.txt")).status < 300
    assert (await server.alice.delete(moved)).status < 300
    await server.alice.put(f"{moved}lake.txt", "new", "text/plain")
    assert "Nothing is recorded here" in (await alice.get(waters)).text


async def test_entries_end(server: Server, alice: Browser, clock: FakeClock) -> None:
    await switch(alice, "on")
    await server.bob.get(SEA)
    assert await logged(alice) == {(BOB, SEA): 1}
    clock.advance(91 * DAY_S)
    assert await logged(await sign_in_by_token(server, server.alice)) == {}


async def test_an_operator_can_forbid_logs(start: Start) -> None:
    server = await start(read_log_days=0)
    alice = await sign_in_by_token(server, server.alice)
    assert (await alice.get("/.pages/read-log/alice/")).status == 404
    assert "read log" not in (await alice.get("/.pages/share/alice/")).text


# --- the recorder -------------------------------------------------------------------------------


@pytest.fixture
def services(settings: Settings, clock: FakeClock, server: Server) -> Services:
    return Services(settings, clock)


def recorder_of(services: Services) -> ReadRecorder:
    return ReadRecorder(services.records, days=90, forget_responses=lambda: None)


async def stored(recorder: ReadRecorder, folder: str) -> Counter[tuple[str, str, str]]:
    found = await recorder.records.read(recording.LOGS, folder)
    counts: Counter[tuple[str, str, str]] = Counter()
    if found is not None:
        async for batch in recorder.batches(found.value.log_id):
            for each in batch.value.reads:
                counts[each.agent, each.client, each.path] += each.count
    return counts


@pytest.fixture(params=["sqlite", "postgresql"])
def data_root(
    request: pytest.FixtureRequest, settings: Settings, tmp_path: Path
) -> Iterator[Settings]:
    """A new data root, on each engine."""
    with ExitStack() as stack:
        changed = settings.with_values(root=tmp_path / "workers")
        if request.param == "postgresql":
            changed = changed.with_values(database=stack.enter_context(new_database()))
        stack.enter_context(prepared_root(changed))
        yield changed


FOLDERS = [ResourcePath(each) for each in ("/alice/", FOLDER, f"{FOLDER}lakes/", "/bob/")]
PATHS = [*FOLDERS, *map(ResourcePath, (SEA, LAKE, "/bob/x", "/alice/other.txt"))]
READERS = [
    None,
    Identity(ALICE, AuthenticationMethod.SIMPLE),
    Identity(BOB, AuthenticationMethod.DPOP, client_id="https://app.example/id"),
    Identity(BOB, AuthenticationMethod.DPOP),
]


class Model:
    """What each log should contain: a plain sum of what was read while it was on."""

    def __init__(self, recorders: Sequence[ReadRecorder]) -> None:
        self.recorders = recorders
        self.logs: dict[str, Counter[tuple[str, str, str]]] = {}

    async def switch(self, folder: ResourcePath) -> None:
        if folder in self.logs:
            del self.logs[folder]
            await self.recorders[0].switch_off(folder)
        else:
            self.logs[folder] = Counter()
            await self.recorders[0].switch_on(folder)
        for each in self.recorders:
            await each.look()

    def read(self, by: ReadRecorder, reader: Identity | None, path: ResourcePath) -> None:
        above = [each for each in self.logs if path.startswith(each)]
        assert by.note_read(reader, path) == bool(above)
        name = ("", "") if reader is None else (reader.iri, reader.client_id or "")
        for each in above:
            self.logs[each][(*name, path)] += 1


async def test_two_workers_and_random_reads_against_a_model(
    data_root: Settings, clock: FakeClock
) -> None:
    """Each read is counted in each log of a folder above it that is on, whichever worker answers,
    whenever they store, and over days."""
    chosen = random.Random(6)
    workers = [Services(data_root, clock) for _ in range(2)]
    model = Model([recorder_of(each) for each in workers])
    for worker in workers:
        await worker.store.open()
    try:
        for _ in range(1500):
            recorder = chosen.choice(model.recorders)
            match chosen.randrange(40):
                case 0:
                    await model.switch(chosen.choice(FOLDERS))
                case 1:
                    await recorder.store()
                case 2:
                    clock.advance(chosen.choice((1, DAY_S // 3)))
                case 3:
                    await recorder.sweep()
                case _:
                    model.read(recorder, chosen.choice(READERS), chosen.choice(PATHS))
        for recorder in model.recorders:
            await recorder.store()
        for folder in FOLDERS:
            found = await stored(recorder, folder)
            assert found == model.logs.get(folder, Counter()), folder
    finally:
        for worker in workers:
            await worker.store.close()


async def test_one_reader_cannot_fill_a_log(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "ROWS_OF_READER", 3)
    recorder = recorder_of(services)
    await services.store.open()
    try:
        await recorder.switch_on(ResourcePath(FOLDER))
        await recorder.look()
        for number in range(20):
            recorder.note_read(None, ResourcePath(f"{FOLDER}{number}"))
            recorder.note_read(None, ResourcePath(f"{FOLDER}0"))
        recorder.note_read(Identity(BOB, AuthenticationMethod.SIMPLE), ResourcePath(SEA))
        await recorder.store()
        found = await stored(recorder, FOLDER)
        assert found == {
            ("", "", f"{FOLDER}0"): 21, ("", "", f"{FOLDER}1"): 1, ("", "", f"{FOLDER}2"): 1,
            ("", "", ""): 17, (BOB, "", SEA): 1,
        }  # fmt: skip
    finally:
        await services.store.close()


async def test_the_oldest_make_room_and_what_belongs_to_nothing_is_removed(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MAX_ROWS", 6)
    monkeypatch.setattr(recording, "ROWS_OF_BATCH", 2)
    recorder = recorder_of(services)
    await services.store.open()
    try:
        await recorder.switch_on(ResourcePath(FOLDER))
        await recorder.look()
        for number in range(20):
            recorder.note_read(None, ResourcePath(f"{FOLDER}{number}"))
            clock.advance(1)
        await recorder.store()
        await recorder.sweep()
        newest = {("", "", f"{FOLDER}{number}") for number in range(14, 20)}
        assert set(await stored(recorder, FOLDER)) == newest
        await services.records.commit([recording.LOGS.drop(FOLDER)])
        await recorder.sweep()
        assert not await BATCHES.page(services.store, now_ms=clock.now_ms())
    finally:
        await services.store.close()


async def test_logs_of_a_pod_are_limited(services: Services) -> None:
    recorder = recorder_of(services)
    await services.store.open()
    try:
        for number in range(recording.MAX_LOGS_OF_POD):
            await recorder.switch_on(ResourcePath(f"/alice/{number}/"))
        with pytest.raises(Conflict):
            await recorder.switch_on(ResourcePath("/alice/more/"))
        await recorder.switch_on(ResourcePath("/bob/"))
    finally:
        await services.store.close()
