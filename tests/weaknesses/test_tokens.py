"""Weaknesses of tokens and proofs: whose are they, and what are they good for?"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from tests.support.people import Account, Person
from tests.support.provider import App as StrangersApp
from tests.support.provider import Provider
from tests.support.provider_clients import (
    GARBAGE,
    App,
    StartServer,
    now_s,
    private,
    public,
    register,
    script_token,
)
from tests.support.server import Answer, ServerProcess, run_command
from tests.support.signing import (
    Change,
    Signer,
    base64url,
    decoded,
    encoded,
    proof_claims,
    set_to,
    signed_with_secret,
    token_hash,
    unsigned,
    without,
)


def test_w_3_a_token_of_a_provider_that_the_web_id_does_not_name_is_refused(
    alice: Person, stranger: Provider
) -> None:
    """A-109. The token is good in every other way: where the WebID names the provider, the
    same one counts."""
    assert _ask(alice.account, stranger.app(alice.account.web_id)).status == 401
    other = stranger.profile("/someone", stranger.issuer)
    assert _ask(alice.account, stranger.app(other)).status == 403


def test_w_6_a_token_bound_to_a_key_and_an_id_token_are_not_bearer_tokens(alice: Person) -> None:
    """A-76"""
    app = register(alice.account.provider)
    tokens = app.tokens(alice)
    path = private(alice.account)
    assert app.get(path, tokens["access_token"]).status == 200
    for token in (tokens["access_token"], tokens["id_token"]):
        assert _bearer(alice.account, token).status == 401
    unbound = app.tokens(alice, bound=False)
    assert _bearer(alice.account, unbound["access_token"]).status == 200
    assert _bearer(alice.account, unbound["id_token"]).status == 401


@pytest.mark.parametrize(
    "change", [without("cnf"), set_to("cnf", {}), set_to("aud", "elsewhere"), without("aud")]
)
def test_w_12_a_token_for_no_key_or_other_servers_is_refused(
    alice: Person, stranger: Provider, change: Change
) -> None:
    """A-106, A-107"""
    web_id = _trusting(stranger)
    assert _ask(alice.account, stranger.app(web_id)).status == 403  # known, and not let in
    assert _ask(alice.account, stranger.app(web_id, change)).status == 401


def test_w_12_a_proof_by_a_symmetric_key_is_refused(alice: Person, stranger: Provider) -> None:
    """A-101. The key stands in the proof, so whoever has seen one can make others."""
    secret = b"s" * 32
    jwk = {"k": base64url(secret), "kty": "oct"}
    thumbprint = token_hash(json.dumps(jwk, separators=(",", ":")))  # RFC 7638 section 3
    app = stranger.app(_trusting(stranger), set_to("cnf", {"jkt": thumbprint}))
    path = private(alice.account)
    claims = proof_claims("GET", alice.account.provider.base_url + path, now_s())
    proof = signed_with_secret(secret, {"typ": "dpop+jwt", "jwk": jwk}, claims)
    headers = {"Authorization": f"DPoP {app.token}", "DPoP": proof}
    assert alice.account.provider.get(path, headers).status == 401


def test_w_12_a_proof_is_valid_for_one_address_only(alice: Person) -> None:
    """A-102: no slash more or less, no other port or host, and one use."""
    app = register(alice.account.provider)
    token = app.tokens(alice)["access_token"]
    path = private(alice.account)
    base = alice.account.provider.base_url
    for url in (base + path[:-1], f"http://localhost{path}", f"http://evil.example{path}"):
        assert app.get(path, token, url=url).status == 401
    proof = app.proof(path, "GET")
    used = [
        alice.account.provider.get(path, {"Authorization": f"DPoP {token}", **proof}).status
        for _ in range(8)  # on connections of their own, so by both workers
    ]
    assert used == [200] + 7 * [401]


@pytest.mark.parametrize(
    "credentials",
    [f"Bearer {GARBAGE}", "Bearer a.b", f"DPoP {GARBAGE}", "Basic YTpi", GARBAGE, "Magic x"],
)
def test_w_13_requests_with_invalid_credentials_are_not_served_as_the_public(
    alice: Person, credentials: str
) -> None:
    """A-5"""
    path = public(alice.account)
    assert alice.account.provider.get(path).status == 200
    assert alice.account.provider.get(path, {"Authorization": credentials}).status == 401


def test_w_16_an_id_token_is_for_the_client_and_solid_and_bound(alice: Person) -> None:
    """A-71"""
    app = register(alice.account.provider)
    claims = decoded(app.tokens(alice)["id_token"].split(".")[1])
    assert sorted(claims["aud"]) == sorted([app.client_id, "solid"])
    assert claims["azp"] == app.client_id
    assert claims["cnf"] == {"jkt": app.key.thumbprint}


def test_w_20_client_credentials_act_as_the_person_who_created_them(alice: Person) -> None:
    """A-67"""
    identifier, secret = alice.make_credential()
    app = App(alice.account.provider, identifier, secret)
    answer = app.ask("/idp/token", {"grant_type": "client_credentials"})
    assert answer.status == 200, answer.text
    token = json.loads(answer.body)["access_token"]
    assert decoded(token.split(".")[1])["webid"] == alice.account.web_id
    assert _bearer(alice.account, token).status == 200


def test_w_20_a_client_that_registered_itself_is_not_an_agent(alice: Person) -> None:
    """A-67: only what a person made on their account page gets tokens by itself."""
    app = register(alice.account.provider, grant_types=["client_credentials"])
    answer = app.ask("/idp/token", {"grant_type": "client_credentials"})
    assert answer.status in {400, 401}
    assert "access_token" not in answer.text


def test_w_25_the_secret_of_tokens_is_strong_and_stays(start_server: StartServer) -> None:
    """A-32"""
    server = start_server()
    headers = {"Authorization": f"Bearer {_pod_token(server)}"}
    assert server.get("/alice/private/", headers).status == 200
    server.restart()
    assert server.get("/alice/private/", headers).status == 200
    server.stop()
    weak = run_command(
        "start", "--root", str(server.root), environment={"PODSTEAD_TOKEN_SECRET": "secret"}
    )
    assert weak.returncode != 0
    assert "PODSTEAD_TOKEN_SECRET is not valid" in weak.stderr


def test_w_25_a_token_is_revoked_at_once(start_server: StartServer) -> None:
    """A-33"""
    server = start_server()
    headers = {"Authorization": f"Bearer {_pod_token(server)}"}
    assert server.get("/alice/private/", headers).status == 200
    revoked = run_command("token", "revoke", "--pod", "alice", "--root", str(server.root))
    assert revoked.returncode == 0, revoked.stderr
    assert server.get("/alice/private/", headers).status == 401


def test_w_29_unsigned_tokens_and_those_of_other_keys_are_refused(alice: Person) -> None:
    token = script_token(alice.account)
    assert _bearer(alice.account, token).status == 200
    header, claims = (decoded(part) for part in token.split(".")[:2])
    signed, _, signature = token.rpartition(".")
    forged = [
        unsigned({**header, "alg": "none"}, claims),
        unsigned({**header, "alg": "none"}, claims).rpartition(".")[0] + ".",
        Signer.new("RS256").sign(header, claims),
        signed_with_secret(b"", {**header, "alg": "HS256"}, claims),
        f"{encoded(header)}.{encoded({**claims, 'webid': 'http://x.example/#me'})}.{signature}",
        f"{signed}.",
    ]
    assert {_bearer(alice.account, each).status for each in forged} == {401}


def _ask(account: Account, app: StrangersApp) -> Answer:
    """GET what only the account's owner may read, with a token of another provider."""
    path = private(account)
    return account.provider.get(path, app.fields("GET", account.provider.base_url + path))


def _bearer(account: Account, token: str) -> Answer:
    return account.provider.get(private(account), {"Authorization": f"Bearer {token}"})


def _trusting(stranger: Provider) -> str:
    """A WebID that names the provider."""
    return stranger.profile("/someone", stranger.issuer)


def _pod_token(server: ServerProcess) -> str:
    sent = json.dumps({"name": "alice"})
    answer = server.request("POST", "/.pods", sent, {"Content-Type": "application/json"})
    assert answer.status == 201, answer.text
    assert urlsplit(json.loads(answer.body)["podUri"]).path == "/alice/"
    return str(json.loads(answer.body)["token"])
