"""Owners keep less than the operator does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.date_times import DAY_MS
from podstead.core.identifiers import ResourcePath
from podstead.features.history.retention import CHOICES, Choice, Keeper, Retention
from podstead.resources.planning import PodRecordsHook
from podstead.storage.protocol import Store
from tests.features.history.test_trash import delete, items, put, restore, versions
from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token

DAY_S = 24 * 3600
LONGEST = Retention(30 * DAY_MS, 30 * DAY_MS)


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock, token_lifetime_s=366 * DAY_S)


async def choose(browser: Browser, deleted: str, versions: str) -> str:
    page = await browser.get("/.pages/trash")
    fields = {"pod": "/alice/", "do": "choose", "deleted": deleted, "versions": versions}
    return (await browser.send(page, "/.pages/trash/change", **fields)).text


async def test_what_is_kept_for_longer_than_chosen_is_gone(
    server: Server, clock: FakeClock
) -> None:
    for pod in (server.alice, server.bob):
        name = "alice" if pod is server.alice else "bob"
        for content in ("one", "two"):
            await put(pod, f"/{name}/changed", content)
        await put(pod, f"/{name}/deleted", "one")
        await delete(pod, f"/{name}/deleted")
    clock.advance(2 * DAY_S)
    browser = await sign_in_by_token(server, server.alice)
    assert "nothing is kept for longer" in await choose(browser, "1", "30")
    assert await items(server.alice) == []
    assert await versions(server.alice, "/alice/changed") == 2
    await choose(browser, "30", "1")
    assert await versions(server.alice, "/alice/changed") == 1
    assert len(await items(server.bob, "/bob/")) == 1
    assert await versions(server.bob, "/bob/changed") == 2
    # What comes after is kept as long as that.
    await choose(browser, "1", "1")
    await put(server.alice, "/alice/changed", "three")
    await delete(server.alice, "/alice/changed")
    [item] = await items(server.alice)
    assert (await restore(server.alice, item)).status == 201
    assert await versions(server.alice, "/alice/changed") == 2


async def test_with_0_nothing_new_is_kept(server: Server, clock: FakeClock, store: Store) -> None:
    browser = await sign_in_by_token(server, server.alice)
    await choose(browser, "0", "0")
    assert "gone for good at once" in (await browser.get("/.pages/trash")).text
    for content in ("one", "two"):
        await put(server.alice, "/alice/a", content)
    await delete(server.alice, "/alice/a")
    found = "SELECT path FROM former_states WHERE root = %s"
    assert await store.fetch(found, "/alice/") == []
    for content in ("one", "two"):
        await put(server.bob, "/bob/a", content)
    assert await store.fetch(found, "/bob/") == [("/bob/a",)]
    await choose(browser, "30", "0")
    for content in ("one", "two"):
        await put(server.alice, "/alice/a", content)
    await delete(server.alice, "/alice/a")
    assert len(await store.fetch(found, "/alice/")) == 1
    assert len(await items(server.alice)) == 1


async def test_the_sweep_obeys(
    server: Server, clock: FakeClock, store: Store, settings: Settings
) -> None:
    services = Services(settings, clock)
    services.store = store
    keeper = Keeper(services.records, services.capacity.quotas, LONGEST)
    root = ResourcePath("/alice/")
    for name, pod in (("alice", server.alice), ("bob", server.bob)):
        await put(pod, f"/{name}/a", "one")
        await delete(pod, f"/{name}/a")
    clock.advance(3 * DAY_S)
    await keeper.sweep()
    found = "SELECT path FROM former_states WHERE deleted = 1 AND path >= %s ORDER BY path"
    assert await store.fetch(found, "/") == [("/alice/a",), ("/bob/a",)]
    await keeper.retentions.choose(root, Choice(2, None))
    await keeper.sweep()
    assert await store.fetch(found, "/") == [("/bob/a",)]
    # The operator may keep less than an owner has chosen.
    short = Keeper(services.records, services.capacity.quotas, Retention(DAY_MS, DAY_MS))
    await short.retentions.choose(root, Choice(20, 20))
    assert short.retentions.of(root) == Retention(DAY_MS, DAY_MS)
    await short.sweep()
    assert await store.fetch(found, "/") == []


async def test_only_numbers_of_days_that_the_operator_allows(server: Server) -> None:
    browser = await sign_in_by_token(server, server.alice)
    for wrong in ("31", "-1", "x", "", "1.5"):
        assert "0 to 30" in await choose(browser, wrong, "1")
        assert "0 to 30" in await choose(browser, "1", wrong)
    await put(server.alice, "/alice/a", "one")
    await delete(server.alice, "/alice/a")
    # Nobody chooses for another pod.
    page = await browser.get("/.pages/trash")
    fields = {"pod": "/bob/", "do": "choose", "deleted": "0", "versions": "0"}
    assert (await browser.send(page, "/.pages/trash/change", **fields)).status == 400
    assert len(await items(server.alice)) == 1


async def test_a_choice_follows_its_pod(
    server: Server, clock: FakeClock, settings: Settings, store: Store
) -> None:
    browser = await sign_in_by_token(server, server.alice)
    await choose(browser, "7", "30")
    services = Services(settings, clock)
    services.store = store
    pod = await store.read_pod("alice")
    assert pod is not None
    after = replace(pod, name="alicia", root=ResourcePath("/alicia/"))
    changes = await PodRecordsHook(services.records, CHOICES).of_renaming(
        pod, after, lambda path: path
    )
    await services.records.commit(changes.records, changes.preconditions)
    found = await CHOICES.page(store, now_ms=clock.now_ms())
    assert [(each.key, each.owner, each.value) for each in found] == [
        ("/alicia/", "/alicia/", Choice(7, None))
    ]
