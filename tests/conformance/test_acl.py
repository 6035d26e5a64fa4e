"""ACL resources (W-1 to W-9): where they are, who may read and write them, and what they accept."""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Committed, InlineBody, Put, ResourceKind, Version, Write
from tests.conformance.agents import (
    ACL,
    EVERYONE,
    N3_PATCH,
    WRITTEN,
    Agent,
    Rule,
    acl_turtle,
    create_agent,
)
from tests.conformance.patches import n3
from tests.support.engine import new_store
from tests.support.rdf import JSON_LD, TURTLE, triples
from tests.support.server import ServerProcess

ACCESS = "urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#"


@pytest.mark.parametrize("name", ["doc.ttl", "doc", "inner/", "deep/inner/", "with%20space"])
def test_w_1_each_resource_links_to_its_one_acl(alice: Agent, container: str, name: str) -> None:
    path = container + name
    missing = alice.get(path).target("acl")
    alice.create(path)
    found = {alice.get(path).target("acl"), alice.head(path).target("acl"), missing}
    assert found == {alice.url(f"{path}.acl")}


def test_w_1_an_acl_has_no_acl_of_its_own(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl")
    alice.grant(path)
    acl = f"{path}.acl"
    for response in (alice.get(acl), alice.head(acl)):
        assert response.targets("acl") == [alice.url(acl)]  # its rules are those that it holds
    rule = acl_turtle(alice.url(acl), Rule(alice.named, "Read"))
    assert 400 <= alice.put(f"{acl}.acl", rule).status < 500
    assert alice.get(f"{acl}.acl").status == 404


def test_w_1_a_container_lists_no_acl(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl")
    alice.grant(path)
    alice.grant(container)
    assert alice.read(container).members == [alice.url(path)]


@pytest.mark.parametrize("name", ["doc.ttl", "inner/"])
def test_w_2_an_acl_is_read_as_turtle(alice: Agent, bob: Agent, container: str, name: str) -> None:
    path = alice.create(container + name)
    alice.grant(path, Rule(bob.named, "Read"), Rule(EVERYONE, "Append"))
    for accept in ({"Accept": TURTLE}, {"Accept": "text/turtle;q=0.9, */*;q=0.1"}, {}):
        response = alice.get(alice.acl_of(path), headers=accept)
        assert (response.status, response.media_type) == (200, TURTLE)
        assert bob.web_id in response.text
        said = {(str(p), str(o)) for _, p, o in response.triples}
        assert (f"{ACL}agentClass", "http://xmlns.com/foaf/0.1/Agent") in said
        head = alice.head(alice.acl_of(path), headers=accept)
        assert (head.status, head.media_type, head.body) == (200, TURTLE, b"")
    as_json = alice.read(alice.acl_of(path), JSON_LD)
    assert as_json.media_type == JSON_LD
    assert as_json.triples == alice.read(alice.acl_of(path)).triples


def test_w_2_an_acl_in_json_ld_is_read_as_turtle(alice: Agent, bob: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl")
    rule = (
        f'{{"@type": "{ACL}Authorization", "{ACL}agent": {{"@id": "{bob.web_id}"}},'
        f' "{ACL}accessTo": {{"@id": "doc.ttl"}}, "{ACL}mode": {{"@id": "{ACL}Read"}}}}'
    )
    assert alice.put(f"{path}.acl", rule, JSON_LD).status == 201
    assert bob.get(path).status == 200
    response = alice.read(f"{path}.acl")
    assert response.media_type == TURTLE
    assert bob.web_id in response.text


@pytest.mark.parametrize("name", ["doc.ttl", "inner/", "inner/doc"])
def test_w_3_an_acl_that_nobody_made_is_404(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    alice.grant(container, Rule(bob.named, "Read", default=True), Rule(EVERYONE, "Read"))
    path = alice.create(container + name)
    acl = alice.acl_of(path)
    for agent, status in ((alice, 404), (bob, 403), (public, 401)):
        for method in ("GET", "HEAD"):
            response = agent.request(method, acl, headers={"Accept": TURTLE})
            assert response.status == status
            assert bob.web_id not in response.text
    assert bob.web_id in alice.read(alice.acl_of(container)).text


# --- W-4: the root's ------------------------------------------------------------------------------


def test_w_4_the_acl_of_a_storage_exists_and_stays(server: ServerProcess, public: Agent) -> None:
    owner = create_agent(server)
    acl = owner.acl_of(owner.pod)
    said = owner.read(acl).triples
    assert f"{ACL}Control" in {str(o) for _, p, o in said if str(p) == f"{ACL}mode"}
    refused = owner.delete(acl)
    assert refused.status == 405
    assert "DELETE" not in refused.listed("Allow")
    assert public.delete(acl).status == 401
    assert owner.read(acl).triples == said


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "[] a acl:Authorization; acl:agent <#me>; acl:accessTo <./>; acl:mode acl:Write.",
        "[] a acl:Authorization; acl:agent <#me>; acl:default <./>; acl:mode acl:Control.",
        "[] a acl:Authorization; acl:agent <#me>; acl:accessTo <x/>; acl:mode acl:Control.",
        "[] a acl:Authorization; acl:accessTo <./>; acl:mode acl:Control.",
        "[] acl:agent <#me>; acl:accessTo <./>; acl:mode acl:Control.",
    ],
)
def test_w_4_a_write_that_leaves_nobody_control_of_a_storage_is_refused(
    server: ServerProcess, rules: str
) -> None:
    owner = create_agent(server)
    acl = owner.acl_of(owner.pod)
    before = owner.read(acl)
    for content_type, text in ((TURTLE, f"@prefix acl: <{ACL}>. {rules}"), (JSON_LD, "{}")):
        assert owner.put(acl, text, content_type).status in {409, 422}
    assert owner.patch(acl, "DELETE WHERE { ?s ?p ?o }").status in {409, 422}
    remove = f"DELETE {{ ?s <{ACL}mode> <{ACL}Control> }} WHERE {{ ?s <{ACL}mode> <{ACL}Control> }}"
    assert owner.patch(acl, remove).status in {409, 422}
    after = owner.read(acl)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


def test_w_4_an_n3_patch_that_leaves_nobody_control_is_refused(server: ServerProcess) -> None:
    owner = create_agent(server)
    acl = owner.acl_of(owner.pod)
    url = owner.url(owner.pod)
    only = f"<#r> a <{ACL}Authorization>; <{ACL}agent> <{owner.web_id}>; <{ACL}accessTo> <{url}> ;"
    assert owner.put(acl, f"{only} <{ACL}mode> <{ACL}Control>, <{ACL}Read> .").status == 204
    remove = n3(deletes=f"<#r> <{ACL}mode> <{ACL}Control> .")
    assert owner.patch(acl, remove, N3_PATCH).status in {409, 422}
    harmless = n3(deletes=f"<#r> <{ACL}mode> <{ACL}Read> .")
    assert owner.patch(acl, harmless, N3_PATCH).status == 204


# --- W-5, W-6: who and what -----------------------------------------------------------------------


def test_w_5_control_opens_the_acl_and_nothing_else(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    alice.grant(path, Rule(bob.named, "Control"))
    acl = alice.acl_of(path)
    assert bob.get(acl).status == 200
    assert bob.get(path).status == 403
    assert bob.put(path, "<#a> <#p> 2 .").status == 403
    assert bob.delete(path).status == 403
    rules = acl_turtle(alice.url(path), Rule(bob.named, "Read Control"))
    assert bob.put(acl, rules).status in WRITTEN
    assert bob.get(path).status == 200
    alice.grant(path, Rule(bob.named, "Read Write Append"), Rule(EVERYONE, "Read Write Append"))
    for agent, status in ((bob, 403), (public, 401)):
        for method in ("GET", "HEAD", "DELETE"):
            assert agent.request(method, acl).status == status
        assert agent.put(acl, rules).status == status
        assert agent.patch(acl, "INSERT DATA { <#a> <#p> 1 }").status == status


def test_w_5_a_change_applies_to_the_next_request(alice: Agent, bob: Agent, container: str) -> None:
    new = f"{container}new.txt"
    for _ in range(3):
        assert bob.get(container).status == 403
        alice.grant(container, Rule(bob.named, "Read Write", default=True))
        assert bob.put(new, "x", "text/plain").status == 201
        assert [bob.get(target).status for target in (container, new)] == [200, 200]
        alice.grant(container)
        assert [bob.get(target).status for target in (container, new)] == [403, 403]
        assert alice.delete(new).status == 204


def test_w_6_an_acl_takes_all_methods_of_a_document(
    alice: Agent, bob: Agent, container: str
) -> None:
    alice.grant(container, Rule(bob.named, "Read", default=True))
    path = alice.create(f"{container}doc.ttl")
    acl = alice.acl_of(path)
    methods = {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"}
    assert alice.options(acl).status == 204
    assert alice.options(acl).listed("Allow") == methods
    assert bob.get(path).status == 200
    assert alice.delete(acl).status == 404
    assert alice.put(acl, acl_turtle(alice.url(path), Rule(alice.named, "Read"))).status == 201
    assert alice.get(acl).listed("Allow") == methods
    assert bob.get(path).status == 403
    assert alice.put(acl, acl_turtle(alice.url(path), Rule(bob.named, "Read"))).status == 204
    assert bob.get(path).status == 200
    assert alice.patch(acl, "DELETE WHERE { ?s ?p ?o }").status == 204
    assert bob.get(path).status == 403
    assert alice.delete(acl).status == 204
    assert alice.get(acl).status == 404
    assert bob.get(path).status == 200


@pytest.mark.parametrize(
    ("content_type", "content", "status"),
    [
        ("text/plain", "x", 415),
        ("application/json", "{}", 415),
        ("image/png", "x", 415),
        ("application/octet-stream", "", 415),
        (TURTLE, "this is no Turtle", 400),
        (TURTLE, "<#a> <#p> 1", 400),
        (JSON_LD, "{", 400),
        (JSON_LD, '{"@context": "https://unknown.example/context"}', 400),
    ],
)
def test_w_6_invalid_rdf_does_not_become_an_acl(
    alice: Agent, container: str, content_type: str, content: str, status: int
) -> None:
    path = alice.create(f"{container}doc.ttl")
    acl = alice.acl_of(path)
    assert alice.put(acl, content, content_type).status == status
    assert alice.get(acl).status == 404
    alice.grant(path)
    before = alice.get(acl).body
    assert alice.put(acl, content, content_type).status == status
    assert alice.get(acl).body == before


# --- W-7, W-8: ACLs that give nothing -------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "content"),
    [(TURTLE, b"this is no Turtle"), (TURTLE, b"\xff"), (JSON_LD, b"{"), ("image/png", b"x")],
)
@pytest.mark.parametrize("name", ["doc.ttl", "inner/"])
def test_w_7_an_acl_that_is_not_understood_denies(
    server: ServerProcess,
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    name: str,
    content_type: str,
    content: bytes,
) -> None:
    everybody = Rule(EVERYONE, "Read Write Control", default=True)
    alice.grant(container, everybody)
    path = alice.create(container + name)
    alice.grant(path, everybody)
    assert public.get(path).status == 200
    asyncio.run(corrupt(server, f"{path}.acl", content_type, content))
    targets = [path, f"{path}missing", f"{path}deep/missing"] if path.endswith("/") else [path]
    for target in targets:
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            headers = {"Content-Type": TURTLE} if method == "PUT" else {}
            statuses = [who.request(method, target, None, headers).status for who in (bob, public)]
            assert statuses == [403, 401]
    assert bob.get(f"{path}.acl").status == 403
    assert alice.get(path).status == 403
    assert alice.get(f"{path}.acl").body == content
    rules = acl_turtle(alice.url(path), everybody)
    assert alice.put(f"{path}.acl", rules).status == 204
    assert public.get(path).status == 200


async def corrupt(server: ServerProcess, path: str, content_type: str, content: bytes) -> None:
    """Store what the server would refuse, as another worker's defect or a damaged disk might."""
    store = new_store(server.root)
    await store.open()
    try:
        put = Put(
            ResourcePath(path), ResourceKind.ACL, content_type, InlineBody(content), creates=False
        )
        write = Write(version=Version("c0" * 8), at_ms=1, puts=(put,))
        assert isinstance(await store.commit(write), Committed)
    finally:
        await store.close()


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "<#a> <#p> 1 .",
        "[] a acl:Authorization; acl:agentClass foaf:Agent; acl:accessTo </x>; acl:mode acl:Read.",
    ],
)
@pytest.mark.parametrize("name", ["doc.ttl", "inner/"])
def test_w_8_an_acl_that_says_nothing_about_its_resource_denies(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str, rules: str
) -> None:
    alice.grant(container, Rule(EVERYONE, "Read", default=True))
    path = alice.create(container + name)
    assert public.get(path).status == 200
    prefixes = f"@prefix acl: <{ACL}>. @prefix foaf: <http://xmlns.com/foaf/0.1/>."
    assert alice.put(f"{path}.acl", f"{prefixes} {rules}").status == 201
    within = [path, f"{path}missing"] if path.endswith("/") else [path]
    for target in within:
        assert [agent.get(target).status for agent in (bob, public)] == [403, 401]


def test_w_9_the_conditions_that_are_evaluated_are_advertised(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl")
    alice.grant(path)
    acl = f"{path}.acl"
    types = {f"{ACL}ClientCondition", f"{ACL}IssuerCondition", f"{ACCESS}PeriodCondition"}
    for response in (alice.get(acl), alice.head(acl), alice.request("OPTIONS", acl)):
        assert set(response.targets(f"{ACL}condition")) == types
    for target in (path, container):
        assert alice.get(target).targets(f"{ACL}condition") == []


def test_w_9_a_condition_narrows_an_authorization(alice: Agent, bob: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl")
    for condition, status in (
        ("a acl:ClientCondition; acl:client <http://x.example/>", 403),
        ("a acl:ClientCondition; acl:clientClass foaf:Agent", 200),
        ("a acl:IssuerCondition; acl:issuer <http://x.example/>", 403),
        ("a access:PeriodCondition; access:begins '2999-01-01T00:00:00Z'^^xsd:dateTime", 403),
        ("a access:PeriodCondition; access:ends '2999-01-01T00:00:00Z'^^xsd:dateTime", 200),
        ("a access:WeatherCondition", 200),
    ):
        rule = conditional_rule(bob.named, condition)
        written = alice.put(f"{path}.acl", rule)
        assert written.status in (201, 204)
        ignored = [f"{ACCESS}WeatherCondition"] if "Weather" in condition else []
        assert written.targets(f"{ACCESS}ignoredCondition") == ignored
        assert bob.get(path).status == status
        assert (triples(rule, TURTLE, alice.url(f"{path}.acl"))) == alice.read(
            f"{path}.acl"
        ).triples


def conditional_rule(who: str, condition: str) -> str:
    return (
        f"@prefix acl: <{ACL}>. @prefix access: <{ACCESS}>."
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>."
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>."
        f"[] a acl:Authorization; {who}; acl:accessTo <doc.ttl>;"
        f" acl:mode acl:Read; acl:condition [ {condition} ]."
    )
