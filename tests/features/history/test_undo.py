"""What somebody has changed is undone, unless somebody else has changed it since."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.date_times import DAY_MS
from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.history import past, retention
from podstead.features.history import undo as undo_module
from podstead.features.history.retention import (
    CREATIONS,
    Choice,
    CreationLog,
    Retention,
    Retentions,
)
from podstead.features.history.undo import Actor
from podstead.storage.former_states import FormerState
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.records import InlineBody, Put, ResourceKind, Version, Write
from tests.features.history.test_keeping import state
from tests.support.application import Server, Start, acl_turtle
from tests.support.asgi import Client
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.rdf import TURTLE

FOLDER = "/alice/private/"
SINCE = "2000-01-01"


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    server = await start(clock=clock)
    for name in ("a", "b", "c", "d", "e"):
        await put(server.alice, name, "good")
    bob = f"acl:agent <{server.bob_web_id}>"
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status in {201, 204}
    return server


async def put(client: Client, name: str, content: str) -> None:
    answer = await client.put(FOLDER + name, content, "text/plain")
    assert answer.status in {201, 204, 205}, answer.text


async def contents(server: Server) -> dict[str, str]:
    found = {}
    for name in ("a", "b", "c", "d", "e", "new"):
        answer = await server.alice.get(FOLDER + name)
        found[name] = answer.text if answer.status == 200 else ""
    return found


async def choose(server: Server, browser: Browser) -> str:
    """The value by which the form names Bob."""
    page = await browser.get("/.pages/undo?pod=alice")
    assert page.status == 200
    assert f"{server.bob_web_id} " in page.text
    return f"{server.bob_web_id} "


async def test_the_changes_of_a_person_are_shown_and_undone(
    server: Server, clock: FakeClock
) -> None:
    for content in ("bad", "worse"):
        clock.advance(5)
        await put(server.bob, "a", content)
    await put(server.bob, "b", "bad")
    await put(server.alice, "b", "mended by Alice")
    await put(server.bob, "c", "bad")
    for name in ("c", "d"):
        assert (await server.bob.delete(FOLDER + name)).status in {200, 204, 205}
    await put(server.bob, "new", "by Bob")
    browser = await sign_in_by_token(server, server.alice)
    who = await choose(server, browser)
    query = f"pod=alice&who={who.replace('#', '%23')}&since={SINCE}"
    page = await browser.get(f"/.pages/undo?{query}")
    assert page.text.count("The version before is restored") == 1
    assert page.text.count("Restored from the trash") == 2
    assert page.text.count("Left: somebody has changed it since") == 1
    assert page.text.count("Moved to the trash") == 1
    assert (await contents(server))["a"] == "worse"
    page = await browser.send(page, "/.pages/undo/changes")
    assert "could not be undone" in page.text
    assert await contents(server) == {
        "a": "good",
        "b": "mended by Alice",
        "c": "good",
        "d": "good",
        "e": "good",
        "new": "",
    }
    # Undoing is an ordinary write: once more, there is nothing left to undo but the conflict.
    page = await browser.get(f"/.pages/undo?{query}")
    assert "Undo these changes" not in page.text


async def test_only_those_with_control_undo_in_a_pod(server: Server) -> None:
    await put(server.bob, "a", "bad")
    browser = await sign_in_by_token(server, server.bob)
    assert (await browser.get("/.pages/undo?pod=alice")).status == 404
    page = await browser.get("/.pages/undo?pod=bob")
    assert page.status == 200
    assert "alice" not in page.text.partition("<main")[2].partition("</main")[0]


def test_what_others_do_with_the_same_application_stays() -> None:
    app, alice, bob = "https://app.example/id", "https://alice.example/#me", "https://b.example/#me"
    by_app = _ended_by(alice, app)
    assert Actor(alice, app).ended(by_app)
    assert not Actor(bob, app).ended(by_app)
    assert not Actor(alice, None).ended(by_app)
    assert Actor(alice, None).ended(_ended_by(alice, None))
    assert not Actor(alice, "https://other.example/id").ended(by_app)


async def undo(server: Server, browser: Browser) -> str:
    """The text of the page after everything of Bob has been undone."""
    who = f"{server.bob_web_id} ".replace("#", "%23")
    page = await browser.get(f"/.pages/undo?pod=alice&who={who}&since={SINCE}")
    return (await browser.send(page, "/.pages/undo/changes")).text


async def test_what_somebody_has_changed_since_is_left_and_said(server: Server) -> None:
    """A document that was there before, and one that was not."""
    for name in ("a", "new"):
        await put(server.bob, name, "by Bob")
        await put(server.alice, name, "mended by Alice")
    await put(server.bob, "b", "bad")
    browser = await sign_in_by_token(server, server.alice)
    assert "could not be undone" in await undo(server, browser)
    found = await contents(server)
    assert [found[name] for name in ("a", "new", "b")] == ["mended by Alice"] * 2 + ["good"]


async def test_a_document_with_rules_that_was_changed_and_deleted(
    server: Server, clock: FakeClock
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    assert (await server.put_acl(f"{FOLDER}a", (bob, "Read Write"))).status == 201
    clock.advance(5)
    await put(server.bob, "a", "encrypted")
    assert (await server.bob.delete(f"{FOLDER}a")).status in {200, 204, 205}
    browser = await sign_in_by_token(server, server.alice)
    assert "The changes have been undone" in await undo(server, browser)
    assert (await contents(server))["a"] == "good"
    assert (await server.bob.get(f"{FOLDER}a")).text == "good"


async def test_what_was_changed_before_its_folder_was_deleted(
    server: Server, clock: FakeClock
) -> None:
    for name in ("s/a", "s/b"):
        await put(server.alice, name, "good")
    clock.advance(5)
    await put(server.bob, "s/a", "encrypted")
    await put(server.bob, "s/new", "by Bob")
    clock.advance(5)
    answer = await server.bob.request("DELETE", f"{FOLDER}s/", headers={"Depth": "infinity"})
    assert answer.status in {200, 204, 205}
    browser = await sign_in_by_token(server, server.alice)
    assert "The changes have been undone" in await undo(server, browser)
    assert (await server.alice.get(f"{FOLDER}s/a")).text == "good"
    assert (await server.alice.get(f"{FOLDER}s/b")).text == "good"


async def test_what_is_in_the_place_of_a_deleted_folder_stays(
    server: Server, clock: FakeClock
) -> None:
    await put(server.alice, "s/a", "good")
    clock.advance(5)
    await put(server.bob, "s/a", "encrypted")
    clock.advance(5)
    await server.bob.request("DELETE", f"{FOLDER}s/", headers={"Depth": "infinity"})
    await put(server.alice, "s/b", "new")
    browser = await sign_in_by_token(server, server.alice)
    assert "could not be undone" in await undo(server, browser)
    assert (await server.alice.get(f"{FOLDER}s/a")).status == 404


async def test_what_was_there_before_is_no_conflict_with_what_is_there_now(
    server: Server, clock: FakeClock
) -> None:
    assert (await server.bob.delete(f"{FOLDER}a")).status in {200, 204, 205}
    clock.advance(5)
    await put(server.alice, "a", "new")
    clock.advance(5)
    await put(server.bob, "a", "bad")
    browser = await sign_in_by_token(server, server.alice)
    assert "could not be undone" in await undo(server, browser)
    assert (await contents(server))["a"] == "new"


async def test_changes_of_access_are_undone_by_whoever_has_control_now_and_had_it_then(
    server: Server, clock: FakeClock
) -> None:
    bob, public = f"acl:agent <{server.bob_web_id}>", "acl:agentClass foaf:Agent"
    for name in ("a", "b"):
        assert (await server.put_acl(FOLDER + name, (bob, "Read Write Control"))).status == 201
    rules = (await server.alice.get(f"{FOLDER}a.acl")).text
    clock.advance(5)
    opened = rules.replace(f"acl:agent <{server.bob_web_id}>", public)
    assert opened != rules, rules
    answer = await server.bob.put(f"{FOLDER}a.acl", opened, "text/turtle")
    assert answer.status in {200, 204, 205}, answer.text
    assert (await server.bob.delete(f"{FOLDER}b.acl")).status in {200, 204, 205}
    assert (await server.public.get(f"{FOLDER}a")).status == 200
    browser = await sign_in_by_token(server, server.alice)
    assert "The changes have been undone" in await undo(server, browser)
    assert (await server.public.get(f"{FOLDER}a")).status == 401
    assert (await server.alice.get(f"{FOLDER}a.acl")).text == rules
    assert (await server.alice.get(f"{FOLDER}b.acl")).status == 200


async def test_one_list_has_so_many_changes(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_module, "MAX_CHANGES", 2)
    monkeypatch.setattr(past, "PAGE", 2)
    for name in ("a", "b", "c", "d", "e"):
        await put(server.bob, name, "bad")
    browser = await sign_in_by_token(server, server.alice)
    who = f"{server.bob_web_id} ".replace("#", "%23")
    page = await browser.get(f"/.pages/undo?pod=alice&who={who}&since={SINCE}")
    assert page.text.count("The version before is restored") == 2
    assert "There are more changes" in page.text
    for _ in range(3):
        await undo(server, browser)
    assert set((await contents(server)).values()) == {"good", ""}


def _ended_by(agent: str, client: str | None) -> FormerState:
    return replace(state("/alice/a", 5), agent=agent, client=client)


async def show(server: Server, browser: Browser) -> str:
    who = f"{server.bob_web_id} ".replace("#", "%23")
    return (await browser.get(f"/.pages/undo?pod=alice&who={who}&since={SINCE}")).text


async def deleted(server: Server) -> set[str]:
    items = (await server.alice.get("/.history/trash/alice/")).json()["items"]
    return {each["resource"].partition(FOLDER)[2] for each in items}


async def test_what_was_created_goes_to_the_trash_unless_somebody_has_changed_it(
    server: Server, clock: FakeClock
) -> None:
    for name in ("x/y/1", "x/y/2", "new", "changed", "again", "gone", "z/1"):
        await put(server.bob, name, "by Bob")
    clock.advance(5)
    await put(server.bob, "again", "by Bob, once more")
    await put(server.alice, "changed", "by Alice")
    await put(server.alice, "z/2", "by Alice")
    assert (await server.bob.delete(f"{FOLDER}gone")).status in {200, 204, 205}
    browser = await sign_in_by_token(server, server.alice)
    shown = await show(server, browser)
    assert shown.count("Moved to the trash") == 7  # x/, x/y/, both in it, new, again, z/1
    assert shown.count("Left: somebody has changed it since") == 2  # changed, z/
    assert "The version before is restored" not in shown
    assert "could not be undone" in await undo(server, browser)
    assert await deleted(server) == {"x/", "x/y/", "x/y/1", "x/y/2", "new", "again", "gone", "z/1"}
    assert (await server.alice.get(f"{FOLDER}changed")).text == "by Alice"
    assert (await server.alice.get(f"{FOLDER}z/2")).text == "by Alice"
    assert (await server.alice.get(f"{FOLDER}x/")).status == 404
    assert set((await contents(server)).values()) == {"good", ""}
    # What is restored was created by whoever has restored it.
    items = (await server.alice.get("/.history/trash/alice/")).json()["items"]
    [item] = [each["id"] for each in items if each["resource"].endswith("/new")]
    address = item.removeprefix("http://localhost:3000")
    assert (await server.alice.request("POST", address)).status == 201
    assert "Moved to the trash" not in await show(server, browser)


async def test_rules_that_were_created_are_deleted(server: Server, clock: FakeClock) -> None:
    bob, public = f"acl:agent <{server.bob_web_id}>", ("acl:agentClass foaf:Agent", "+Read")
    rules = await server.put_acl(FOLDER, (bob, "+Read +Write +Control"))
    assert rules.status in {200, 204, 205}
    acl = acl_turtle(f"{FOLDER}a", (bob, "Read Write Control"), public)
    for name in ("a", "new"):
        await put(server.bob, name, "good")
        answer = await server.bob.put(
            f"{FOLDER}{name}.acl", acl.replace("/a>", f"/{name}>"), TURTLE
        )
        assert answer.status == 201, answer.text
    # Rules that somebody else has made for what was created count as a change of it.
    await put(server.bob, "other", "by Bob")
    assert (await server.put_acl(f"{FOLDER}other", (bob, "Read"))).status == 201
    assert (await server.public.get(f"{FOLDER}a")).status == 200
    browser = await sign_in_by_token(server, server.alice)
    assert "could not be undone" in await undo(server, browser)
    assert (await server.public.get(f"{FOLDER}a")).status == 401
    assert (await server.alice.get(f"{FOLDER}a.acl")).status == 404
    assert await deleted(server) == {"new"}
    assert (await server.alice.get(f"{FOLDER}other")).status == 200


async def test_creations_are_stored_in_batches_and_what_is_moved_is_none(
    clock: FakeClock, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = Services(settings, clock)
    services.store = store
    retentions = Retentions(services.records, Retention(DAY_MS, DAY_MS))
    log = CreationLog(services.records, retentions)
    root = ResourcePath("/alice/")

    def write(name: str, version: str, *deletes: str) -> Write:
        path = ResourcePath(f"/alice/{name}")
        put = Put(path, ResourceKind.DOCUMENT, "text/plain", InlineBody(b""), creates=True)
        gone = tuple(map(ResourcePath, deletes))
        return Write(Version(version), clock.now_ms(), puts=(put,), deletes=gone)

    monkeypatch.setattr(retention, "CREATIONS_OF_BATCH", 2)
    for number in range(5):
        log.committed(None, write(str(number), f"v{number}"))
    log.committed(None, write("moved", "v", "/alice/source"))
    commit = RecordStore.commit
    with pytest.MonkeyPatch.context() as patch:

        async def fail(*given: object, **more: object) -> None:
            raise StorageError("killed")

        patch.setattr(RecordStore, "commit", fail)
        with pytest.raises(StorageError):
            await log.store()
    assert RecordStore.commit is commit
    assert set(await log.of(root)) == {f"/alice/{number}" for number in range(5)}
    assert len(await CREATIONS.page(store, now_ms=clock.now_ms())) == 3
    log.committed(None, write("0", "w"))
    clock.advance(1)
    assert (await log.of(root))[ResourcePath("/alice/0")].version == "w"
    assert await log.of(ResourcePath("/bob/")) == {}
    clock.advance(24 * 3600)
    assert await log.of(root) == {}
    # Where nothing stays in the trash, nothing is recorded.
    await retentions.choose(root, Choice(0, 1))
    log.committed(None, write("0", "w"))
    assert await log.of(root) == {}
