"""A new pod: everyone reads the profile, and only the owner sees what is in the container."""

from __future__ import annotations

import pytest
import rdflib
from rdflib.namespace import FOAF, RDF

from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.rdf import FORMATS, said

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
PIM = rdflib.Namespace("http://www.w3.org/ns/pim/space#")
POD = "/alice/"
URL = rdflib.URIRef(BASE + POD)
ME = rdflib.URIRef(f"{BASE}/alice/#me")
SECRET = "a-plan-nobody-knows"
HEADERS_OF_STATE = ("etag", "last-modified", "content-length")


def readers(server: Server) -> tuple[Client, Client]:
    """A stranger, and another person who is signed in."""
    return server.public, server.bob


def profile_rule(who: str) -> str:
    """The rules of the root: Alice's, and one on the profile alone."""
    return (
        acl_turtle(POD) + f"[] a acl:Authorization; {who}; acl:accessTo <#me>; acl:mode acl:Read."
    )


async def put_root_acl(server: Server, extra: str) -> None:
    # The rule names the WebID by its full IRI: relative ones resolve against the URL of the ACL.
    body = extra.replace("<#me>", f"<{ME}>")
    answer = await server.alice.put(f"{POD}.acl", body, "text/turtle")
    assert answer.status == 204, answer.text


@pytest.mark.parametrize("accept", FORMATS)
async def test_everyone_reads_the_profile_without_the_members(server: Server, accept: str) -> None:
    """A-98."""
    await server.alice.put(f"{POD}{SECRET}.txt", "x", "text/plain")
    owners = said(await server.alice.get(POD, accept=accept), str(URL))
    assert {o for s, p, o in owners if p == LDP.contains}
    for reader in readers(server):
        answer = await reader.get(POD, accept=accept)
        assert answer.status == 200
        graph = said(answer, str(URL))
        assert (ME, RDF.type, FOAF.Person) in graph
        assert (URL, RDF.type, PIM.Storage) in graph
        assert not [o for _, p, o in graph if p == LDP.contains]
        assert SECRET not in answer.text


@pytest.mark.parametrize("path", [POD, f"{POD}.meta"])
async def test_nothing_tells_strangers_that_members_come_and_go(
    start: Start, clock: FakeClock, path: str
) -> None:
    """Neither entity tags nor dates nor the text; so If-None-Match and caches do not either."""
    server = await start(clock=clock)

    async def seen() -> list[Answer]:
        return [await reader.request(method, path) for reader in readers(server)
                for method in ("GET", "HEAD")]  # fmt: skip

    before = await seen()
    owned = await server.alice.get(path)
    clock.advance(3_600)
    assert (await server.alice.put(f"{POD}{SECRET}/x.txt", "x", "text/plain")).status == 201
    for old, new in zip(before, await seen(), strict=True):
        assert (old.status, new.status) == (200, 200)
        assert old.body == new.body
        for name in HEADERS_OF_STATE:
            assert old.header(name) == new.header(name), name
    assert (await server.alice.get(path)).header("etag") != owned.header("etag")
    tag = before[0].header("etag") or ""
    assert tag != owned.header("etag")
    unchanged = await server.public.get(path, if_none_match=tag)
    assert unchanged.status == 304
    # The tags are of different representations: neither is taken for the other.
    assert (await server.alice.get(path, if_none_match=tag)).status == 200
    other = (await server.alice.get(path)).header("etag") or ""
    assert (await server.public.get(path, if_none_match=other)).status == 200


async def test_caches_keep_what_the_owner_reads_apart(server: Server) -> None:
    owned, public = await server.alice.get(POD), await server.public.get(POD)
    for answer in (owned, public):
        assert "Authorization" in (answer.header("vary") or "").split(", ")
        assert answer.header("cache-control") == "private, no-cache"
    assert SECRET not in (await server.public.get(POD)).text
    assert "contains" in owned.text
    assert "contains" not in public.text


async def test_the_rights_that_are_stated_are_those_on_the_container(server: Server) -> None:
    """Web Access Control, section 6.1: a client that asks whether the folder is public is told
    that it is not."""
    assert (await server.public.get(POD)).header("wac-allow") == 'user="",public=""'
    owned = (await server.alice.get(POD)).header("wac-allow")
    assert owned == 'user="read write append control",public=""'


async def test_a_profile_is_found_without_its_slash(server: Server) -> None:
    answer = await server.public.get("/alice")
    assert (answer.status, answer.header("location")) == (301, str(URL))


async def test_the_rule_opens_nothing_else(server: Server) -> None:
    await server.alice.put(f"{POD}{SECRET}/x.txt", "x", "text/plain")
    places = (f"{POD}.acl", f"{POD}{SECRET}/", f"{POD}{SECRET}/x.txt", f"{POD}private/",
              f"{POD}{SECRET}/.meta", f"{POD}missing/", f"{POD}missing")  # fmt: skip
    for path in places:
        assert (await server.public.get(path)).status == 401, path
        assert (await server.bob.get(path)).status == 403, path
    insert = "INSERT DATA { <#me> <http://xmlns.com/foaf/0.1/name> 'x' }"
    for method, body, kind in (
        ("PUT", "", "text/turtle"),
        ("POST", "", "text/turtle"),
        ("PATCH", insert, "application/sparql-update"),
        ("DELETE", None, None),
    ):
        headers = {"Content-Type": kind} if kind else {}
        content = None if body is None else body.encode()
        answer = await server.bob.request(method, POD, headers=headers, body=content)
        assert answer.status == 403, method


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("acl:agent <http://localhost:3000/bob/#me>", (401, 200)),
        ("acl:agentClass acl:AuthenticatedAgent", (401, 200)),
        ("acl:agentClass foaf:Agent", (200, 200)),
        ("acl:agent <http://localhost:3000/carol/#me>", (401, 403)),
        ("acl:origin <https://app.example>", (401, 403)),
    ],
)
async def test_the_rule_names_agents_as_any_other(
    server: Server, rule: str, expected: tuple[int, int]
) -> None:
    await put_root_acl(server, profile_rule(rule))
    answers = [await reader.get(POD) for reader in readers(server)]
    assert tuple(answer.status for answer in answers) == expected
    assert not any("contains" in answer.text for answer in answers)


@pytest.mark.parametrize("mode", ["acl:Write", "acl:Append", "acl:Control"])
async def test_other_modes_on_a_fragment_grant_nothing(server: Server, mode: str) -> None:
    body = profile_rule("acl:agentClass foaf:Agent").replace(
        "acl:mode acl:Read.", f"acl:mode {mode}."
    )
    assert mode in body.rpartition("[]")[2]
    await put_root_acl(server, body)
    assert (await server.public.get(POD)).status == 401
    assert (await server.bob.get(f"{POD}.acl")).status == 403


async def test_read_on_the_container_itself_shows_its_members_as_ever(server: Server) -> None:
    await server.put_acl(POD, ("acl:agentClass foaf:Agent", "Read"))
    answer = await server.public.get(POD)
    assert "contains" in answer.text
    assert answer.header("wac-allow") == 'user="read",public="read"'
