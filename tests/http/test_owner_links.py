"""Who owns a storage, as the Link header of its root tells (P-33)."""

from __future__ import annotations

import pytest

from podstead.core.header_fields import parse_links
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer
from tests.support.rdf import TURTLE

ALICE = f"{BASE}/alice/#me"
OWNER_RELATIONS = {
    "http://www.w3.org/ns/solid/terms#owner",
    "http://www.w3.org/ns/solid/terms#podOwner",
}


def owners(answer: Answer) -> dict[str, str]:
    """What the links of an answer say of an owner, by relation type."""
    return {
        relation: link.target
        for link in parse_links([answer.header("link") or ""])
        for relation in link.relations
        if relation in OWNER_RELATIONS
    }


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_owner_is_advertised_only_if_the_operator_enables_it(
    server: Server, method: str
) -> None:
    for client in (server.public, server.alice):
        assert owners(await client.request(method, "/alice/")) == {}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("headers", [{}, {"If-None-Match": "*"}, {"Accept": "text/turtle"}])
async def test_the_root_links_to_its_owner_by_both_names(
    start: Start, method: str, headers: dict[str, str]
) -> None:
    server = await start(advertise_owners=True)
    for client in (server.public, server.alice, server.bob):
        answer = await client.request(method, "/alice/", headers=headers)
        assert answer.status in {200, 304}
        assert owners(answer) == dict.fromkeys(OWNER_RELATIONS, ALICE)


@pytest.mark.parametrize("target", ["/alice/public/", "/alice/profile/card", "/alice/.meta", "/"])
async def test_only_the_root_links_to_the_owner(start: Start, target: str) -> None:
    server = await start(advertise_owners=True)
    assert owners(await server.alice.get(target)) == {}


async def test_only_agents_that_may_read_the_root_learn_the_owner(start: Start) -> None:
    server = await start(advertise_owners=True)
    acl = f"""
        [] a <http://www.w3.org/ns/auth/acl#Authorization>;
            <http://www.w3.org/ns/auth/acl#agent> <{ALICE}>;
            <http://www.w3.org/ns/auth/acl#accessTo> </alice/>;
            <http://www.w3.org/ns/auth/acl#mode> <http://www.w3.org/ns/auth/acl#Read>,
                <http://www.w3.org/ns/auth/acl#Write>, <http://www.w3.org/ns/auth/acl#Control>.
    """
    assert (await server.alice.put("/alice/.acl", acl, TURTLE)).status == 204
    assert owners(await server.alice.get("/alice/"))
    for client, status in ((server.public, 401), (server.bob, 403)):
        answer = await client.get("/alice/")
        assert answer.status == status
        assert owners(answer) == {}
