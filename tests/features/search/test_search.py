"""What is found, and who finds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from podstead.config import Settings
from podstead.features.search import finder
from tests.features.search.searched import Searched
from tests.support.application import BASE
from tests.support.clock import FakeClock
from tests.support.commands import invoke
from tests.support.pod_pages import sign_in_by_token

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


@pytest.mark.feature("access_limits")
async def test_an_application_finds_no_more_than_its_limit_allows(
    searched: Searched, own_settings: Settings, engine: Mapping[str, str]
) -> None:
    for path in ("/alice/photos/a.txt", "/alice/notes/a.txt"):
        await put(searched, path, "secret plans")
    await searched.catch_up()
    options = ["--read", "--folder", "photos/"]
    options += [part for name, value in engine.items() for part in (f"--{name}", value)]
    made = await asyncio.to_thread(invoke, own_settings.root, "token", "create", "alice", *options)
    assert made.exit_code == 0, made.output
    limited = searched.server.public.with_token(made.stdout.strip())
    assert await searched.paths(limited, "secret") == ["/alice/photos/a.txt"]
    assert await searched.paths(limited, "notes") == []


async def test_authors_are_found_by_those_who_may_know_them(searched: Searched) -> None:
    server = searched.server
    await put(searched, "/alice/shared/a.txt", "plans")
    await server.put_acl("/alice/shared/", (BOB_READS, "+Read +Write"))
    assert (await server.bob.put("/alice/shared/b.txt", "plans", "text/plain")).status == 201
    await searched.catch_up()
    a, b = "/alice/shared/a.txt", "/alice/shared/b.txt"
    assert await searched.paths(server.alice, "plans by:alice") == [a]
    assert await searched.paths(server.alice, "plans by:/bob/") == [b]
    assert await searched.paths(server.bob, "plans by:bob") == [b]
    assert await searched.paths(server.bob, "plans by:alice") == []
    assert sorted(await searched.paths(server.bob, "plans")) == [a, b]


async def test_filters_and_orders(searched: Searched, clock: FakeClock) -> None:
    alice = searched.server.alice
    for path, type_ in (
        ("/alice/a/one.txt", "text/plain"),
        ("/alice/a/two.csv", "text/csv"),
        ("/alice/b/three.md", "text/markdown"),
    ):
        await put(searched, path, "apples" if "one" in path else "apples and more", type_)
        clock.advance(seconds=86_400)
    await searched.catch_up()
    one, two, three = "/alice/a/one.txt", "/alice/a/two.csv", "/alice/b/three.md"
    assert await searched.paths(alice, "apples") == [one, three, two]
    assert await searched.paths(alice, "apples", sort="newest") == [three, two, one]
    assert await searched.paths(alice, "apples type:csv") == [two]
    assert await searched.paths(alice, "apples type:TXT type:text/markdown") == [one, three]
    assert await searched.paths(alice, "apples in:a") == [one, two]
    assert await searched.paths(alice, "apples in:/alice/b/") == [three]
    assert await searched.paths(alice, "apples in:%_") == []
    assert await searched.paths(alice, "a type:folder") == ["/alice/a/"]
    assert await searched.paths(alice, "apples", below="/alice/b/") == [three]
    assert await searched.paths(alice, "-more in:a type:text") == [one]


async def test_answers_have_pages(searched: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "PAGE", 2)
    alice = searched.server.alice
    for number in range(5):
        await put(searched, f"/alice/{number}.txt", "apples")
    await searched.catch_up()
    address, found = "/.search/in/alice/?q=apples", list[str]()
    for _ in range(3):
        answer = await alice.get(address)
        assert answer.status == 200
        found += [each["id"] for each in answer.json()["items"]]
        link = answer.header("link")
        if link is None:
            break
        address = link.removeprefix(f"<{BASE}").removesuffix('>; rel="next"')
    assert sorted(found) == [f"{BASE}/alice/{number}.txt" for number in range(5)]
    for wrong in ("page=0", "page=x", "page=26", "sort=best", "q=a&q=b"):
        assert (await alice.get(f"/.search/in/alice/?{wrong}")).status == 400


async def test_containers_are_queried(searched: Searched) -> None:
    server = searched.server
    await put(searched, "/alice/private/a.txt", "apples")
    await searched.catch_up()
    fields = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await server.alice.request(
        "QUERY", "/alice/private/", headers=fields, body=b"q=apples"
    )
    assert answer.status == 200
    assert [each["id"] for each in answer.json()["items"]] == [f"{BASE}/alice/private/a.txt"]
    refused = await server.public.request(
        "QUERY", "/alice/private/", headers=fields, body=b"q=apples"
    )
    assert refused.status == 401
    head = await server.alice.request("HEAD", "/alice/")
    assert "application/x-www-form-urlencoded" in (head.header("accept-query") or "")
    described = await server.public.get("/.search/description/alice/")
    assert described.status == 200
    storage = await server.public.get("/alice/.well-known/solid")
    assert f"{BASE}/.search/description/alice/" in storage.text
    assert f"{BASE}/.search/in/alice/?q={{searchTerms}}" in described.text
    assert (await server.alice.get("/.search/in/alice/a.txt?q=apples")).status == 404


async def test_the_page_shows_results_with_marks(searched: Searched) -> None:
    server = searched.server
    await put(searched, "/alice/a.txt", "ripe <apples> and pears")
    await searched.catch_up()
    alice = await sign_in_by_token(server, server.alice)
    page = await alice.get("/.pages/search?q=apples")
    assert "ripe &lt;<mark>apples</mark>&gt; and pears" in page.text
    assert "Nothing was found" in (await alice.get("/.pages/search?q=apples&kind=pdf")).text
    bob = await sign_in_by_token(server, server.bob)
    assert "a.txt" not in (await bob.get("/.pages/search?q=apples&in=/alice/")).text


async def test_the_page_searches_what_is_shared_as_well(searched: Searched) -> None:
    server = searched.server
    for path in ("/alice/shared/a.txt", "/alice/notes/one.txt", "/alice/notes/other.txt"):
        await put(searched, path, "ripe apples")
    assert (await server.bob.put("/bob/own.txt", "ripe apples", "text/plain")).status == 201
    await server.put_acl("/alice/shared/", (BOB_READS, "+Read"))
    await server.put_acl("/alice/notes/one.txt", (BOB_READS, "Read"))
    await searched.catch_up()
    bob = await sign_in_by_token(server, server.bob)
    page = (await bob.get("/.pages/search?q=apples")).text
    for found in ("/bob/own.txt", "/alice/shared/a.txt", "/alice/notes/one.txt"):
        assert f'href="/.pages/files{found}"' in page
    assert "other.txt" not in page
    page = (await bob.get("/.pages/search?q=apples&in=/bob/")).text
    assert "own.txt" in page
    assert "one.txt" not in page
    assert 'href="/.pages/search?q=apples"' in page
