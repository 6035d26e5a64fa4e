"""What a refusal reveals, and what it does not (W-60 to W-64)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conformance.agents import N3_PATCH, SPARQL_UPDATE, Agent, Response, Rule
from tests.conformance.patches import n3
from tests.support.rdf import TURTLE

INSERT = n3(inserts="<#new> ex:p 1 .")
DELETE = n3(deletes="<#a> ex:p 9 .")

REQUESTS: dict[str, tuple[str, str | None, str]] = {
    "GET": ("GET", None, ""),
    "HEAD": ("HEAD", None, ""),
    "PUT": ("PUT", "<#put> <#p> 1 .", TURTLE),
    "PUT text": ("PUT", "x", "text/plain"),
    "POST": ("POST", "<#posted> <#p> 1 .", TURTLE),
    "PATCH n3": ("PATCH", INSERT, N3_PATCH),
    "PATCH delete": ("PATCH", DELETE, N3_PATCH),
    "PATCH sparql": ("PATCH", "INSERT DATA { <#a> <#p> 1 }", SPARQL_UPDATE),
    "PATCH nonsense": ("PATCH", "nonsense", N3_PATCH),
    "DELETE": ("DELETE", None, ""),
}
EXISTING = ["doc.ttl", "doc.txt", "inner/", "full/", "doc.ttl.acl", "doc.ttl.meta"]
MISSING = ["gone.ttl", "gone.txt", "gone/", "no/such/place", "gone.acl", "gone.meta"]


@pytest.fixture(scope="module")
def private(alice: Agent) -> str:
    """A container with a resource of each kind, to which nobody but Alice has access."""
    container = alice.create(f"{alice.pod}private/refusals/")
    alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    alice.create(f"{container}doc.txt", "x", "text/plain")
    alice.create(f"{container}inner/")
    alice.create(f"{container}full/member")
    alice.create(f"{container}doc.ttl.meta", "<#secret> <#p> 1 .")
    alice.grant(f"{container}doc.ttl")
    alice.grant(container)
    return container


def send(
    agent: Agent, request_: str, target: str, headers: dict[str, str] | None = None
) -> Response:
    method, body, content_type = REQUESTS[request_]
    fields = {"Content-Type": content_type} if content_type else {}
    return agent.request(method, target, body, {**fields, **(headers or {})})


@pytest.mark.parametrize("request_", REQUESTS)
def test_w_60_a_refusal_is_401_without_credentials_and_else_403(
    bob: Agent, public: Agent, private: str, request_: str
) -> None:
    for name in ["", *EXISTING, *MISSING]:
        anonymous = send(public, request_, private + name)
        assert anonymous.status == 401
        assert anonymous.values("WWW-Authenticate")
        assert send(bob, request_, private + name).status == 403


@pytest.mark.parametrize(
    ("request_", "name", "held", "headers"),
    [
        ("PUT", "inner/", "Read", {}),  # it exists, and C-13 would be 409
        ("PUT", "doc.ttl/", "Read", {}),  # its twin exists: 409
        ("PUT", "doc.txt/below", "Read", {}),  # below a document: 409
        ("PUT", "doc.ttl", "Read Append Control", {"If-None-Match": "*"}),
        ("PUT", "doc.ttl", "Read Append Control", {"If-Match": '"other"'}),
        ("PUT", "gone.ttl", "Read", {"If-Match": "*"}),
        ("POST", "doc.ttl", "Read Control", {}),  # no container: 405
        ("POST", "gone/", "Read Control", {}),
        ("PATCH delete", "doc.ttl", "Read Append", {}),  # what is deleted is not there: 409
        ("PATCH delete", "doc.ttl", "Write", {}),
        ("PATCH n3", "doc.txt", "Read Control", {}),  # no RDF: 409
        ("PATCH n3", "doc.ttl", "Read Control", {"If-None-Match": "*"}),
        ("PATCH nonsense", "doc.ttl", "Read Control", {}),
        ("DELETE", "full/", "Read Append Control", {}),  # not empty: 409
        ("DELETE", "doc.ttl", "Read Append Control", {"If-Match": '"other"'}),
        ("DELETE", "gone.ttl", "Read Append Control", {}),
        ("GET", "doc.ttl", "Write Append Control", {"If-Match": '"other"'}),
        ("GET", "gone.ttl", "Write Append Control", {}),
        ("GET", "inner", "Write Append Control", {}),  # its twin exists: 301
    ],
)
def test_w_61_existence_is_revealed_after_the_modes(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    request_: str,
    name: str,
    held: str,
    headers: dict[str, str],
) -> None:
    alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    alice.create(f"{container}doc.txt", "x", "text/plain")
    alice.create(f"{container}inner/")
    alice.create(f"{container}full/member")
    alice.grant(container, Rule(bob.named, held, default=True))
    response = send(bob, request_, container + name, headers)
    assert response.status == 403, response
    assert response.header("ETag") is None
    assert response.header("Location") is None
    assert send(public, request_, container + name, headers).status == 401


def test_w_61_with_the_modes_it_is_revealed(alice: Agent, bob: Agent, container: str) -> None:
    doc = alice.create(f"{container}doc.ttl", "<#a> <#p> 1 .")
    full = alice.create(f"{container}full/")
    alice.create(f"{full}member")
    alice.grant(container, Rule(bob.named, "Append", default=True))
    assert send(bob, "POST", doc).status == 405
    assert send(bob, "POST", f"{container}gone/").status == 404
    assert send(bob, "PATCH n3", doc, {"If-None-Match": "*"}).status == 412
    assert send(bob, "PATCH nonsense", doc).status == 400
    alice.grant(container, Rule(bob.named, "Read Write", default=True))
    assert send(bob, "PUT", f"{doc}/").status == 409
    assert send(bob, "PATCH delete", doc).status == 409
    assert send(bob, "DELETE", full).status == 409
    assert send(bob, "DELETE", f"{container}gone").status == 404
    assert send(bob, "DELETE", doc, {"If-Match": '"other"'}).status == 412


def test_w_61_the_type_of_the_body_may_be_reported_before(
    alice: Agent, bob: Agent, public: Agent, private: str
) -> None:
    for name in ("doc.ttl", "gone.ttl", "inner/"):
        for agent, refused in ((bob, 403), (public, 401), (alice, None)):
            for method in ("PUT", "POST", "PATCH"):
                without = agent.request(method, private + name, "x")
                assert without.status in {400, refused}
            unknown = agent.patch(private + name, "x", "application/json")
            assert unknown.status in {415, refused}


@pytest.mark.parametrize(
    "credential",
    ["Bearer ", "Bearer nonsense", "Bearer {token}x", "Bearer eyJhbGciOiJub25lIn0.e30."],
)
def test_w_62_an_invalid_token_is_401_even_where_everyone_may(
    alice: Agent, public: Agent, private: str, credential: str
) -> None:
    assert alice.token is not None
    headers = {"Authorization": credential.format(token=alice.token)}
    for target in (f"{private}doc.ttl", f"{private}gone", alice.pod, "/.well-known/solid"):
        response = public.get(target, headers=headers)
        assert response.status == 401, response
        challenges = response.values("WWW-Authenticate")
        assert any('error="invalid_token"' in challenge for challenge in challenges), challenges
    assert public.get(alice.pod).status == 200


@pytest.mark.parametrize("credential", ["Basic YTpi", "Digest x", "Negotiate x", "nonsense"])
def test_w_62_another_scheme_is_401(
    alice: Agent, public: Agent, private: str, credential: str
) -> None:
    for target in (f"{private}doc.ttl", alice.pod):
        response = public.get(target, headers={"Authorization": credential})
        assert response.status == 401
        assert response.values("WWW-Authenticate")


def test_w_62_an_altered_token_is_refused(alice: Agent, private: str) -> None:
    assert alice.token is not None
    for token in (alice.token[:-1], alice.token[1:], alice.token.swapcase(), f"{alice.token}."):
        assert replace(alice, token=token).get(f"{private}doc.ttl").status == 401


@pytest.mark.parametrize("request_", REQUESTS)
def test_w_63_nothing_is_hidden_behind_404(
    bob: Agent, public: Agent, private: str, request_: str
) -> None:
    for name in EXISTING:
        statuses = {send(agent, request_, private + name).status for agent in (bob, public)}
        assert statuses == {401, 403}


@pytest.mark.parametrize("request_", REQUESTS)
def test_w_64_a_refusal_is_the_same_whether_or_not_the_target_exists(
    alice: Agent, bob: Agent, public: Agent, container: str, request_: str
) -> None:
    alice.create(f"{container}other")
    for name in ("doc.ttl", "doc.txt", "inner/", "deep/er/doc", "other.meta", "other.acl"):
        path = container + name
        absent = [_whole(send(agent, request_, path)) for agent in (bob, public)]
        if name == "other.acl":
            alice.grant(f"{container}other")
        else:
            alice.create(path)
        present = [_whole(send(agent, request_, path)) for agent in (bob, public)]
        assert present == absent
        assert {answer[0] for answer in present} == {401, 403}


def _whole(response: Response) -> tuple[int, list[tuple[str, str]], bytes]:
    lines = [line for line in response.lines if line[0].lower() != "date"]
    return response.status, lines, response.body
