"""What responses say about access: ``WAC-Allow`` (W-50 to W-56)."""

from __future__ import annotations

import re

import pytest

from tests.conformance.agents import AUTHENTICATED, EVERYONE, Agent, Response, Rule
from tests.support.rdf import JSON_LD, TURTLE

GRANTS = {
    "Read": ["read"],
    "Read Control": ["read", "control"],
    "Read Append": ["read", "append"],
    "Read Write": ["read", "write", "append"],
    "Read Write Append": ["read", "write", "append"],
    "Read Write Append Control": ["read", "write", "append", "control"],
    "Write": ["write", "append"],
    "Append": ["append"],
    "Control": ["control"],
}
KINDS = {"document": "doc.txt", "rdf": "doc.ttl", "container": "inner/", "fictive": "fictive"}


def both(agent: Agent, target: str) -> list[Response]:
    return [agent.get(target), agent.head(target)]


def sorted_access(response: Response) -> dict[str, list[str]]:
    return {group: sorted(modes) for group, modes in response.access.items()}


def test_w_50_every_response_to_get_and_head_has_it(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    alice.grant(container, Rule(bob.named, "Read", default=True))
    full = {"user": ["read", "write", "append", "control"], "public": []}
    tag = alice.get(path).header("ETag") or ""
    for target in (path, container, f"{container}missing", f"{path}.meta", f"{container}.acl"):
        for response in both(alice, target):
            assert response.status == (404 if target.endswith("missing") else 200)
            assert response.access == full
    for method in ("GET", "HEAD"):
        unchanged = alice.request(method, path, headers={"If-None-Match": tag})
        assert (unchanged.status, unchanged.access) == (304, full)
        partial = alice.request(method, path, headers={"Range": "bytes=0-3"})
        assert partial.access == full
        refused = alice.request(method, path, headers={"Accept": "image/png, */*;q=0"})
        assert refused.access == full
    for target in (path, container):
        for response in both(bob, target):
            assert (response.status, response.access) == (200, {"user": ["read"], "public": []})
        for response in both(public, target):
            assert (response.status, response.access) == (401, {"user": [], "public": []})
    for target in (f"{path}.acl", f"{container}.acl"):
        for response in both(bob, target):
            assert (response.status, response.access) == (403, {"user": [], "public": []})
    for response in both(bob, f"{container}missing"):
        assert (response.status, response.access) == (404, {"user": ["read"], "public": []})


@pytest.mark.parametrize("accept", [TURTLE, JSON_LD, "*/*"])
def test_w_50_whatever_representation_is_requested(
    alice: Agent, container: str, accept: str
) -> None:
    path = alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    for target in (path, container):
        for method in ("GET", "HEAD"):
            response = alice.request(method, target, headers={"Accept": accept})
            assert response.status == 200
            assert response.access["user"] == ["read", "write", "append", "control"]


@pytest.mark.parametrize("modes", ["", *GRANTS])
def test_w_51_its_grammar(
    alice: Agent, bob: Agent, public: Agent, container: str, modes: str
) -> None:
    path = alice.create(f"{container}doc.ttl")
    group = r'"(?:(?:read|write|append|control)(?: (?:read|write|append|control))*)?"'
    for who in (bob.named, EVERYONE):
        alice.grant(path, *([Rule(who, modes)] if modes else []))
        for agent in (alice, bob, public):
            for response in both(agent, path):
                [value] = response.values("WAC-Allow")
                assert re.fullmatch(f"user={group},public={group}", value), value
                for listed in response.access.values():
                    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("modes", GRANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_w_52_public_is_everyone_and_user_who_asks(
    alice: Agent, bob: Agent, public: Agent, container: str, modes: str, kind: str
) -> None:
    target = container + KINDS[kind]
    if kind != "fictive":
        alice.create(target)
    alice.grant(container, Rule(EVERYONE, modes, default=True))
    for agent in (public, bob):
        for response in both(agent, target):
            assert sorted_access(response) == {
                "user": sorted(GRANTS[modes]),
                "public": sorted(GRANTS[modes]),
            }
    alice.grant(
        container,
        Rule(EVERYONE, "Append", default=True),
        Rule(bob.named, modes, default=True),
        Rule(AUTHENTICATED, "Control", default=True),
    )
    for response in both(bob, target):
        expected = sorted({*GRANTS[modes], "append", "control"})
        assert sorted_access(response) == {"user": expected, "public": ["append"]}
    for response in both(public, target):
        assert response.access == {"user": ["append"], "public": ["append"]}


@pytest.mark.parametrize("modes", GRANTS)
@pytest.mark.parametrize("kind", ["document", "rdf", "container"])
@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "indirect"])
def test_w_53_the_modes_are_exactly_those_granted(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    modes: str,
    kind: str,
    is_direct: bool,
) -> None:
    path = alice.create(container + KINDS[kind])
    for who in (bob.named, EVERYONE):
        if is_direct:
            alice.grant(container)
            alice.grant(path, Rule(who, modes))
        else:
            assert alice.delete(f"{path}.acl").status in {204, 404}
            alice.grant(container, Rule(who, modes, access_to=False, default=True))
        everyones = sorted(GRANTS[modes]) if who is EVERYONE else []
        for response in both(bob, path):
            assert response.status == (200 if "Read" in modes else 403)
            found = sorted_access(response)
            assert found == {"user": sorted(GRANTS[modes]), "public": everyones}
        for response in both(public, path):
            assert sorted_access(response) == {"user": everyones, "public": everyones}
        for response in both(alice, path):
            assert {"read", "write", "control"} <= set(response.access["user"])


def test_w_54_append_is_listed_with_write_and_an_acl_has_all_or_nothing(
    alice: Agent, bob: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl")
    alice.grant(path, Rule(bob.named, "Write"))
    assert bob.get(path).header("WAC-Allow") == 'user="write append",public=""'
    for response in both(bob, f"{path}.acl"):
        assert (response.status, response.access["user"]) == (403, [])
    alice.grant(path, Rule(bob.named, "Control"))
    assert bob.get(path).header("WAC-Allow") == 'user="control",public=""'
    for response in both(bob, f"{path}.acl"):
        assert response.status == 200
        assert response.access == {"user": ["read", "write", "append", "control"], "public": []}


def test_w_55_scripts_of_other_origins_may_read_it(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl")
    for agent in (alice, bob, public):
        for target in (path, f"{container}missing"):
            for method in ("GET", "HEAD"):
                response = agent.request(method, target, headers={"Origin": "https://app.example"})
                exposed = {
                    name.lower() for name in response.listed("Access-Control-Expose-Headers")
                }
                assert "wac-allow" in exposed
                assert response.header("WAC-Allow") is not None


def test_w_56_what_the_container_forbids_takes_nothing_away(
    alice: Agent, bob: Agent, container: str
) -> None:
    alice.grant(container)
    for name in ("doc.ttl", "inner/"):
        path = alice.create(container + name)
        alice.grant(path, Rule(bob.named, "Read Write"))
        assert bob.get(path).access["user"] == ["read", "write", "append"]
        assert bob.delete(path).status == 403
        assert bob.get(path).access["user"] == ["read", "write", "append"]
