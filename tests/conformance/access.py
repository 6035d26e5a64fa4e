"""Sets up the permission matrix on a running server, and finds out what requests change there."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.agents import WRITTEN, Agent, Response
from tests.support.permission_matrix import (
    AUTHENTICATED,
    PUBLIC,
    REQUESTS,
    TARGETS,
    TURTLE,
    UNGUARDED,
    Access,
    Case,
    access_rules,
    subject_of,
)

FEATURES = ("agent", "bob", "public")
"""Whom the rules of the specification tests name: all agents, Bob, everybody."""


def subject(feature: str, bob: Agent) -> str:
    """Whom a feature gives access to, as the subject of a rule."""
    return {"agent": AUTHENTICATED, "bob": bob.named, "public": PUBLIC}[feature]


@dataclass(frozen=True, slots=True)
class Arranged:
    """One target with an access to it."""

    alice: Agent
    target: str
    before: tuple[int, bytes]

    def is_unchanged(self) -> bool:
        return _state(self.alice, self.target) == self.before


def arrange(alice: Agent, container: str, target: str, access: Access, who: str) -> Arranged:
    """Create a target of the matrix in a container and give an access to it."""
    path, owned = container + TARGETS[target], container + subject_of(target)
    exists = Case("", "", target, access, 0).exists
    if exists or owned != path:
        _create(alice, owned, "text/plain" if owned.endswith(".txt") else TURTLE)
    if exists and path not in {owned, f"{owned}.acl"}:
        _create(alice, path)
    if access.own is not None:
        _put_acl(alice, owned, access_rules(alice.url(owned), alice.web_id, who, own=access.own))
    rules = access_rules(
        *(alice.url(container), alice.web_id, who), own=access.container, members=access.members
    )
    _put_acl(alice, container, rules)
    return Arranged(alice, path, _state(alice, path))


def send(agent: Agent, request: str, target: str) -> Response:
    """Send a request of the matrix."""
    method, content_type, body = REQUESTS[request]
    if target.endswith(".acl") and method == "PUT":
        body = access_rules(agent.url(target.removesuffix(".acl")), agent.web_id, PUBLIC, own="R")
    headers = {} if content_type is None else {"Content-Type": content_type}
    return agent.request(method, target, body, headers)


def check(alice: Agent, bob: Agent, public: Agent, container: str, case: Case, who: str) -> None:
    """Somebody with the access of a case gets its status, and what it says has happened.

    ``who`` is the feature by which the access is given: to Bob, to all agents or to everybody.
    """
    place = arrange(alice, container, case.target, case.access, subject(who, bob))
    if who != "public" and case.request not in UNGUARDED:
        answer = send(public, case.request, place.target)
        assert answer.status == 401, answer
        assert answer.values("WWW-Authenticate"), answer
        assert place.is_unchanged()

    response = send(public if who == "public" else bob, case.request, place.target)
    refused = 401 if who == "public" else 403
    assert response.status == (refused if case.status == 403 else case.status), response
    if case.target in {"deep", "deep/"}:
        assert alice.get(f"{container}a/").status == (404 if response.status >= 400 else 200)
    method = case.request.partition(" ")[0]
    if method in {"GET", "HEAD", "OPTIONS"} or response.status not in WRITTEN:
        assert place.is_unchanged()
        if (method, response.status, case.target) == ("GET", 200, "text"):
            assert response.body == place.before[1]
    elif method == "DELETE":
        assert alice.get(place.target).status == 404
    elif not place.target.endswith(".acl") and case.request != "PATCH replace":
        written = response.location if method == "POST" else place.target
        assert "sent" in alice.get(written).text


def _create(alice: Agent, path: str, content_type: str = TURTLE) -> None:
    alice.create(path, "" if path.endswith("/") else "<#a> <#p> 1.", content_type)


def _put_acl(alice: Agent, path: str, rules: str) -> None:
    response = alice.put(alice.acl_of(path), rules)
    assert response.status in WRITTEN, response


def _state(alice: Agent, target: str) -> tuple[int, bytes]:
    response = alice.get(target)
    return response.status, response.body
