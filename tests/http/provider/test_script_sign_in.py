"""``/idp/credentials``: scripts get tokens for a password (A-80, A-81)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider_flows import FORM, Provider, StartProvider, assert_not_kept
from tests.support.signing import Signer, proof_claims

JSON = "application/json"
PATH = "/idp/credentials"
URL = f"{BASE}{PATH}"
PASSWORD = "password123"
EMAIL = "alice@example.com"


async def ask(
    provider: Provider,
    body: object,
    content_type: str | None = JSON,
    *,
    proofs: tuple[str, ...] = (),
    peer: str = "192.0.2.1",
) -> Answer:
    content = body if isinstance(body, str) else json.dumps(body)
    headers = [("DPoP", proof) for proof in proofs]
    if content_type is not None:
        headers.append(("Content-Type", content_type))
    return await provider.public.request(
        "POST", PATH, headers=headers, body=content.encode(), peer=peer
    )


async def token(provider: Provider, **changes: Any) -> str:  # noqa: ANN401
    answer = await ask(provider, {"email": EMAIL, "password": PASSWORD}, **changes)
    assert answer.status == 200, answer.text
    return str(answer.json()["access_token"])


def assert_refused(answer: Answer, error: str, status: int = 400) -> None:
    assert (answer.status, answer.json()["error"]) == (status, error), answer.text
    assert set(answer.json()) == {"error", "error_description"}
    assert_not_kept(answer)


# --- what is given -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ({"email": EMAIL, "password": PASSWORD}, JSON),
        ({"email": "ALICE@example.COM", "password": PASSWORD, "more": [1]}, JSON),
        ({"username": "alice", "password": PASSWORD}, "application/json; charset=utf-8"),
        ({"email": "alice", "password": PASSWORD}, JSON),
        ({"email": None, "username": EMAIL, "password": PASSWORD}, JSON),
        ("email=alice%40example.com&password=password123", FORM),
        ("username=Alice&password=password123&x=", f"{FORM}; charset=UTF-8"),
    ],
)
async def test_name_and_password_get_a_token_for_the_webid(
    provider: Provider, body: object, content_type: str
) -> None:
    """A-80, A-70: JSON or a form, by address or name."""
    answer = await ask(provider, body, content_type)
    assert answer.status == 200, answer.text
    web_id = provider.account.web_id
    given = answer.json()
    access_token = given.pop("access_token")
    assert given == {"token_type": "Bearer", "expires_in": 3600, "webid": web_id}
    assert_not_kept(answer)
    assert answer.header("pragma") == "no-cache"
    assert answer.header("set-cookie") is None
    header, claims = await provider.verified(access_token)
    assert (header["typ"], header["alg"]) == ("at+jwt", "RS256")
    assert claims.pop("jti")
    assert claims == {
        "iss": BASE,
        "sub": provider.account.account_id,
        "aud": "solid",
        "webid": web_id,
        "client_id": "credentials_client",
        "azp": "credentials_client",
        "scope": "openid webid",
        "iat": provider.clock.now_s(),
        "exp": provider.clock.now_s() + 3600,
    }
    assert await provider.get(access_token, None) == 200


async def test_a_proof_binds_the_token_to_its_key(provider: Provider) -> None:
    """A-80, A-76"""
    key = Signer.new()
    answer = await ask(
        provider,
        {"email": EMAIL, "password": PASSWORD},
        proofs=(provider.proof(key, url=URL),),
    )
    assert answer.json()["token_type"] == "DPoP"
    access_token = answer.json()["access_token"]
    claims = await provider.claims(access_token)
    assert claims["cnf"] == {"jkt": key.thumbprint}
    assert await provider.get(access_token, key) == 200
    assert await provider.get(access_token, Signer.new()) == 401
    assert await provider.get(access_token, None) == 401


async def test_a_token_expires_after_an_hour(provider: Provider) -> None:
    access_token = await token(provider)
    provider.clock.advance(3599)
    assert await provider.get(access_token, None) == 200
    provider.clock.advance(120)
    assert await provider.get(access_token, None) == 401


async def test_a_token_speaks_for_its_owner_alone(provider: Provider) -> None:
    body = {"name": "bob", "email": "b@example.org", "password": PASSWORD}
    assert (await provider.public.post("/.pods", json.dumps(body), JSON)).status == 201
    assert await provider.get(await token(provider), None, "/bob/private/") == 403


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"email": EMAIL, "password": "password124"},
        {"email": EMAIL, "password": "Password123"},
        {"email": "bob@example.com", "password": PASSWORD},
        {"username": "bob", "password": PASSWORD},
        {"username": "a" * 5000, "password": "a" * 5000},
    ],
)
async def test_without_the_password_nothing_is_revealed(provider: Provider, body: object) -> None:
    """A-80, A-182: the same answer, whether there is such an account or not."""
    answer = await ask(provider, body)
    assert_refused(answer, "invalid_grant", 401)
    assert answer.json()["error_description"] == "The name or the password is wrong"
    assert answer.header("www-authenticate") == f'Bearer realm="{BASE}"'


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("", JSON),
        ("{", JSON),
        ("[]", JSON),
        ('"x"', JSON),
        ("[" * 60_000, JSON),
        ('{"email": "\\ud800", "password": "x"}', JSON),
        ({}, JSON),
        ({"email": EMAIL}, JSON),
        ({"password": PASSWORD}, JSON),
        ({"email": EMAIL, "password": 12345}, JSON),
        ({"email": EMAIL, "password": [PASSWORD]}, JSON),
        ({"email": EMAIL, "password": ""}, JSON),
        ({"email": ["x"], "password": PASSWORD}, JSON),
        ({"email": EMAIL, "password": "a" * 70_000}, JSON),
        ("", FORM),
        ("email=alice%40example.com", FORM),
        ("email=a&email=b&password=password123", FORM),
        ("email=alice%40example.com&password=%FF", FORM),
    ],
)
async def test_what_is_no_such_request_is_said(
    provider: Provider, body: object, content_type: str
) -> None:
    """A-80: in fixed words (A-186)."""
    assert_refused(await ask(provider, body, content_type), "invalid_request")


@pytest.mark.parametrize("content_type", [None, "text/plain", "multipart/form-data"])
async def test_another_media_type_is_not_taken(
    provider: Provider, content_type: str | None
) -> None:
    answer = await ask(provider, {"email": EMAIL, "password": PASSWORD}, content_type)
    assert answer.status == 415


async def test_a_bad_proof_is_refused_before_anything_is_compared(provider: Provider) -> None:
    """A-80, A-63: each differs in one thing from a good one."""
    key = Signer.new()
    now_s = provider.clock.now_s()
    for claims in (
        proof_claims("GET", URL, now_s),
        proof_claims("POST", f"{BASE}/idp/token", now_s),
        proof_claims("POST", URL, now_s - 301),
        proof_claims("POST", URL, now_s + 121),
        {**proof_claims("POST", URL, now_s), "jti": ""},
    ):
        body = {"email": EMAIL, "password": "a wrong password"}
        assert_refused(await ask(provider, body, proofs=(key.proof(claims),)), "invalid_dpop_proof")
    good = [key.proof(proof_claims("POST", URL, now_s)) for _ in range(2)]
    assert_refused(
        await ask(provider, {"email": EMAIL, "password": PASSWORD}, proofs=(good[0], good[1])),
        "invalid_dpop_proof",
    )


async def test_a_proof_serves_once(provider: Provider) -> None:
    """A-104"""
    proof = provider.proof(Signer.new(), url=URL)
    await token(provider, proofs=(proof,))
    answer = await ask(provider, {"email": EMAIL, "password": PASSWORD}, proofs=(proof,))
    assert_refused(answer, "invalid_dpop_proof")


async def test_an_authorization_header_is_neither_required_nor_an_obstacle(
    provider: Provider,
) -> None:
    """A-80: the request has credentials of its own."""
    answer = await provider.public.request(
        "POST",
        PATH,
        headers={"Content-Type": JSON, "Authorization": "Bearer rubbish"},
        body=json.dumps({"email": EMAIL, "password": PASSWORD}).encode(),
    )
    assert answer.status == 200


# --- how often ---------------------------------------------------------------------------------


async def test_failures_are_limited_and_successes_are_not(start_provider: StartProvider) -> None:
    """A-181: with the settings that a server has by itself, from the first on."""
    provider = await start_provider()
    for _ in range(30):
        await token(provider)
    for _ in range(5):
        answer = await ask(provider, {"email": EMAIL, "password": "a wrong password"})
        assert answer.status == 401
    limited = await ask(provider, {"email": EMAIL, "password": PASSWORD})
    assert limited.status == 429
    seconds = int(limited.header("retry-after") or 0)
    assert seconds == 1
    assert limited.json() == {
        "error": "Too Many Requests",
        "message": "Rate limit exceeded. Try again in 1 second.",
        "retryAfter": seconds,
    }
    provider.clock.advance(seconds)
    await token(provider)


async def test_the_addresses_of_one_ipv6_network_share_their_limit(
    start_provider: StartProvider,
) -> None:
    """A-180"""
    provider = await start_provider(sign_in_failures_per_minute=10)
    statuses = [
        (
            await ask(
                provider,
                {"email": f"{index}@example.com", "password": "wrong"},
                peer=f"2001:db8:0:1::{index:x}",
            )
        ).status
        for index in range(11)
    ]
    assert statuses == [401] * 10 + [429]
    other = await ask(provider, {"email": EMAIL, "password": PASSWORD}, peer="2001:db8:0:2::1")
    assert other.status == 200


async def test_workers_share_the_limits(start_provider: StartProvider) -> None:
    """A-180"""
    clock = FakeClock()
    workers = [await start_provider(clock=clock), await start_provider(clock=clock)]
    wrong = {"email": EMAIL, "password": "a wrong password"}
    statuses = [(await ask(workers[index % 2], wrong)).status for index in range(6)]
    assert statuses == [401] * 5 + [429]
    for worker in workers:
        assert (await ask(worker, {"email": EMAIL, "password": PASSWORD})).status == 429


async def test_many_guesses_at_once_from_many_addresses_get_five_verdicts(
    provider: Provider,
) -> None:
    """A-181"""
    answers = await asyncio.gather(
        *(
            ask(provider, {"email": EMAIL, "password": f"guess {index}"}, peer=f"192.0.2.{index}")
            for index in range(30)
        )
    )
    assert sum(answer.status == 401 for answer in answers) <= 5
    assert {answer.status for answer in answers} <= {401, 429}


# --- what it says of itself --------------------------------------------------------------------


async def test_it_says_how_to_ask(provider: Provider) -> None:
    """A-81"""
    answer = await provider.public.get(PATH)
    assert answer.status == 200
    said = answer.json()
    assert (said["endpoint"], said["method"]) == (URL, "POST")
    assert said["content_types"] == [JSON, FORM]
    assert list(said["parameters"]) == ["email", "username", "password"]
    assert list(said["optional_headers"]) == ["DPoP"]
    given = (await ask(provider, {"email": EMAIL, "password": PASSWORD})).json()
    assert list(said["response"]) == list(given)
    head = await provider.public.head(PATH)
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == answer.header("content-length")


async def test_pages_of_any_origin_may_ask_without_cookies(provider: Provider) -> None:
    """A-46"""
    answer = await provider.public.request(
        "POST",
        PATH,
        headers={"Content-Type": JSON, "Origin": "https://app.example"},
        body=json.dumps({"email": EMAIL, "password": PASSWORD}).encode(),
    )
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("access-control-allow-credentials") is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_405(provider: Provider, method: str) -> None:
    """A-13"""
    answer = await provider.public.request(method, PATH)
    assert (answer.status, answer.header("allow")) == (405, "OPTIONS, GET, HEAD, POST")


async def test_without_the_provider_there_is_nothing(start_provider: StartProvider) -> None:
    """A-13"""
    provider = await start_provider(idp=False)
    assert (await provider.public.get(PATH)).status == 404
    answer = await ask(provider, {"email": EMAIL, "password": PASSWORD})
    assert answer.status == 404


async def test_nothing_secret_is_logged(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """A-183, A-184: what happened is, with the id of the account."""
    caplog.set_level("DEBUG")
    access_token = await token(provider)
    await ask(provider, {"email": EMAIL, "password": "a wrong password"})
    await ask(provider, {"email": "nobody@example.com", "password": "a wrong password"})
    records = [record for record in caplog.records if record.name == "podstead.audit"]
    account_id = provider.account.account_id
    assert [(each.getMessage(), vars(each).get("account")) for each in records] == [
        ("signed in", account_id),
        ("sign-in failed", account_id),
        ("sign-in failed", None),
    ]
    logged = " ".join(str(vars(record)) for record in caplog.records)
    for secret in (PASSWORD, "a wrong password", access_token, EMAIL, "nobody@example.com"):
        assert secret not in logged
    assert re.search(r"argon2", logged) is None
