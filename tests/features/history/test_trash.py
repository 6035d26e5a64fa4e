"""What was deleted can be found in the trash by those who could read it, and comes back whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from podstead.features.history import trash as trash_module
from podstead.features.history.past import FormerStateService
from podstead.features.history.trash import Trash
from podstead.storage.former_states import FormerState
from podstead.storage.records import Body
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.rdf import TURTLE

FOLDER = "/alice/private/f/"
DOCUMENT = f"{FOLDER}a.txt"
LARGE = "y" * 200_000
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock)


async def put(client: Client, path: str, content: str, content_type: str = "text/plain") -> None:
    answer = await client.put(path, content, content_type)
    assert answer.status in {200, 201, 204, 205}, answer.text


async def delete(client: Client, path: str, **headers: str) -> None:
    answer = await client.request("DELETE", path, headers=headers)
    assert answer.status in {200, 204, 205}, answer.text


async def items(client: Client, place: str = "/alice/") -> list[dict[str, Any]]:
    answer = await client.get(f"/.history/trash{place}")
    assert answer.status == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def restore(client: Client, item: dict[str, Any], to: str | None = None) -> Answer:
    body = b"" if to is None else json.dumps({"to": BASE + to}).encode()
    target = item["id"].removeprefix(BASE)
    return await client.request(
        "POST", target, headers={"Content-Type": "application/json"}, body=body
    )


async def remove(client: Client, item: dict[str, Any]) -> Answer:
    return await client.request("DELETE", item["id"].removeprefix(BASE))


async def test_a_document_comes_back_with_its_rules_and_its_description(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    await put(server.alice, f"{DOCUMENT}.meta", f"<{BASE}{DOCUMENT}> <#p> 1 .", TURTLE)
    assert (
        await server.put_acl(DOCUMENT, (f"acl:agent <{server.bob_web_id}>", "Read"))
    ).status == 201
    await delete(server.alice, DOCUMENT)
    assert (await server.alice.get(DOCUMENT)).status == 404
    assert DOCUMENT not in (await server.alice.get(FOLDER)).text
    [item] = await items(server.alice)
    assert item["resource"] == BASE + DOCUMENT
    assert item["agent"] == server.alice_web_id
    assert item["size"] == 3
    answer = await restore(server.alice, item)
    assert (answer.status, answer.header("location")) == (201, BASE + DOCUMENT)
    assert (await server.bob.get(DOCUMENT)).text == "one"
    assert "<#p>" in (await server.alice.get(f"{DOCUMENT}.meta")).text.replace(
        f"{BASE}{DOCUMENT}.meta", ""
    )
    assert await items(server.alice) == []
    assert (await restore(server.alice, item)).status == 404


async def test_a_tree_comes_back_in_one_write_with_its_containers(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    await put(server.alice, f"{FOLDER}sub/b.txt", LARGE)
    await put(server.alice, FOLDER, f"<{BASE}{FOLDER}> <#title> 'F' .", TURTLE)
    await delete(server.alice, "/alice/private/", Depth="infinity")
    [item] = await items(server.alice)
    assert item["resource"] == f"{BASE}/alice/private/"
    assert (await restore(server.alice, item)).status == 201
    assert (await server.alice.get(DOCUMENT)).text == "one"
    assert (await server.alice.get(f"{FOLDER}sub/b.txt")).text == LARGE
    assert "title" in (await server.alice.get(FOLDER)).text


async def test_what_is_taken_gets_another_name(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    assert (await server.put_acl(DOCUMENT, ("acl:agentClass foaf:Agent", "Read"))).status == 201
    await delete(server.alice, DOCUMENT)
    await put(server.alice, DOCUMENT, "two")
    [item] = await items(server.alice)
    assert (await restore(server.alice, item, DOCUMENT)).status == 409
    answer = await restore(server.alice, item)
    assert answer.header("location") == f"{BASE}{FOLDER}a-2.txt"
    assert (await server.public.get(f"{FOLDER}a-2.txt")).text == "one"
    assert (await server.public.get(DOCUMENT)).status == 401


async def test_a_chosen_destination(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    await delete(server.alice, FOLDER, Depth="infinity")
    [item] = await items(server.alice)
    for wrong in ("/alice/new", "/bob/new/", "/.pages/new/"):
        assert (await restore(server.alice, item, wrong)).status in {400, 403}
    assert (await restore(server.alice, item, "/alice/new/place/")).status == 201
    assert (await server.alice.get("/alice/new/place/a.txt")).text == "one"


async def test_deleting_for_good_and_emptying(server: Server, clock: FakeClock) -> None:
    for name in ("a", "b", "c"):
        await put(server.alice, FOLDER + name, name)
        await put(server.alice, FOLDER + name, f"{name}{name}")
        await delete(server.alice, FOLDER + name)
        clock.advance(1)
    found = await items(server.alice)
    assert [each["resource"] for each in found] == [f"{BASE}{FOLDER}{name}" for name in "cba"]
    assert (await remove(server.alice, found[0])).status == 204
    assert len(await items(server.alice)) == 2
    assert (await remove(server.alice, found[0])).status == 404
    assert len(await items(server.alice, FOLDER)) == 2
    assert await items(server.alice, "/alice/other/") == []
    assert (await server.alice.request("DELETE", f"/.history/trash{FOLDER}")).status == 204
    assert await items(server.alice) == []


async def test_others_see_what_they_may_read_now_and_could_read_then(server: Server) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, DOCUMENT, "secret")
    await put(server.alice, f"{FOLDER}b.txt", "shared")
    assert (await server.put_acl(f"{FOLDER}b.txt", (bob, "Read"))).status == 201
    for name in ("a.txt", "b.txt"):
        await delete(server.alice, FOLDER + name)
    assert await items(server.bob) == [] == await items(server.public)
    # Bob may read the folder from now on, but could not read a.txt then.
    assert (await server.put_acl(FOLDER, (bob, "+Read"))).status == 201
    [item] = await items(server.bob)
    assert item["resource"] == f"{BASE}{FOLDER}b.txt"
    assert (item["agent"], item["client"]) == (None, None)
    hidden = next(
        each for each in await items(server.alice) if each["size"] == 6 and "a.txt" in each["id"]
    )
    assert (await restore(server.bob, hidden)).status == 404
    assert (await remove(server.bob, hidden)).status == 404
    assert (await restore(server.bob, item)).status == 403
    assert (await remove(server.bob, item)).status == 403
    assert (await remove(server.public, item)).status == 404
    # What was taken away from Bob is not to be had from the trash.
    assert (await server.put_acl(FOLDER)).status in {200, 204, 205}
    assert await items(server.bob) == []


async def test_rules_return_only_by_somebody_with_control(server: Server) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, DOCUMENT, "one")
    await put(server.alice, f"{FOLDER}b.txt", "two")
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status == 201
    assert (await server.put_acl(DOCUMENT, (bob, "Read Write Control"))).status == 201
    for name in ("a.txt", "b.txt"):
        await delete(server.alice, FOLDER + name)
    found = {each["resource"].removeprefix(BASE): each for each in await items(server.bob)}
    assert (await restore(server.bob, found[DOCUMENT])).status == 403
    assert (await restore(server.bob, found[f"{FOLDER}b.txt"])).status == 201
    assert (await restore(server.alice, found[DOCUMENT])).status == 201


async def test_the_trash_ends_after_its_days(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, keep_deleted=3)
    await put(server.alice, DOCUMENT, "one")
    await delete(server.alice, DOCUMENT)
    clock.advance(2 * DAY_MS / 1000)
    assert len(await items(server.alice)) == 1
    clock.advance(2 * DAY_MS / 1000)
    assert await items(server.alice) == []


async def test_a_server_may_keep_nothing(start: Start) -> None:
    server = await start(keep_deleted=0, keep_versions=0)
    await put(server.alice, DOCUMENT, "one")
    await delete(server.alice, DOCUMENT)
    assert (await server.alice.get("/.history/trash/alice/")).status == 404


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (7, "It can be restored from the trash for 7 days"),
        (1, "It can be restored from the trash for one day"),
        (0, "It cannot be undone."),
    ],
)
async def test_the_question_before_deleting_says_what_is_kept(
    start: Start, days: int, said: str
) -> None:
    server = await start(keep_deleted=days)
    await put(server.alice, DOCUMENT, "one")
    browser = await sign_in_by_token(server, server.alice)
    assert said in (await browser.get(f"/.pages/delete{DOCUMENT}")).text


async def test_deleting_succeeds_on_a_full_pod(start: Start) -> None:
    server = await start(quota_bytes=300_000)
    await put(server.alice, DOCUMENT, LARGE)
    assert (await server.alice.put(f"{FOLDER}b", LARGE, "text/plain")).status == 507
    await delete(server.alice, DOCUMENT)
    [item] = await items(server.alice)
    await put(server.alice, f"{FOLDER}b", LARGE)
    assert (await restore(server.alice, item)).status == 507
    await delete(server.alice, f"{FOLDER}b")
    assert (await restore(server.alice, item)).status == 201


async def test_a_move_leaves_nothing_in_the_trash(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    await put(server.alice, f"{FOLDER}b", LARGE)
    answer = await server.alice.request(
        "MOVE", FOLDER, headers={"Destination": f"{BASE}/alice/private/g/"}
    )
    assert answer.status == 201
    assert await items(server.alice) == []
    assert (await server.alice.get("/alice/private/g/b")).text == LARGE


async def test_a_move_takes_nothing_along_that_was_deleted_before(
    server: Server, clock: FakeClock
) -> None:
    await put(server.alice, f"{FOLDER}c/old.txt", "old")
    await delete(server.alice, f"{FOLDER}c/", Depth="infinity")
    clock.advance(5)
    await put(server.alice, f"{FOLDER}c/new.txt", "new")
    headers = {"Destination": f"{BASE}{FOLDER}d/"}
    answer = await server.alice.request("MOVE", f"{FOLDER}c/", headers=headers)
    assert answer.status == 201
    [item] = await items(server.alice)
    assert item["resource"] == f"{BASE}{FOLDER}c/"
    assert (await restore(server.alice, item)).status == 201
    assert (await server.alice.get(f"{FOLDER}c/old.txt")).text == "old"
    assert (await server.alice.get(f"{FOLDER}d/new.txt")).text == "new"


@pytest.mark.parametrize("content", ["small", LARGE])
async def test_what_is_moved_to_another_pod_stays_in_the_trash_with_its_versions(
    server: Server, clock: FakeClock, content: str
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{FOLDER}own.txt", "mine")
    assert (await server.put_acl(f"{FOLDER}own.txt")).status == 201
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status == 201
    await put(server.alice, DOCUMENT, "version")
    clock.advance(5)
    await put(server.alice, DOCUMENT, content)
    await delete(server.alice, f"{FOLDER}own.txt")
    clock.advance(5)
    await put(server.bob, f"{FOLDER}own.txt", "of Bob")
    for name in ("own.txt", "a.txt"):
        headers = {"Destination": f"{BASE}/bob/{name}"}
        answer = await server.bob.request("MOVE", FOLDER + name, headers=headers)
        assert answer.status == 201, answer.text
        assert (await server.bob.get(f"/bob/{name}")).status == 200
        await delete(server.bob, f"/bob/{name}")
    found = {each["resource"]: each for each in await items(server.alice)}
    assert set(found) == {f"{BASE}{FOLDER}own.txt", BASE + DOCUMENT}
    assert len(await items(server.alice)) == 3
    assert len(await items(server.bob, "/bob/")) == 2
    assert (await restore(server.alice, found[BASE + DOCUMENT])).status == 201
    assert (await server.alice.get(DOCUMENT)).text == content
    versions = (await server.alice.get(f"/.history/timemap{DOCUMENT}")).text
    assert versions.count('memento"; datetime') == 2


async def test_the_page_lists_restores_and_removes(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    for name in ("b.txt", "c.txt"):
        await put(server.alice, FOLDER + name, "two")
    for name in ("a.txt", "b.txt", "c.txt"):
        await delete(server.alice, FOLDER + name)
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get("/.pages/trash")
    assert page.status == 200
    assert "a.txt" in page.text
    assert "b.txt" in page.text
    page = await browser.get("/.pages/trash?name=A.T&order=size")
    assert "a.txt" in page.text
    assert "b.txt" not in page.text
    found = {each["resource"].removeprefix(BASE): each for each in await items(server.alice)}
    version = {path: each["id"].partition("=")[2] for path, each in found.items()}
    page = await browser.send(
        page,
        "/.pages/trash/change",
        pod="/alice/",
        path=DOCUMENT,
        version=version[DOCUMENT],
        do="restore",
    )
    assert page.path == f"/.pages/files{DOCUMENT}"
    assert (await server.alice.get(DOCUMENT)).text == "one"
    gone = {"pod": "/alice/", "path": f"{FOLDER}c.txt", "version": version[f"{FOLDER}c.txt"]}
    for do, status, left in (("something else", 400, 2), ("remove", 200, 1)):
        page = await browser.get("/.pages/trash")
        page = await browser.send(page, "/.pages/trash/change", do=do, **gone)
        assert (page.status, len(await items(server.alice))) == (status, left)
    page = await browser.send(page, "/.pages/trash/change", pod="/alice/", do="empty")
    assert page.status == 200
    assert await items(server.alice) == []


async def versions(client: Client, path: str) -> int:
    """How many versions are open, the present one included."""
    answer = await client.get(f"/.history/timemap{path}", accept="application/ld+json")
    assert answer.status == 200, answer.text
    return len(answer.json()["memento"])


async def test_versions_stay_readable_by_the_rules_of_then_after_a_restoration(
    server: Server, clock: FakeClock
) -> None:
    await put(server.alice, DOCUMENT, "good")
    assert (await server.put_acl(DOCUMENT)).status == 201
    clock.advance(5)
    await put(server.alice, DOCUMENT, "bad")
    await delete(server.alice, DOCUMENT)
    [item] = await items(server.alice)
    assert (await restore(server.alice, item)).status == 201
    assert await versions(server.alice, DOCUMENT) == 2


async def test_what_was_deleted_before_stays_in_the_trash_when_its_folder_leaves_it(
    server: Server, clock: FakeClock
) -> None:
    for number, leave in enumerate((restore, remove)):
        folder = f"{FOLDER}{number}/"
        for name in ("one", "two"):
            await put(server.alice, folder + name, name)
        assert (await server.put_acl(folder)).status == 201
        await delete(server.alice, f"{folder}one")
        clock.advance(5)
        await delete(server.alice, folder, Depth="infinity")
        [item] = [
            each for each in await items(server.alice) if each["resource"] == f"{BASE}{folder}"
        ]
        assert (await leave(server.alice, item)).status in {201, 204}
        assert [each["resource"] for each in await items(server.alice, folder)] == [
            f"{BASE}{folder}one"
        ]


async def shared(server: Server, path: str = DOCUMENT) -> dict[str, Any]:
    """An item that Bob could read and write, by rules of its own that he did not see."""
    bob = f"acl:agent <{server.bob_web_id}>"
    carol = "acl:agent <https://carol.example/#me>"
    await put(server.alice, path, "shared")
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status in {201, 204, 205}
    assert (await server.put_acl(path, (bob, "Read Write"), (carol, "Read"))).status == 201
    await delete(server.bob, path)
    [item] = await items(server.bob)
    return item


async def test_rules_are_not_disclosed_by_restoring_elsewhere(server: Server) -> None:
    item = await shared(server)
    assert (await restore(server.bob, item)).status == 403
    assert (await restore(server.bob, item, "/bob/got.txt")).status == 201
    assert (await server.bob.get("/bob/got.txt")).text == "shared"
    assert (await server.bob.get("/bob/got.txt.acl")).status == 404
    # It is a copy: only those with Control take it out of the trash.
    [item] = await items(server.alice)
    assert (await restore(server.alice, item, "/alice/new.txt")).status == 201
    assert "carol" in (await server.alice.get("/alice/new.txt.acl")).text
    assert await items(server.alice) == []


async def test_removing_for_good_needs_control(server: Server) -> None:
    item = await shared(server)
    assert (await remove(server.bob, item)).status == 403
    assert (await server.bob.request("DELETE", f"/.history/trash{FOLDER}")).status == 204
    public = "acl:agentClass foaf:Agent"
    assert (await server.put_acl(FOLDER, (public, "+Read +Write"))).status in {200, 204, 205}
    await put(server.public, f"{FOLDER}p.txt", "public")
    await delete(server.public, f"{FOLDER}p.txt")
    [public_item] = await items(server.public)
    assert (await remove(server.public, public_item)).status == 401
    assert (await server.public.request("DELETE", f"/.history/trash{FOLDER}")).status == 204
    assert len(await items(server.alice)) == 2
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get("/.pages/trash")
    page = await browser.send(page, "/.pages/trash/change", pod="/alice/", do="empty")
    assert "The trash has been emptied" in page.text
    assert await items(server.alice) == []


async def test_versions_of_others_stay_when_a_folder_is_removed(
    server: Server, clock: FakeClock
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    other = f"{FOLDER}other.txt"
    await put(server.alice, other, "one")
    await put(server.alice, other, "two")
    await delete(server.alice, other)
    clock.advance(5)
    await put(server.alice, DOCUMENT, "a")
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write +Control"))).status == 201
    assert (await server.put_acl("/alice/private/", (bob, "+Read +Write +Control"))).status == 204
    await delete(server.bob, FOLDER, Depth="infinity")
    [item] = await items(server.bob)
    assert (await remove(server.bob, item)).status == 204
    assert await items(server.bob) == []
    [item] = await items(server.alice)
    assert (await restore(server.alice, item)).status == 201
    assert await versions(server.alice, other) == 2


async def test_versions_of_what_was_there_before_stay_when_something_is_removed(
    server: Server, clock: FakeClock
) -> None:
    for content in ("first", "second"):
        for number in range(2):
            await put(server.alice, DOCUMENT, f"{content} {number}")
        await delete(server.alice, DOCUMENT)
        clock.advance(5)
    newer, older = await items(server.alice)
    assert (await remove(server.alice, newer)).status == 204
    assert (await restore(server.alice, older)).status == 201
    assert (await server.alice.get(DOCUMENT)).text == "first 1"
    assert await versions(server.alice, DOCUMENT) == 2


async def test_restoring_elsewhere_needs_what_the_rules_of_now_say_about_each_resource(
    server: Server, clock: FakeClock
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{FOLDER}sub/s.txt", "then")
    assert (await server.put_acl("/alice/private/", (bob, "+Read +Write"))).status == 204
    clock.advance(5)
    await delete(server.alice, FOLDER, Depth="infinity")
    await put(server.alice, f"{FOLDER}sub/other.txt", "now")
    assert (await server.put_acl(f"{FOLDER}sub/")).status == 201
    [item] = await items(server.bob)
    assert (await restore(server.bob, item, "/bob/x/")).status == 403
    assert (await server.bob.get("/bob/x/sub/s.txt")).status == 404


async def test_one_restoration_of_an_agent_runs_at_a_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(server.alice, DOCUMENT, "one")
    await delete(server.alice, DOCUMENT)
    [item] = await items(server.alice)
    running, most = 0, 0
    bodies = Trash._bodies

    async def counted(
        trash: Trash, states: Sequence[FormerState]
    ) -> Sequence[tuple[FormerState, Body]]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        found = await bodies(trash, states)
        running -= 1
        return found

    monkeypatch.setattr(Trash, "_bodies", counted)
    answers = await asyncio.gather(
        *(restore(server.alice, item, f"/alice/{number}.txt") for number in range(4))
    )
    assert [each.status for each in answers].count(201) >= 1
    assert most == 1


async def test_items_that_others_may_not_see_do_not_hide_those_that_they_may(
    server: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trash_module, "MAX_LISTED", 2)
    monkeypatch.setattr(trash_module, "LOOKED_AT", 2)
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{FOLDER}seen.txt", "seen")
    assert (await server.put_acl("/alice/private/", (bob, "+Read"))).status == 204
    await delete(server.alice, f"{FOLDER}seen.txt")
    for number in range(5):
        path = f"{FOLDER}{number}.txt"
        await put(server.alice, path, "hidden")
        assert (await server.put_acl(path)).status == 201
        await delete(server.alice, path)
        clock.advance(number % 2)
    assert [each["resource"] for each in await items(server.bob)] == [f"{BASE}{FOLDER}seen.txt"]
    assert len(await items(server.alice)) == 2
    assert (await server.alice.request("DELETE", "/.history/trash/alice/")).status == 204
    assert await items(server.alice) == []


async def test_control_of_the_pod_removes_what_nobody_may_read(server: Server) -> None:
    await put(server.alice, DOCUMENT, "one")
    await delete(server.alice, DOCUMENT)
    [item] = await items(server.alice)

    async def could(past: FormerStateService, *arguments: object) -> bool:
        del past, arguments
        return False

    # As after the pod has been renamed.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FormerStateService, "could", could)
        assert await items(server.alice) == []
        assert (await restore(server.alice, item)).status == 404
        browser = await sign_in_by_token(server, server.alice)
        page = await browser.get("/.pages/trash")
        page = await browser.send(page, "/.pages/trash/change", pod="/alice/", do="empty")
        assert "The trash has been emptied" in page.text
    assert await items(server.alice) == []
