"""COPY and MOVE: whole trees in one step, with their rules and descriptions."""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Change, ChangeType
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.rdf import N_TRIPLES, TURTLE
from tests.support.transfers import TEXT, copy, move, put, transfer, tree_at

ROOT = "/alice/private/"
PUBLIC = "acl:agentClass foaf:Agent"


async def plant_tree(server: Server, root: str = f"{ROOT}tree/") -> None:
    """A tree with documents, a large one, containers, descriptions and rules."""
    await put(server.alice, f"{root}a.txt", "a")
    await put(server.alice, f"{root}large.bin", "x" * 300_000, "application/octet-stream")
    await put(server.alice, f"{root}sub/deep/b.ttl", "<#b> <#p> <../a.txt>.", TURTLE)
    await put(server.alice, f"{root}a.txt.meta", "<a.txt> <#title> 'A'.", TURTLE)
    await put(server.alice, f"{root}sub/.meta", "<> <#title> 'Sub'.", TURTLE)
    await put(server.alice, f"{root}empty/", "", TURTLE)
    answer = await server.put_acl(f"{root}sub/", (PUBLIC, "+Read"))
    assert answer.status in (201, 204), answer.text


# --- what is copied and moved ------------------------------------------------------------------


@pytest.mark.parametrize("absolute", [True, False])
async def test_a_document_is_copied(server: Server, absolute: bool) -> None:
    await put(server.alice, f"{ROOT}a.txt", "hello")
    destination = f"{ROOT}b%20c.txt"
    answer = await copy(server.alice, f"{ROOT}a.txt", (BASE if absolute else "") + destination)
    assert answer.status == 201
    assert answer.header("location") == BASE + destination
    for path in (f"{ROOT}a.txt", destination):
        read = await server.alice.get(path)
        assert (read.status, read.text, read.header("content-type")) == (200, "hello", TEXT)


async def test_a_document_is_moved(server: Server) -> None:
    await put(server.alice, f"{ROOT}a.txt", "hello")
    assert (await move(server.alice, f"{ROOT}a.txt", f"{ROOT}b.txt")).status == 201
    assert (await server.alice.get(f"{ROOT}a.txt")).status == 404
    assert (await server.alice.get(f"{ROOT}b.txt")).text == "hello"


async def test_a_tree_is_copied_with_everything_in_it(server: Server, store: SqliteStore) -> None:
    await plant_tree(server)
    before = await tree_at(store, f"{ROOT}tree/")
    assert (await copy(server.alice, f"{ROOT}tree/", f"{ROOT}other/")).status == 201
    assert await tree_at(store, f"{ROOT}tree/") == before
    after = await tree_at(store, f"{ROOT}other/")
    assert after.keys() == before.keys()
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {"sub/.acl"}  # its rules name their subject by an absolute URL


async def test_a_tree_is_moved_with_everything_in_it(server: Server, store: SqliteStore) -> None:
    await plant_tree(server)
    before = await tree_at(store, f"{ROOT}tree/")
    assert (await move(server.alice, f"{ROOT}tree/", f"{ROOT}other/")).status == 201
    assert await tree_at(store, f"{ROOT}tree/") == {}
    after = await tree_at(store, f"{ROOT}other/")
    del before["sub/.acl"], after["sub/.acl"]
    assert after == before
    listing = (await server.alice.get(ROOT)).text
    assert "other/" in listing
    assert "tree/" not in listing
    # The rules went along.
    assert (await server.public.get(f"{ROOT}other/sub/deep/b.ttl")).status == 200
    assert (await server.public.get(f"{ROOT}other/a.txt")).status == 401


@pytest.mark.parametrize(("source", "destination"), [("a/", "b"), ("a", "b/"), ("a", "b")])
async def test_the_slash_of_a_container_may_be_left_out(
    server: Server, source: str, destination: str
) -> None:
    """RFC 4918 section 5.2."""
    await put(server.alice, f"{ROOT}a/x")
    answer = await move(server.alice, ROOT + source, ROOT + destination)
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}{ROOT}b/"
    assert (await server.alice.get(f"{ROOT}b/x")).status == 200
    assert (await server.alice.get(f"{ROOT}a/")).status == 404


async def test_a_container_alone_is_copied_with_depth_0(server: Server, store: SqliteStore) -> None:
    await plant_tree(server)
    answer = await copy(server.alice, f"{ROOT}tree/sub/", f"{ROOT}sub/", Depth="0")
    assert answer.status == 201
    assert (await tree_at(store, f"{ROOT}sub/")).keys() == {"", ".acl"}


async def test_a_moved_document_keeps_its_times(server: Server, store: SqliteStore) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    path = ResourcePath(f"{ROOT}a.txt")
    before = (await store.read_metadata([path]))[path]
    await asyncio.sleep(0)
    assert (await move(server.alice, path, f"{ROOT}b.txt")).status == 201
    moved = ResourcePath(f"{ROOT}b.txt")
    after = (await store.read_metadata([moved]))[moved]
    assert before is not None
    assert after is not None
    assert (after.created_ms, after.modified_ms) == (before.created_ms, before.modified_ms)
    assert after.version != before.version


async def test_a_description_is_about_the_new_url(server: Server) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    said = f"<a.txt> <urn:p> 1. <{BASE}{ROOT}a.txt> <urn:p> 2. <#it> <urn:p> <other>."
    await put(server.alice, f"{ROOT}a.txt.meta", said, TURTLE)
    await put(server.alice, f"{ROOT}c/", "", TURTLE)
    await put(
        server.alice, f"{ROOT}c/.meta", f"<./> <urn:p> 1. <{BASE}{ROOT}c/> <urn:p> 2.", TURTLE
    )
    assert (await move(server.alice, f"{ROOT}a.txt", "/alice/public/b.txt")).status == 201
    assert (await copy(server.alice, f"{ROOT}c/", "/alice/public/d/")).status == 201
    described = await server.alice.get("/alice/public/b.txt.meta", accept=N_TRIPLES)
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert f"<{BASE}/alice/public/b.txt> <urn:p> {one}" in described.text
    assert f"<{BASE}/alice/public/b.txt> <urn:p> {one.replace('1', '2', 1)}" in described.text
    assert f"<{BASE}/alice/public/b.txt.meta#it> <urn:p> <{BASE}/alice/public/other>" in (
        described.text
    )
    container = await server.alice.get("/alice/public/d/.meta", accept=N_TRIPLES)
    assert container.text.count(f"<{BASE}/alice/public/d/> <urn:p>") == 2
    assert ROOT not in container.text


async def test_each_change_is_in_the_change_log(server: Server, store: SqliteStore) -> None:
    """So that subscribers are told of every resource that went and came."""
    await plant_tree(server)
    start = await store.newest_sequence()
    paths = sorted(await store.read_tree(ResourcePath(f"{ROOT}tree/"), limit=100))
    assert (await move(server.alice, f"{ROOT}tree/", f"{ROOT}new/")).status == 201
    logged = [row.change for row in await store.changes_after(start, limit=100)]
    agent = server.alice_web_id
    came = [ResourcePath(path.replace("/tree/", "/new/")) for path in paths]
    assert logged == [
        *(Change(path, ChangeType.CREATE, agent) for path in came),
        *(Change(path, ChangeType.DELETE, agent) for path in reversed(paths)),
    ]


async def test_a_tree_moves_to_another_pod_with_its_charge(
    server: Server, store: SqliteStore
) -> None:
    rules = acl_turtle("/bob/inbox/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write +Control"))
    await put(server.bob, "/bob/inbox/", "", TURTLE)
    await put(server.bob, "/bob/inbox/.acl", rules, TURTLE)
    await plant_tree(server)
    before = await tree_at(store, f"{ROOT}tree/")
    used = [await store.used_bytes(pod) for pod in ("alice", "bob")]
    assert (await move(server.alice, f"{ROOT}tree/", "/bob/inbox/tree/")).status == 201
    after = await tree_at(store, "/bob/inbox/tree/")
    assert after.keys() == before.keys()
    now = [await store.used_bytes(pod) for pod in ("alice", "bob")]
    assert used[0] - now[0] > 300_000
    assert now[1] - used[1] > 300_000


async def test_a_copy_counts_for_the_quota(start: Start) -> None:
    server = await start(quota_bytes=500_000)
    await put(server.alice, f"{ROOT}large", "x" * 300_000)
    answer = await copy(server.alice, f"{ROOT}large", f"{ROOT}copy")
    assert answer.status == 507
    assert answer.json()["usedBytes"] > 300_000
    assert (await server.alice.get(f"{ROOT}copy")).status == 404
    # A move needs room for nothing but the longer path.
    assert (await move(server.alice, f"{ROOT}large", f"{ROOT}a-longer-name")).status == 201


# --- deleting a tree ---------------------------------------------------------------------------


async def test_a_tree_is_deleted_if_that_is_asked_for(server: Server, store: SqliteStore) -> None:
    await plant_tree(server)
    before = await tree_at(store, f"{ROOT}tree/")
    for fields in ({}, {"Depth": "0"}, {"Depth": "1"}):
        answer = await server.alice.request("DELETE", f"{ROOT}tree/", headers=fields)
        assert answer.status == 409
    assert await tree_at(store, f"{ROOT}tree/") == before
    start = await store.newest_sequence()
    headers = {"Depth": "infinity"}
    answer = await server.alice.request("DELETE", f"{ROOT}tree/", headers=headers)
    assert answer.status == 204
    assert await tree_at(store, f"{ROOT}tree/") == {}
    logged = [row.change for row in await store.changes_after(start, limit=100)]
    assert logged == [
        Change(ResourcePath(f"{ROOT}tree/{name}"), ChangeType.DELETE, server.alice_web_id)
        for name in sorted(before, reverse=True)
    ]
    again = await server.alice.request("DELETE", f"{ROOT}tree/", headers=headers)
    assert again.status == 404


async def test_a_storage_is_not_deleted_with_everything_in_it(server: Server) -> None:
    await put(server.alice, f"{ROOT}a")
    answer = await server.alice.request("DELETE", "/alice/", headers={"Depth": "infinity"})
    assert answer.status == 405
    assert (await server.alice.get(f"{ROOT}a")).status == 200


# --- the destination ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_a_document_is_replaced_only_if_that_is_asked_for(
    server: Server, store: SqliteStore, method: str
) -> None:
    await put(server.alice, f"{ROOT}a", "new")
    await put(server.alice, f"{ROOT}b", "old")
    await put(server.alice, f"{ROOT}b.meta", "<b> <#p> 1.", TURTLE)
    assert (await server.put_acl(f"{ROOT}b", (PUBLIC, "Read"))).status == 201
    refused = await transfer(server.alice, method, f"{ROOT}a", f"{ROOT}b", Overwrite="F")
    assert refused.status == 412
    assert (await server.alice.get(f"{ROOT}b")).text == "old"
    answer = await transfer(server.alice, method, f"{ROOT}a", f"{ROOT}b", Overwrite="T")
    assert answer.status == 204
    assert (await tree_at(store, ROOT)).keys() >= {"b"}
    assert (await server.alice.get(f"{ROOT}b")).text == "new"
    # As if it had been deleted before: with its rules and its description.
    assert not {"b.acl", "b.meta"} & (await tree_at(store, ROOT)).keys()
    assert (await server.public.get(f"{ROOT}b")).status == 401


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
@pytest.mark.parametrize("overwrite", ["T", "F"])
async def test_a_container_is_never_replaced(server: Server, method: str, overwrite: str) -> None:
    await put(server.alice, f"{ROOT}a/x")
    await put(server.alice, f"{ROOT}b/y")
    answer = await transfer(server.alice, method, f"{ROOT}a/", f"{ROOT}b/", Overwrite=overwrite)
    assert answer.status == (409 if overwrite == "T" else 412)
    for path in ("a/x", "b/y"):
        assert (await server.alice.get(ROOT + path)).status == 200


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
@pytest.mark.parametrize(
    ("source", "destination", "status"),
    [
        ("a/x", "a/x", 403),
        ("a/", "a/", 403),
        ("a/", "a/b/", 403),
        ("a/b/", "a/", 409),
        ("a/x", "c/", 409),
        ("a/x", "none/x", 409),
        ("a/", "none/c/", 409),
        ("a/x", "a", 409),
        ("a/", "a/x/", 403),
        ("a/x", "z.acl", 403),
        ("a/x", "a/b/.meta", 403),
        ("a/x", "a/x/y", 409),
        ("a/b/", "z.acl/", 409),
        ("none", "c", 404),
        ("none/", "c/", 404),
        ("a/x.acl", "c", 405),
        ("a/x.meta", "c", 405),
        ("a/x", f"http://elsewhere.example{ROOT}c", 502),
        ("a/x", "https://localhost:3001/alice/c", 502),
        ("a/x", "//elsewhere.example/alice/c", 502),
        ("a/x", "/.pages/c", 403),
        ("a/x", "/.pods", 403),
        ("a/x", "/idp/x", 403),
        ("a/x", "/alice/.well-known/solid", 403),
        ("a/x", f"{ROOT}c?query", 400),
        ("a/x", f"{ROOT}c#fragment", 400),
        ("a/x", f"{ROOT}../c", 400),
        ("a/x", f"{ROOT}%zz", 400),
        ("a/x", "ftp://localhost:3000/alice/c", 400),
        ("a/x", "urn:x", 400),
        ("a/x", f"{ROOT}é", 400),
        ("a/x", f"{ROOT}{'c' * 8188}", 414),
    ],
)
async def test_what_cannot_be_done_is_refused_and_changes_nothing(
    server: Server, store: SqliteStore, method: str, source: str, destination: str, status: int
) -> None:
    await put(server.alice, f"{ROOT}a/x")
    await put(server.alice, f"{ROOT}a/b/y")
    before = await tree_at(store, "/alice/")
    if ":" not in destination and not destination.startswith("/"):
        destination = ROOT + destination
    answer = await transfer(server.alice, method, ROOT + source, destination)
    assert answer.status == status, answer.text
    assert answer.json()["message"]
    assert await tree_at(store, "/alice/") == before


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"Destination": f"{ROOT}b", "Overwrite": "yes"}, 400),
        ({"Destination": f"{ROOT}b", "Depth": "1"}, 400),
        ({"Destination": f"{ROOT}b", "Depth": "0"}, 400),
        ({"Destination": f"{ROOT}b", "If-Match": '"other"'}, 412),
        ({"Destination": f"{ROOT}b", "If-None-Match": "*"}, 412),
    ],
)
async def test_bad_parameters_are_refused(
    server: Server, fields: dict[str, str], status: int
) -> None:
    await put(server.alice, f"{ROOT}a")
    answer = await server.alice.request("MOVE", f"{ROOT}a", headers=fields)
    assert answer.status == status
    assert (await server.alice.get(f"{ROOT}a")).status == 200


async def test_a_request_with_content_is_refused(server: Server) -> None:
    await put(server.alice, f"{ROOT}a")
    headers = {"Destination": f"{ROOT}b", "Content-Type": "application/xml"}
    answer = await server.alice.request("COPY", f"{ROOT}a", headers=headers, body=b"<a/>")
    assert answer.status == 415


async def test_the_source_has_the_expected_version(server: Server) -> None:
    await put(server.alice, f"{ROOT}a")
    etag = (await server.alice.get(f"{ROOT}a")).header("etag") or ""
    assert (await move(server.alice, f"{ROOT}a", f"{ROOT}b", If_Match=etag)).status == 201


async def test_a_storage_is_copied_but_not_moved(server: Server, store: SqliteStore) -> None:
    await put(server.alice, f"{ROOT}a")
    answer = await move(server.alice, "/alice/", f"{BASE}/bob/alice/")
    assert answer.status in (403, 405)
    rules = acl_turtle("/bob/inbox/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write +Control"))
    await put(server.bob, "/bob/inbox/", "", TURTLE)
    await put(server.bob, "/bob/inbox/.acl", rules, TURTLE)
    assert (await copy(server.alice, "/alice/", "/bob/inbox/alice/")).status == 201
    before, after = await tree_at(store, "/alice/"), await tree_at(store, "/bob/inbox/alice/")
    assert after.keys() == before.keys()
    link = (await server.bob.get("/bob/inbox/alice/")).header("link") or ""
    assert "pim/space#Storage" not in link


async def test_too_many_resources_are_refused(
    server: Server, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podstead.resources.tree_operations.MAX_RESOURCES", 5)
    for number in range(4):
        await put(server.alice, f"{ROOT}a/{number}")
    assert (await copy(server.alice, f"{ROOT}a/", f"{ROOT}b/")).status == 201
    await put(server.alice, f"{ROOT}a/one-more")
    answer = await copy(server.alice, f"{ROOT}a/", f"{ROOT}c/")
    assert answer.status == 409
    assert "5" in answer.json()["message"]


# --- how it is offered -------------------------------------------------------------------------


async def test_the_methods_are_offered(server: Server) -> None:
    await put(server.alice, f"{ROOT}a")
    for path, methods in {
        f"{ROOT}a": {"COPY", "MOVE"},
        ROOT: {"COPY", "MOVE"},
        "/alice/": {"COPY"},
        f"{ROOT}a.acl": set(),
        f"{ROOT}a.meta": set(),
    }.items():
        for answer in (await server.alice.get(path), await server.public.request("OPTIONS", path)):
            allowed = set((answer.header("allow") or "").split(", "))
            if allowed != {""}:
                assert allowed & {"COPY", "MOVE"} == methods, path


async def test_pages_of_other_origins_may_copy_and_move(server: Server) -> None:
    headers = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "MOVE",
        "Access-Control-Request-Headers": "authorization, destination, overwrite",
    }
    answer = await server.public.request("OPTIONS", f"{ROOT}a", headers=headers)
    assert answer.status == 204
    assert {"COPY", "MOVE"} <= set(
        (answer.header("access-control-allow-methods") or "").split(", ")
    )
    assert "destination" in (answer.header("access-control-allow-headers") or "")


# --- races -------------------------------------------------------------------------------------


async def test_a_tree_that_is_written_to_is_never_torn(server: Server, store: SqliteStore) -> None:
    """Whatever is acknowledged is at one of the two places, whole."""
    root = f"{ROOT}tree/"
    await plant_tree(server)
    acknowledged: list[str] = []

    async def write(number: int) -> None:
        for step in range(15):
            name = f"sub/{number}-{step}"
            answer = await server.alice.put(f"{root}{name}", name, TEXT)
            if answer.status == 201:
                acknowledged.append(name)

    async def carry() -> list[int]:
        answers = []
        for step in range(4):
            ends = (root, f"{ROOT}other/") if step % 2 == 0 else (f"{ROOT}other/", root)
            answers.append((await move(server.alice, *ends)).status)
        return answers

    carried = asyncio.create_task(carry())
    await asyncio.gather(*(write(number) for number in range(4)))
    assert set(await carried) <= {201, 409, 404}
    here, there = await tree_at(store, root), await tree_at(store, f"{ROOT}other/")
    for name in acknowledged:
        assert (name in here) or (name in there), name
    for tree in (here, there):  # a tree that writers began anew has only what they wrote
        assert tree == {} or "sub/" in tree
        assert "a.txt" not in tree or {"a.txt.meta", "large.bin", "empty/", "sub/.acl"} <= set(tree)
    assert ("a.txt" in here) is not ("a.txt" in there)
