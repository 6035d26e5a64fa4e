"""What was deleted can be found in the trash by those who could read it, and comes back whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    await put(server.alice, f"{FOLDER}b.txt", "two")
    for name in ("a.txt", "b.txt"):
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
    page = await browser.get("/.pages/trash")
    page = await browser.send(page, "/.pages/trash/change", pod="/alice/", do="empty")
    assert page.status == 200
    assert await items(server.alice) == []
