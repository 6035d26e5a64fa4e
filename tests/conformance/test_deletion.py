"""Deletion: what DELETE removes and keeps, and who learns of it (C-17 to C-22)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import (
    DELETED,
    PIM,
    SOLID,
    WRITTEN,
    Agent,
    Rule,
)
from tests.support.rdf import JSON_LD, TURTLE

TEXT = "text/plain"
MEMBERS = {"x.ttl": TURTLE, "x/": TURTLE, "x.txt": TEXT}


@pytest.mark.parametrize("name", MEMBERS)
def test_c_17_what_is_deleted_is_no_longer_listed(alice: Agent, container: str, name: str) -> None:
    other = alice.create(f"{container}other.txt", "stays", TEXT)
    target = alice.create(container + name, "", MEMBERS[name])
    for accept in (TURTLE, JSON_LD):
        assert alice.url(target) in alice.read(container, accept).members
    deleted = alice.delete(target)
    assert deleted.status in DELETED
    assert (deleted.status, deleted.body) == (204, b"")
    for accept in (TURTLE, JSON_LD):
        listing = alice.read(container, accept)
        assert listing.members == [alice.url(other)]
        assert alice.url(target) not in {str(term) for triple in listing.triples for term in triple}


@pytest.mark.parametrize("name", MEMBERS)
def test_c_17_the_name_of_what_was_deleted_is_free(alice: Agent, container: str, name: str) -> None:
    target = alice.create(container + name, "", MEMBERS[name])
    assert alice.delete(target).status == 204
    twin = target[:-1] if target.endswith("/") else f"{target}/"
    assert alice.put(twin, "", TURTLE).status == 201
    assert alice.delete(twin).status == 204
    assert alice.put(target, "", MEMBERS[name]).status == 201


@pytest.mark.parametrize("name", MEMBERS)
def test_c_18_a_container_with_a_member_is_not_deleted(
    alice: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", MEMBERS[name])
    refused = alice.delete(container)
    assert refused.status == 409
    assert refused.media_type == "application/json"
    assert "empty" in refused.text
    assert alice.get(target).status == 200
    assert alice.read(container).members == [alice.url(target)]
    assert alice.delete(target).status == 204
    assert alice.delete(container).status == 204


def test_c_18_nothing_is_deleted_below_a_container(alice: Agent, container: str) -> None:
    target = alice.create(f"{container}a/b/x.txt", "kept", TEXT)
    for refused in (container, f"{container}a/", f"{container}a/b/"):
        assert alice.delete(refused).status == 409
    assert alice.get(target).text == "kept"


def test_c_19_a_storage_and_its_acl_are_not_deleted(alice: Agent) -> None:
    acl = alice.acl_of(alice.pod)
    for target in (alice.pod, acl):
        refused = alice.delete(target)
        assert refused.status == 405
        for response in (refused, alice.get(target), alice.head(target), alice.options(target)):
            assert "GET" in response.listed("Allow")
            assert "DELETE" not in response.listed("Allow")
        assert alice.get(target).status == 200


def test_c_19_other_containers_and_acls_can_be_deleted(alice: Agent, container: str) -> None:
    alice.grant(container)
    for target in (alice.acl_of(container), container):
        assert "DELETE" in alice.options(target).listed("Allow")
        assert "DELETE" in alice.get(target).listed("Allow")
        assert alice.delete(target).status == 204


@pytest.mark.parametrize("name", MEMBERS)
def test_c_20_acl_and_description_go_with_their_subject(
    alice: Agent, bob: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", MEMBERS[name])
    alice.grant(target, Rule(bob.named, "Read"))
    acl, description = alice.acl_of(target), alice.head(target).target("describedby")
    assert alice.put(description, "<#a> <http://example.org/b> 'old'.").status in WRITTEN
    assert alice.delete(target).status == 204
    for auxiliary in (acl, description):
        assert alice.get(auxiliary).status == 404
    alice.create(target, "", MEMBERS[name])
    assert alice.get(acl).status == 404
    assert alice.read(description).triples == frozenset()
    assert bob.get(target).status == 403


def test_c_20_a_container_with_only_auxiliaries_is_empty(alice: Agent, container: str) -> None:
    alice.grant(container)
    assert alice.put(f"{container}.meta", "<> <http://example.org/b> 1.").status in WRITTEN
    assert alice.read(container).members == []
    assert alice.delete(container).status == 204


@pytest.mark.parametrize("name", MEMBERS)
def test_c_21_what_was_deleted_is_404_to_its_readers(
    alice: Agent, bob: Agent, container: str, name: str
) -> None:
    alice.grant(container, Rule(bob.named, "Read Write", default=True))
    target = alice.create(container + name, "", MEMBERS[name])
    assert bob.delete(target).status == 204
    for agent in (alice, bob):
        assert agent.get(target).status == 404
        assert agent.head(target).status == 404
        assert agent.delete(target).status == 404


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("modes", ["Write", "Append", "Read", "Append Write"])
def test_c_21_only_readers_learn_that_there_is_nothing_to_delete(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str, modes: str
) -> None:
    alice.grant(container, Rule(bob.named, modes, default=True))
    assert bob.delete(container + name).status == 403
    assert public.delete(container + name).status == 401
    assert alice.delete(container + name).status == 404


def test_c_21_agents_without_access_cannot_tell_what_was_deleted(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    target = alice.create(f"{container}x.txt", "x", TEXT)

    def seen_by_others() -> list[int]:
        return [
            agent.request(method, target).status
            for agent in (bob, public)
            for method in ("GET", "HEAD", "DELETE")
        ]

    while_there = seen_by_others()
    assert while_there == [403, 403, 403, 401, 401, 401]
    assert alice.delete(target).status == 204
    assert seen_by_others() == while_there


def test_c_22_the_owner_may_delete_a_profile_and_a_mere_writer_may_not(
    alice: Agent, bob: Agent, container: str
) -> None:
    profile = f"<#me> <{SOLID}oidcIssuer> <https://issuer.example/>; <{PIM}storage> <{alice.pod}>."
    target = alice.create(f"{container}card", profile)
    alice.grant(target, Rule(bob.named, "Read Write"))
    alice.grant(container, Rule(bob.named, "Read Write"))
    assert bob.delete(target).status == 403
    assert alice.get(target).text == profile
    assert alice.delete(target).status == 204
    assert alice.get(target).status == 404


def test_c_22_a_document_that_identifies_nobody_is_deleted_by_its_writers(
    alice: Agent, bob: Agent, container: str
) -> None:
    target = alice.create(f"{container}card", "<#me> <http://xmlns.com/foaf/0.1/name> 'A'.")
    alice.grant(target, Rule(bob.named, "Read Write"))
    alice.grant(container, Rule(bob.named, "Read Write"))
    assert bob.delete(target).status == 204
