"""Who may only read (M-1): each request on each target, as the public suite's matrix has it.

Three features give Read to all who are authenticated, to Bob, and to everyone. In the last one the
public reads as Bob does; and whoever asks, nothing may be changed by it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.access import Arranged, arrange, send, subject
from tests.conformance.agents import Agent

Statuses = set[int]
Arrange = Callable[[str, str, str], Arranged]

ROWS: list[tuple[str, str, Statuses, Statuses, Statuses]] = [
    # requests; targets; Bob; the public in the features of agents and of Bob; in the public one
    ("GET, HEAD", "plain rdf container", {200}, {401}, {200}),
    ("GET, HEAD", "fictive", {404}, {401}, {404}),
    ("PUT turtle", "rdf fictive container", {403}, {401}, {401}),
    ("PUT text", "plain fictive", {403}, {401}, {401}),
    ("POST turtle, POST text", "rdf plain container", {403}, {401}, {401}),
    ("POST turtle, POST text", "fictive", {403, 404}, {401}, {401, 404}),
    ("PATCH n3", "rdf fictive container", {403}, {401}, {401}),
    ("PATCH text", "plain fictive", {403, 405, 415}, {401, 405, 415}, {401, 405, 415}),
    ("DELETE", "plain rdf container", {403}, {401}, {401}),
    ("DELETE", "fictive", {403, 404}, {401}, {401, 404}),
]

CASES = [
    pytest.param(
        feature, access, request_, target, of_bob, public if feature == "public" else of_public,
        id=f"{feature} {access} {request_} {target}".replace(" ", "-").replace("/", "_"),
    )
    for requests, targets, of_bob, of_public, public in ROWS
    for feature in ("agent", "bob", "public")
    for request_ in requests.split(", ")
    for target in targets.split()
    for access in ("no/R", "R/inherited")
    if (target, access) != ("fictive", "no/R")
]  # fmt: skip


@pytest.fixture(scope="module")
def arranged(alice: Agent, bob: Agent) -> Arrange:
    """Set-ups, each made when it is first asked for: nothing that is asked here changes one."""
    known: dict[tuple[str, str, str], Arranged] = {}

    def arrange_once(feature: str, access: str, target: str) -> Arranged:
        key = (feature, access, target)
        if key not in known:
            container = alice.create(f"{alice.pod}r{len(known)}/")
            known[key] = arrange(alice, container, target, access, subject(feature, bob))
        return known[key]

    return arrange_once


@pytest.mark.parametrize(("feature", "access", "request_", "target", "of_bob", "of_public"), CASES)
def test_m_1_who_may_only_read_gets(
    arranged: Arrange,
    bob: Agent,
    public: Agent,
    feature: str,
    access: str,
    request_: str,
    target: str,
    of_bob: Statuses,
    of_public: Statuses,
) -> None:
    place = arranged(feature, access, target)
    for agent, expected in ((bob, of_bob), (public, of_public)):
        response = send(agent, request_, place.target)
        assert response.status in expected, response
        if response.status == 401:
            assert response.values("WWW-Authenticate"), response
        if request_ == "GET" and response.status == 200 and target != "container":
            assert response.body == place.before[1]
    assert place.is_unchanged()
