"""Modes that operations require, beyond the permission matrix (W-31, W-32, W-40, W-42, W-43)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import (
    EVERYONE,
    N3_PATCH,
    PIM,
    SPARQL_UPDATE,
    Agent,
    Response,
    Rule,
    acl_turtle,
)
from tests.conformance.patches import n3
from tests.support.rdf import TURTLE

INSERT = n3(inserts="<#new> ex:p 1 .")


def share(alice: Agent, container: str, bob: Agent, *, here: str = "", within: str = "") -> None:
    """Give Bob modes on a container itself, and others on what is within it by inheritance."""
    rules = []
    if here:
        rules.append(Rule(bob.named, here))
    if within:
        rules.append(Rule(bob.named, within, access_to=False, default=True))
    alice.grant(container, *rules)


def put(agent: Agent, target: str) -> Response:
    return agent.put(target, "<#put> <#p> 1 .")


def insert(agent: Agent, target: str) -> Response:
    return agent.patch(target, INSERT, N3_PATCH)


# --- W-31: asking what is allowed -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "doc.ttl", "doc.ttl.acl", "doc.ttl.meta", "fictive", "no/"])
def test_w_31_options_takes_nothing(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    alice.grant(alice.create(f"{container}doc.ttl"))
    for agent in (public, bob, alice):
        for headers in (
            {},
            {"Origin": "https://app.example", "Access-Control-Request-Method": "PUT"},
        ):
            response = agent.options(container + name, headers=headers)
            assert (response.status, response.body) == (204, b"")


# --- W-32: creating by POST -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "within", "status"),
    [
        ("Append", "", 201),
        ("Write", "", 201),
        ("Append", "Read Control", 201),
        ("", "Append Write", 403),
        ("Read Control", "Append Write", 403),
        ("", "", 403),
    ],
)
def test_w_32_post_takes_append_on_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str, here: str, within: str, status: int
) -> None:
    share(alice, container, bob, here=here, within=within)
    posts: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("Posted", "text/plain", {"Slug": "doc"}),
        ("<> <#p> 1 .", TURTLE, {}),
        ("", TURTLE, {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}),
    )
    for body, content_type, headers in posts:
        response = bob.post(container, body, content_type, headers)
        assert response.status == status
        if status == 201:
            assert alice.get(response.location).status == 200
            assert bob.get(response.location).status == (200 if "Read" in within else 403)
        assert public.post(container, body, content_type, headers).status == 401
    assert len(alice.read(container).members) == (3 if status == 201 else 0)


# --- W-40: access rules ---------------------------------------------------------------------------


def test_w_40_whatever_is_done_with_an_acl_takes_control(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl")
    rules = acl_turtle(
        alice.url(path),
        Rule(alice.named, "Read Write Control"),
        Rule(bob.named, "Control"),
        Rule(EVERYONE, "Read Write Append"),
    )
    acl = alice.acl_of(path)
    assert alice.put(acl, rules).status == 201
    steps: list[tuple[str, str | None, str, int]] = [
        ("GET", None, "", 200),
        ("HEAD", None, "", 200),
        ("PUT", rules, TURTLE, 204),
        ("PATCH", INSERT, N3_PATCH, 204),
        ("PATCH", n3(deletes="<#new> ex:p 1 ."), N3_PATCH, 204),
        ("PATCH", "DELETE { ?s a ?o } INSERT { ?s a ?o } WHERE { ?s a ?o }", SPARQL_UPDATE, 204),
        ("DELETE", None, "", 204),
    ]
    for method, body, content_type, status in steps:
        headers = {"Content-Type": content_type} if content_type else {}
        assert public.request(method, acl, body, headers).status == 401
        assert bob.request(method, acl, body, headers).status == status
    share(alice, container, bob, here="Control", within="Control")
    assert bob.get(acl).status == 404
    assert bob.put(acl, rules).status == 201
    share(alice, container, bob, here="Read Write Append", within="Read Write Append")
    other = alice.create(f"{container}other.ttl")
    for method, body, content_type, _ in steps:
        headers = {"Content-Type": content_type} if content_type else {}
        assert bob.request(method, f"{other}.acl", body, headers).status == 403


# --- W-42, W-43: what is not a resource of its own ------------------------------------------------


def test_w_42_the_description_of_a_container_is_as_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    description = alice.get(container).target("describedby")
    for here, read, write in (("Read", 200, 403), ("Write", 403, 204), ("Control", 403, 403)):
        share(alice, container, bob, here=here, within="Read Write")
        assert [bob.get(description).status, put(bob, description).status] == [read, write]
        assert public.get(description).status == 401


def test_w_43_descriptions_of_storages_and_the_servers_documents_are_public(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    alice.create(f"{container}doc.ttl")
    storage = public.get(f"{container}doc.ttl").target(
        "http://www.w3.org/ns/solid/terms#storageDescription"
    )
    assert public.get(f"{container}doc.ttl").status == 401
    for agent in (public, bob, alice):
        response = agent.read(storage)
        assert f"{PIM}Storage" in {str(o) for _, _, o in response.triples}
        assert agent.head(storage).status == 200
        for path in ("/", "/.well-known/solid"):
            assert agent.get(path).status == 200
    assert storage == alice.url(f"{alice.pod}.well-known/solid")
