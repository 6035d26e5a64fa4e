"""Which clients describe themselves, and what of their documents is believed? (A-51)"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from podstead.idp.clients import (
    DOCUMENT_S,
    DOCUMENTS_OF_ONE_ORIGIN,
    DOCUMENTS_PER_ORIGIN,
    DOCUMENTS_PER_REQUESTER,
    NO_DOCUMENT_S,
)
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.oauth import basic
from tests.support.peer import Peer, Reply, answer, raw, redirect
from tests.support.provider_flows import CALLBACK, App, Provider
from tests.support.signing import Json, Signer, token_hash

CONTEXT = "https://www.w3.org/ns/solid/oidc-context.jsonld"
JSON_LD = "application/ld+json"
TURTLE = "text/turtle"


def document(url: str, **changes: object) -> Json:
    members = {
        "@context": CONTEXT,
        "client_id": url,
        "client_name": "Described",
        "redirect_uris": [CALLBACK],
        "scope": "openid webid offline_access",
        "grant_types": ["refresh_token", "authorization_code"],
        **changes,
    }
    return {name: value for name, value in members.items() if value is not None}


def serve(peer: Peer, path: str = "/app", **changes: object) -> str:
    """Let the peer serve a document of a client; its client id."""
    client_id = peer.url(path)
    content = json.dumps(document(client_id, **changes)).encode()
    peer.replies[path] = answer(body=content, content_type=JSON_LD)
    return client_id


async def ask(provider: Provider, client_id: str, *, peer: str = "127.0.0.1") -> Answer:
    """The answer to an authorization request of a client."""
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }
    return await provider.public.request("GET", f"/idp/auth?{urlencode(query)}", peer=peer)


async def is_known(provider: Provider, client_id: str) -> bool:
    answered = await ask(provider, client_id)
    assert answered.status in (303, 400), answered.text
    return answered.status == 303


async def test_a_document_on_another_server_describes_its_client(
    provider: Provider, peer: Peer
) -> None:
    """A-51"""
    assert await is_known(provider, serve(peer))
    (request,) = peer.requests
    assert request.headers["accept"] == (
        "application/ld+json, application/json;q=0.9, text/turtle;q=0.8"
    )
    assert {"cookie", "authorization"}.isdisjoint(request.headers)


UNUSABLE: dict[str, Json] = {
    "of another client": {"client_id": "https://app.example/other"},
    "of no client": {"client_id": None},
    "of another context": {"@context": "https://schema.org/"},
    "with other redirects": {"redirect_uris": ["https://other.example/"]},
    "without redirects": {"redirect_uris": None},
    "with a redirect that none may have": {"redirect_uris": [CALLBACK, "javascript:x"]},
    "with a redirect that is no text": {"redirect_uris": [{"@id": CALLBACK}]},
    "with an unknown algorithm": {"id_token_signed_response_alg": "none"},
}


@pytest.mark.parametrize("changes", UNUSABLE.values(), ids=UNUSABLE)
async def test_a_document_that_says_something_else_is_not_believed(
    provider: Provider, peer: Peer, changes: Json
) -> None:
    """A-51: and nobody is sent to what it names"""
    answered = await ask(provider, serve(peer, **changes))
    assert (answered.status, answered.header("location")) == (400, None)


USABLE: dict[str, Json] = {
    "several contexts": {"@context": [CONTEXT, {"x": "https://x.example/"}]},
    "no context": {"@context": None},
    "a method that takes a secret": {"token_endpoint_auth_method": "client_secret_basic"},
    "more than is known": {"contacts": ["x"], "logo_uri": "https://x.example/"},
}


@pytest.mark.parametrize("changes", USABLE.values(), ids=USABLE)
async def test_what_does_no_harm_is_passed_over(
    provider: Provider, peer: Peer, changes: Json
) -> None:
    assert await is_known(provider, serve(peer, **changes))


REPLIES: dict[str, Any] = {
    "not found": answer("404 Not Found", body=b"{}", content_type=JSON_LD),
    "no content": answer("204 No Content", body=b"", content_type=JSON_LD),
    "no JSON": answer(body=b"{", content_type=JSON_LD),
    "a list": answer(body=b"[]", content_type=JSON_LD),
    "a member twice": answer(body=b'{"client_id": 1, "client_id": 2}', content_type=JSON_LD),
    "too deep": answer(body=b'{"a":' * 50 + b"1" + b"}" * 50, content_type=JSON_LD),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
async def test_what_is_no_document_is_none(provider: Provider, peer: Peer, reply: Any) -> None:  # noqa: ANN401
    peer.replies["/app"] = reply
    assert not await is_known(provider, peer.url("/app"))


@pytest.mark.parametrize(
    "reply",
    [answer("500 Internal Server Error"), answer("429 Too Many Requests"), raw(b"")],
    ids=["a failure", "too many requests", "nothing"],
)
async def test_a_document_that_is_temporarily_unavailable_makes_no_client_unknown(
    provider: Provider, peer: Peer, reply: Reply
) -> None:
    """Nobody is told that the application does not exist, and it is asked for again soon."""
    peer.replies["/app"] = reply
    client_id = peer.url("/app")
    asked = []
    for _ in range(2):
        answered = await ask(provider, client_id)
        assert answered.status == 503
        assert 0 < int(answered.header("retry-after") or 0) <= NO_DOCUMENT_S
        assert answered.json()["error"] == "temporarily_unavailable"
        asked.append(len(peer.requests))
    assert asked[0] == asked[1]
    for path in ("", "/introspection", "/revocation"):
        form = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
        answered = await provider.public.post(
            f"/idp/token{path}",
            urlencode({**form, "client_id": client_id}),
            "application/x-www-form-urlencoded",
        )
        assert (answered.status, answered.json()["error"]) == (503, "temporarily_unavailable")
        assert int(answered.header("retry-after") or 0) > 0
    serve(peer)
    provider.clock.advance(NO_DOCUMENT_S)
    assert await is_known(provider, client_id)


async def test_a_dead_port_stops_no_client_at_another_port_of_the_host(
    provider: Provider, peer: Peer
) -> None:
    """A-191: nor at the same one for another purpose, see the unit tests."""
    for number in range(10):
        answered = await ask(provider, f"http://localhost:1/{number}")
        assert answered.status == 503
    assert await is_known(provider, serve(peer))


async def test_a_document_is_of_a_sensible_size(provider: Provider, peer: Peer) -> None:
    """A-51: 64 KiB"""
    assert await is_known(provider, serve(peer, "/good", x="y" * 60_000))
    assert not await is_known(provider, serve(peer, "/large", x="y" * 70_000))


# --- in RDF --------------------------------------------------------------------------------------

OIDC = "http://www.w3.org/ns/solid/oidc#"


def turtle(subject: str, *more: str, redirects: str = f"<{CALLBACK}>") -> str:
    said = (f"oidc:redirect_uris {redirects}", 'oidc:client_name "In Turtle"', *more)
    return f"@prefix oidc: <{OIDC}>.\n{subject} {'; '.join(said)}."


def serve_turtle(peer: Peer, content: str, content_type: str = TURTLE) -> str:
    """Let the peer serve this as a client's document; its client id."""
    peer.replies["/app"] = answer(body=content.encode(), content_type=content_type)
    return peer.url("/app")


GOOD_TURTLE = {
    "by an absolute IRI": lambda url: turtle(f"<{url}>"),
    "by a relative IRI": lambda _url: turtle("<>"),
    "with its redirect as text": lambda _url: turtle("<>", redirects=f'"{CALLBACK}"'),
    "with several redirects": lambda _url: turtle(
        "<>", redirects=f"<https://other.example/>, <{CALLBACK}>"
    ),
    "with all the rest": lambda _url: turtle(
        "<#app> a <#App>. <>",
        'oidc:grant_types "refresh_token", "authorization_code"',
        'oidc:response_types "code"',
        'oidc:scope "openid webid"',
        "oidc:require_auth_time true",
        "<http://purl.org/dc/terms/creator> [ <http://xmlns.com/foaf/0.1/name> 'x' ]",
    ),
}


@pytest.mark.parametrize("made", GOOD_TURTLE.values(), ids=GOOD_TURTLE)
async def test_a_document_in_turtle_describes_its_client(
    provider: Provider, peer: Peer, made: Callable[[str], str]
) -> None:
    """A-51, Solid-OIDC section 5.1"""
    client_id = peer.url("/app")
    assert await is_known(provider, serve_turtle(peer, made(client_id)))


BAD_TURTLE = {
    "nothing": "",
    "no Turtle": "{",
    "another client": turtle("<other>"),
    "a part of itself": turtle("<#it>"),
    "another redirect": turtle("<>", redirects="<https://other.example/>"),
    "another vocabulary": turtle("<>").replace(OIDC, "https://x.example/"),
    "a redirect that none may have": turtle("<>", redirects=f"<{CALLBACK}>, <javascript:x>"),
    "a redirect that is a thing": turtle("<>", redirects="[]"),
    "redirects without end": turtle(
        "<>", redirects=f"<{CALLBACK}>" + "".join(f", <{CALLBACK}&{n}>" for n in range(40))
    ),
    "two kinds": turtle("<>", 'oidc:application_type "web", "native"'),
}


@pytest.mark.parametrize("content", BAD_TURTLE.values(), ids=BAD_TURTLE)
async def test_turtle_that_says_something_else_is_not_believed(
    provider: Provider, peer: Peer, content: str
) -> None:
    """A-51"""
    assert not await is_known(provider, serve_turtle(peer, content))


async def test_turtle_that_is_not_utf_8_is_none(provider: Provider, peer: Peer) -> None:
    content = turtle("<>").encode("utf-16")
    peer.replies["/app"] = answer(body=content, content_type=TURTLE)
    assert not await is_known(provider, peer.url("/app"))


async def test_a_document_of_another_type_is_none(provider: Provider, peer: Peer) -> None:
    client_id = peer.url("/app")
    content = json.dumps(document(client_id)).encode()
    peer.replies["/app"] = answer(body=content, content_type="text/html")
    assert not await is_known(provider, client_id)


async def test_a_redirect_leads_nowhere_else(provider: Provider, peer: Peer) -> None:
    """A-51, A-189"""
    other = Peer()
    await other.start()
    try:
        client_id = peer.url("/app")
        content = json.dumps(document(client_id)).encode()
        for server in (peer, other):
            server.replies["/moved"] = answer(body=content, content_type=JSON_LD)
        peer.replies["/app"] = redirect(other.url("/moved"))
        assert not await is_known(provider, client_id)
        assert other.requests == []
    finally:
        await other.stop()


async def test_a_url_that_cannot_be_a_document_is_not_fetched(
    provider: Provider, peer: Peer
) -> None:
    serve(peer)
    for client_id in (
        f"{peer.url('/app')}#id",
        f"http://user@localhost:{peer.port}/app",
        f"ftp://localhost:{peer.port}/app",
        f"HTTP://localhost:{peer.port}/app",
        f"http://192.168.0.1:{peer.port}/app",
        f"{peer.url('/app')}?{'x' * 2048}",
        "https://",
        "http:///app",
    ):
        assert not await is_known(provider, client_id), client_id
    assert peer.connections == 0


async def test_a_document_is_believed_for_five_minutes(provider: Provider, peer: Peer) -> None:
    """A-51"""
    client_id = serve(peer)
    assert await is_known(provider, client_id)
    serve(peer, redirect_uris=["https://other.example/"])
    provider.clock.advance(DOCUMENT_S - 1)
    assert await is_known(provider, client_id)
    assert len(peer.requests) == 1
    provider.clock.advance(1)
    assert not await is_known(provider, client_id)


async def test_a_document_that_could_not_be_read_is_not_fetched_again_at_once(
    provider: Provider, peer: Peer
) -> None:
    """A-51: for half a minute"""
    client_id = peer.url("/app")
    for _ in range(3):
        assert not await is_known(provider, client_id)
    assert len(peer.requests) == 1
    serve(peer)
    provider.clock.advance(NO_DOCUMENT_S)
    assert await is_known(provider, client_id)


async def test_one_requester_cannot_cause_endless_requests_to_an_origin(
    provider: Provider, peer: Peer
) -> None:
    """A-191: anybody may name any document; spelling the origin in other ways helps nobody."""
    kinds = ("/{}", "?{}", "/?{}")
    names = [
        f"http://{host}:{peer.port}{kinds[number % 3].format(number)}"
        for number in range(DOCUMENTS_OF_ONE_ORIGIN)
        for host in ("localhost", "LOCALHOST")
    ]
    answers = [await ask(provider, name) for name in names]
    assert len(peer.requests) <= DOCUMENTS_OF_ONE_ORIGIN
    assert {each.status for each in answers} == {400, 503}
    assert answers[-1].json()["error"] == "temporarily_unavailable"
    assert int(answers[-1].header("retry-after") or 0) > 0
    provider.clock.advance(60)
    assert await is_known(provider, serve(peer))


async def test_one_requester_does_not_use_up_what_the_others_need(
    provider: Provider, peer: Peer
) -> None:
    """A-191: neither of the same origin nor of another."""
    for number in range(DOCUMENTS_OF_ONE_ORIGIN + 1):
        await ask(provider, peer.url(f"?{number}"))
    client_id = serve(peer)
    assert (await ask(provider, client_id)).status == 503
    answered = await ask(provider, client_id, peer="192.0.2.9")
    assert answered.status == 303


async def test_what_one_requester_asks_of_one_origin_leaves_other_origins_to_it(
    provider: Provider, peer: Peer
) -> None:
    for number in range(2 * DOCUMENTS_PER_REQUESTER):
        await ask(provider, f"http://localhost:1?{number}")
    assert await is_known(provider, serve(peer))


async def test_one_requester_has_no_end_of_documents_fetched_from_ever_new_origins(
    provider: Provider, peer: Peer
) -> None:
    for number in range(DOCUMENTS_PER_REQUESTER):
        await ask(provider, f"http://n{number}.localhost:1/")
    client_id = serve(peer)
    assert (await ask(provider, client_id)).status == 503
    assert (await ask(provider, client_id, peer="192.0.2.9")).status == 303


async def test_many_requesters_cannot_cause_endless_requests_to_one_origin(
    provider: Provider, peer: Peer
) -> None:
    for number in range(DOCUMENTS_PER_ORIGIN + 10):
        await ask(provider, peer.url(f"?{number}"), peer=f"192.0.2.{number}")
    assert len(peer.requests) <= DOCUMENTS_PER_ORIGIN + 1
    other = Peer()
    await other.start()
    assert (await ask(provider, serve(other), peer="192.0.2.1")).status == 303
    await other.stop()


# --- documents of this server --------------------------------------------------------------------


async def token_of(provider: Provider) -> str:
    """Alice's own token, by which she writes."""
    credential_id = await provider.add_credential("secret-1")
    form = {"grant_type": "client_credentials"}
    answered = await provider.token(form, headers=basic(credential_id, "secret-1"))
    return str(answered.json()["access_token"])


async def put_document(provider: Provider, path: str, content_type: str = JSON_LD) -> App:
    client_id = BASE + path
    content = document(client_id)
    headers = {"authorization": f"Bearer {await token_of(provider)}"}
    answered = await provider.public.put(path, json.dumps(content), content_type, **headers)
    assert answered.status == 201
    return App(content)


@pytest.mark.parametrize("content_type", [JSON_LD, "application/json"])
async def test_a_public_document_in_a_pod_describes_its_client(
    provider: Provider, content_type: str
) -> None:
    """A-51, A-190: read without asking ourselves over the network; ES256 unless it says
    otherwise"""
    app = await put_document(provider, "/alice/public/app", content_type)
    assert await is_known(provider, app.client_id)
    tokens = await provider.tokens(app)
    header, claims = await provider.verified(tokens["id_token"])
    assert (header["alg"], claims["aud"]) == ("ES256", [app.client_id, "solid"])
    assert (await provider.claims(tokens["access_token"]))["client_id"] == app.client_id
    thief = app.with_key(Signer.new())
    assert (await provider.refresh(thief, tokens["refresh_token"])).status == 400
    assert (await provider.refresh(app, tokens["refresh_token"])).status == 200
    assert await provider.get(tokens["access_token"], app.key) == 200


async def test_a_public_document_in_turtle_describes_its_client_too(provider: Provider) -> None:
    """A-51"""
    client_id = f"{BASE}/alice/public/app"
    headers = {"authorization": f"Bearer {await token_of(provider)}"}
    content = turtle("<>", 'oidc:grant_types "authorization_code", "refresh_token"')
    answered = await provider.public.put("/alice/public/app", content, TURTLE, **headers)
    assert answered.status == 201
    assert await is_known(provider, client_id)
    app = App(document(client_id))
    tokens = await provider.tokens(app)
    assert (await provider.claims(tokens["access_token"]))["client_id"] == client_id
    assert (await provider.refresh(app, tokens["refresh_token"])).status == 200


async def test_a_private_document_describes_nobody(provider: Provider) -> None:
    """A-51: it is read as anybody may"""
    app = await put_document(provider, "/alice/private/app")
    assert not await is_known(provider, app.client_id)
    for name in ("/alice/public/nothing", "/alice/public/", "/alice/", "/idp/auth", "", "//"):
        assert not await is_known(provider, BASE + name), name


async def test_challenges_of_described_clients_count_as_well(provider: Provider) -> None:
    app = await put_document(provider, "/alice/public/app")
    code = await provider.code(app)
    wrong = await provider.redeem(app, code, code_verifier=token_hash(app.verifier))
    assert wrong.status == 400
    assert (await provider.redeem(app, code)).status == 200
