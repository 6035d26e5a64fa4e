"""The permission matrix over a socket (M-1 to M-3, W-30 to W-45).

The read side (M-1), the write side (M-2) and own ACLs (M-3) are checked as the public suite does:
by rules for all who are authenticated, for Bob, and for everybody.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.access import FEATURES, Arranged, arrange, check, send, subject
from tests.conformance.agents import Agent
from tests.support.permission_matrix import UNGUARDED, Access, Case, cases_of

Arrange = Callable[[str, str, Access], Arranged]


def matrix(*requirements: str) -> pytest.MarkDecorator:
    """One test for each case of the requirements."""
    return pytest.mark.parametrize("case", cases_of(*requirements), ids=str)


# --- M-1 to M-3: the matrices of the public suite -------------------------------------------------


@pytest.fixture(scope="module")
def arranged(alice: Agent, bob: Agent) -> Arrange:
    """Set-ups, each created when it is first needed: readers change none of them."""
    known: dict[tuple[str, str, Access], Arranged] = {}

    def arrange_once(feature: str, target: str, access: Access) -> Arranged:
        key = (feature, target, access)
        if key not in known:
            container = alice.create(f"{alice.pod}r{len(known)}/")
            known[key] = arrange(alice, container, target, access, subject(feature, bob))
        return known[key]

    return arrange_once


@pytest.mark.parametrize("feature", FEATURES)
@matrix("M-1")
def test_m_1_access_with_read_only(
    arranged: Arrange, bob: Agent, public: Agent, case: Case, feature: str
) -> None:
    """Whoever sends the request, nothing is changed by it."""
    place = arranged(feature, case.target, case.access)
    of_bob = send(bob, case.request, place.target)
    assert of_bob.status == case.status, of_bob
    of_public = send(public, case.request, place.target)
    if case.request in UNGUARDED or (feature == "public" and case.passes):
        assert of_public.status == case.status, of_public
    else:
        assert of_public.status == 401, of_public
        assert of_public.values("WWW-Authenticate"), of_public
    for response in (of_bob, of_public):
        if case.request == "GET" and response.status == 200 and case.target != "container":
            assert response.body == place.before[1]
    assert place.is_unchanged()


@pytest.mark.parametrize("feature", FEATURES)
@matrix("M-2")
def test_m_2_access_with_write_but_not_read(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case, feature: str
) -> None:
    check(alice, bob, public, container, case, feature)


@matrix("M-3")
def test_m_3_an_own_acl_without_rights_on_the_parent_gives(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


# --- W-30 to W-45: which modes an operation takes, and where --------------------------------------


@matrix("W-30")
def test_w_30_reading_takes_read_on_the_target(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-32")
def test_w_32_post_takes_append_on_the_container_alone(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-33")
def test_w_33_put_of_what_exists_takes_write_on_it_alone(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-34")
def test_w_34_put_of_what_is_new_takes_append_there_and_write_on_it(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-35")
def test_w_35_patch_of_what_exists_takes_nothing_on_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-36")
def test_w_36_patch_of_what_is_new_takes_append_there_and_what_its_content_takes(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-37")
def test_w_37_containers_in_between_are_creations_too(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-38")
def test_w_38_delete_of_a_document_takes_write_on_it_and_its_container(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-39")
def test_w_39_delete_of_a_container_takes_read_besides(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-40")
def test_w_40_every_request_for_an_acl_takes_control(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-41")
def test_w_41_delete_of_what_is_missing_takes_the_same_and_read(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-42")
def test_w_42_a_description_takes_the_modes_of_its_subject(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")


@matrix("W-45")
def test_w_45_read_and_write_on_one_of_both_do_not_allow_deleting(
    alice: Agent, bob: Agent, public: Agent, container: str, case: Case
) -> None:
    check(alice, bob, public, container, case, "bob")
