"""What is found, and who finds it."""

from __future__ import annotations

from tests.features.search.conftest import Searched
from tests.support.application import BASE

BOB_READS = f"acl:agent <{BASE}/bob/#me>"
EVERYONE = "acl:agentClass foaf:Agent"


async def put(searched: Searched, path: str, text: str, type_: str = "text/plain") -> None:
    answer = await searched.server.alice.put(path, text, type_)
    assert answer.status in (201, 204, 205), answer.text


async def test_names_and_texts_are_found_and_follow_changes(searched: Searched) -> None:
    alice = searched.server.alice
    await put(searched, "/alice/notes/apples.txt", "pears and plums")
    await put(searched, "/alice/notes/b.txt", "apples, pears")
    await searched.catch_up()
    assert await searched.paths(alice, "apples") == [
        "/alice/notes/apples.txt",
        "/alice/notes/b.txt",
    ]
    assert await searched.paths(alice, "pears plums") == ["/alice/notes/apples.txt"]
    assert await searched.paths(alice, "notes") == ["/alice/notes/"]
    assert await searched.paths(alice, "apples -plums") == ["/alice/notes/b.txt"]
    await put(searched, "/alice/notes/b.txt", "cherries")
    # Until it is indexed again, it is not found by what it was.
    assert await searched.paths(alice, "pears") == ["/alice/notes/apples.txt"]
    await searched.catch_up()
    assert await searched.paths(alice, "cherries") == ["/alice/notes/b.txt"]
    assert (await alice.delete("/alice/notes/b.txt")).status == 204
    assert await searched.paths(alice, "cherries") == []
    await searched.catch_up()
    assert await searched.paths(alice, "cherries") == []


async def test_rules_count_at_the_moment_of_the_question(searched: Searched) -> None:
    server = searched.server
    await put(searched, "/alice/shared/a.txt", "secret plans")
    await put(searched, "/alice/own/a.txt", "secret plans")
    await searched.catch_up()
    assert await searched.paths(server.bob, "secret") == []
    assert await searched.paths(server.public, "secret") == []
    await server.put_acl("/alice/shared/", (BOB_READS, "+Read"))
    await searched.catch_up()
    assert await searched.paths(server.bob, "secret") == ["/alice/shared/a.txt"]
    assert await searched.paths(server.public, "secret") == []
    await server.put_acl("/alice/shared/a.txt")
    assert await searched.paths(server.bob, "secret") == []  # not indexed yet
    await searched.catch_up()
    assert await searched.paths(server.bob, "secret") == []
    await server.put_acl("/alice/shared/a.txt", (EVERYONE, "Read"))
    assert await searched.paths(server.public, "secret") == ["/alice/shared/a.txt"]
    assert (await server.alice.delete("/alice/shared/a.txt.acl")).status == 204
    assert await searched.paths(server.public, "secret") == []
    await searched.catch_up()
    assert await searched.paths(server.public, "secret") == []
    assert await searched.paths(server.bob, "secret") == ["/alice/shared/a.txt"]
    assert sorted(await searched.paths(server.alice, "secret")) == [
        "/alice/own/a.txt",
        "/alice/shared/a.txt",
    ]
