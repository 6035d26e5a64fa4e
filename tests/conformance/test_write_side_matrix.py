"""Who may write and not read (M-2), and what an own ACL gives (M-3), as the public suite has it."""

from __future__ import annotations

import pytest

from tests.conformance.access import arrange, send, spelled, subject
from tests.conformance.agents import DELETED, WRITTEN, Agent, Rule
from tests.conformance.patches import expected as expected_triples
from tests.support.rdf import TURTLE

Statuses = set[int]

ROWS: list[tuple[str, str, str, Statuses]] = [
    # requests; targets; accesses; what who has it gets. Without it, the public gets 401.
    ("GET, HEAD", "plain rdf container", "no/WAC WAC/inherited", {403}),
    ("GET, HEAD", "fictive", "WAC/inherited", {403}),
    ("PUT turtle", "rdf", "no/W W/inherited", WRITTEN),
    ("PUT text", "plain", "no/W W/inherited", WRITTEN),
    ("PUT turtle, PUT text", "fictive", "W/inherited", {201}),
    ("POST text", "container", "no/W W/inherited no/A A/inherited", WRITTEN),
    ("PATCH n3", "rdf", "no/W W/inherited no/A A/inherited", WRITTEN),
    ("PATCH n3", "fictive", "W/inherited A/inherited", WRITTEN),
    ("PATCH n3", "rdf", "no/C C/inherited", {403}),
    ("PATCH n3", "fictive", "C/inherited", {403}),
    ("DELETE", "plain rdf container", "no/C no/A C/inherited A/inherited", {403}),
    ("DELETE", "fictive", "C/inherited A/inherited", {403}),
    ("DELETE", "plain rdf", "no/W", {403}),
    ("DELETE", "plain rdf", "W/inherited", DELETED),
    ("DELETE", "fictive", "W/inherited", {403}),
    ("DELETE", "container", "no/W W/inherited", {403}),
]

CASES = [
    pytest.param(
        feature, access, request_, target, expected,
        id=f"{feature} {access} {request_} {target}".replace(" ", "-").replace("/", "_"),
    )
    for requests, targets, accesses, expected in ROWS
    for feature in ("agent", "bob", "public")
    for request_ in requests.split(", ")
    for target in targets.split()
    for access in accesses.split()
]  # fmt: skip


@pytest.mark.parametrize(("feature", "access", "request_", "target", "expected"), CASES)
def test_m_2_who_may_write_and_not_read_gets(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    feature: str,
    access: str,
    request_: str,
    target: str,
    expected: Statuses,
) -> None:
    place = arrange(alice, container, target, access, subject(feature, bob))
    refused = {401} if feature == "public" else {403}
    agent = public if feature == "public" else bob
    if feature != "public":
        assert send(public, request_, place.target).status == 401
        assert place.is_unchanged()

    response = send(agent, request_, place.target)
    if expected == {403}:
        assert response.status in refused, response
        assert place.is_unchanged()
        return
    assert response.status in expected, response
    if expected is DELETED:
        assert alice.get(place.target).status == 404
    else:
        written = response.location if request_.startswith("POST") else place.target
        assert "Sent" in alice.get(written).text or "sent" in alice.get(written).text
        assert agent.get(place.target).status in refused


# --- M-3 ------------------------------------------------------------------------------------------

CHANGED = {200, 204, 205}
INSERT = "INSERT DATA { <#inserted> <http://example.org/p> 1 }"
REPLACE = "DELETE { ?s a ?o } INSERT { ?s <http://example.org/was> ?o } WHERE { ?s a ?o }"
TARGETS = {
    "container": ("own/", "", TURTLE),
    "rdf": ("own.ttl", "<#a> <#p> 1.", TURTLE),
    "plain": ("own.txt", "Hello", "text/plain"),
}

OWN_ROWS: list[tuple[str, str, Statuses | None, Statuses | None, Statuses | None]] = [
    # target; request; what Append, Read with Append, and Read with Write by its own ACL give
    ("container", "GET", {403}, {200}, {200}),
    ("container", "HEAD", {403}, {200}, {200}),
    ("container", "OPTIONS", None, {204}, {204}),
    ("container", "PUT", {403}, {403}, {200, 204}),
    ("container", "PATCH insert", WRITTEN, WRITTEN, CHANGED),
    ("container", "PATCH replace", {403}, {403}, CHANGED),
    ("container", "POST", WRITTEN, WRITTEN, WRITTEN),
    ("container", "DELETE", {403}, {403}, {403}),
    ("rdf", "GET", {403}, {200}, {200}),
    ("rdf", "HEAD", {403}, {200}, {200}),
    ("rdf", "OPTIONS", None, {204}, {204}),
    ("rdf", "PUT", {403}, {403}, WRITTEN),
    ("rdf", "PATCH insert", CHANGED, CHANGED, CHANGED),
    ("rdf", "PATCH replace", {403}, {403}, CHANGED),
    ("rdf", "POST", {400, 405, 415}, {400, 405, 415}, None),
    ("rdf", "DELETE", {403}, {403}, {403}),
    ("plain", "GET", {403}, {200}, {200}),
    ("plain", "HEAD", {403}, {200}, {200}),
    ("plain", "OPTIONS", None, {204}, {204}),
    ("plain", "PUT", {403}, {403}, WRITTEN),
    ("plain", "PATCH text", {400, 403, 405, 415}, {400, 403, 405, 415}, {415}),
    ("plain", "DELETE", {403}, {403}, {403}),
]
OWN_CASES = [
    pytest.param(
        target, modes, request_, expected, id=f"{target} {modes} {request_}".replace(" ", "-")
    )
    for target, request_, *all_expected in OWN_ROWS
    for modes, expected in zip(("A", "RA", "RW"), all_expected, strict=True)
    if expected is not None
]


@pytest.mark.parametrize(("target", "modes", "request_", "expected"), OWN_CASES)
def test_m_3_an_own_acl_without_rights_on_the_parent_gives(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    target: str,
    modes: str,
    request_: str,
    expected: Statuses,
) -> None:
    name, content, content_type = TARGETS[target]
    path = alice.create(container + name, content, content_type)
    alice.grant(container)
    alice.grant(path, Rule(bob.named, spelled(modes)))
    method, _, patch = request_.partition(" ")
    bodies = {
        "PUT": (content_type, "<#put> <#p> 2."),
        "POST": (TURTLE, "<#posted> <#p> 2"),  # as the suite sends it: without the last dot
        "insert": ("application/sparql-update", INSERT),
        "replace": ("application/sparql-update", REPLACE),
        "text": ("text/plain", "patched"),
    }
    headers: dict[str, str] = {}
    body = None
    if patch or method in bodies:
        headers["Content-Type"], body = bodies[patch or method]

    if method != "OPTIONS":
        assert public.request(method, path, body, headers).status in {401, 405, 415}
    response = bob.request(method, path, body, headers)
    assert response.status in expected, response

    if method == "PUT" and response.status in WRITTEN:
        assert "put" in alice.get(path).text
    if method == "POST" and response.status in WRITTEN:
        assert "posted" in alice.get(response.location).text
    if patch == "insert":
        new = expected_triples(alice, path, "<#inserted> ex:p 1 .")
        assert new <= alice.read(path).triples
    if response.status >= 400 and target != "container":
        assert alice.get(path).text == content
