"""Simple tokens and the Authorization header: what proves an identity, and how the rest is refused.

Tokens are forged here with the standard library and the server's own key, so each refusal stands
for one check alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from podstead.app.operator.administration import open_root
from podstead.config import Settings
from tests.support.application import BASE, Server, Start, running
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.features import LEFT_OUT
from tests.support.rdf import TURTLE
from tests.support.signing import base64url

PRIVATE = "/alice/private/"
PUBLIC = "/alice/public/"
CHALLENGE = f'Bearer realm="{BASE}", scope="openid webid"'
DPOP_CHALLENGE = (
    f'DPoP realm="{BASE}", scope="openid webid", '
    'algs="ES256 ES384 ES512 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA"'
)
NOSTR_CHALLENGES = () if "nostr" in LEFT_OUT else (f'Nostr realm="{BASE}"',)
JSON = "application/json"


def challenges(answer: Answer) -> list[str]:
    """One line for each scheme (A-7)."""
    return answer.header_lines("www-authenticate")


def refused_as(phrase: str) -> str:
    return f'{CHALLENGE}, error="invalid_token", error_description="{phrase}"'


def assert_invalid(answer: Answer, phrase: str = "Invalid token") -> None:
    """A-7, A-8, A-9."""
    assert answer.status == 401
    assert challenges(answer) == [DPOP_CHALLENGE, refused_as(phrase), *NOSTR_CHALLENGES]
    assert answer.header("content-type") == JSON
    assert answer.json() == {"error": "Unauthorized", "message": phrase}


def token_of(client: Client) -> str:
    return client.authorization.removeprefix("Bearer ")


# --- no credentials, and others' ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
async def test_private_resources_require_credentials(server: Server, method: str) -> None:
    """P-3, A-7: the challenge names no error, since none was made."""
    answer = await server.public.request(method, PRIVATE, headers={"Content-Type": TURTLE})
    assert answer.status == 401
    assert challenges(answer) == [DPOP_CHALLENGE, CHALLENGE, *NOSTR_CHALLENGES]
    assert answer.header("wac-allow") == 'user="",public=""'
    if method != "HEAD":
        assert answer.json() == {"error": "Unauthorized", "message": "Authentication required"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
async def test_the_token_of_another_pod_is_403_without_a_challenge(
    server: Server, method: str
) -> None:
    answer = await server.bob.request(method, PRIVATE, headers={"Content-Type": TURTLE})
    assert answer.status == 403
    assert answer.header("www-authenticate") is None
    if method != "HEAD":
        assert answer.json() == {"error": "Forbidden", "message": "Access denied"}


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "bEaReR   "])
async def test_the_name_of_the_scheme_has_no_case(server: Server, scheme: str) -> None:
    """A-3: and any number of spaces."""
    answer = await server.public.get(PRIVATE, authorization=scheme + token_of(server.alice))
    assert answer.status == 200


# --- the header --------------------------------------------------------------------------------

SCHEMES = {
    "Basic": "Basic YWxpY2U6c2VjcmV0",
    "Digest with its parameters": 'Digest username="alice", realm="x", nonce="y"',
    "an unknown scheme": "Magic {token}",
    "a token without a scheme": "{token}",
    "Bearer as a part": "XBearer {token}",
    "nothing": "",
    "blanks": "  ",
    "a colon": "Bearer: {token}",
}


@pytest.mark.parametrize("value", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("target", [PRIVATE, PUBLIC, "/", "/alice/private/missing"])
async def test_any_other_scheme_is_401_also_where_everybody_may_read(
    server: Server, value: str, target: str
) -> None:
    """A-2, A-3, A-5: the header decides alone, with any value."""
    authorization = value.format(token=token_of(server.alice))
    answer = await server.public.get(target, authorization=authorization)
    assert answer.status == 401
    # the error is told on the scheme that was used, and none of it is ours.
    assert challenges(answer) == [DPOP_CHALLENGE, CHALLENGE, *NOSTR_CHALLENGES]
    phrase = "Authentication scheme not accepted"
    assert answer.json() == {"error": "Unauthorized", "message": phrase}


@pytest.mark.parametrize(
    "values",
    [
        ["Bearer {token}", "Bearer {token}"],
        ["Bearer {token}", "Basic YTpi"],
        ["Bearer {token}", ""],
        ["Bearer {token}, Nostr e30="],
        ["DPoP {token}, Bearer {token}"],
        ["Bearer {token},Bearer {token}"],
    ],
)
async def test_two_credentials_are_400(server: Server, values: list[str]) -> None:
    """A-6."""
    token = token_of(server.alice)
    headers = [("Authorization", value.format(token=token)) for value in values]
    answer = await server.public.request("GET", PRIVATE, headers=headers)
    assert answer.status == 400
    assert answer.json()["error"] == "Bad Request"
    assert token not in answer.text


# --- the token ---------------------------------------------------------------------------------

Forge = Callable[[Mapping[str, object]], str]


@pytest.fixture
def key(settings: Settings) -> bytes:
    return (settings.root / "keys" / "token.key").read_bytes()


def signed(key: bytes, payload: str) -> str:
    return f"{payload}.{base64url(hmac.new(key, payload.encode(), hashlib.sha256).digest())}"


def claims_of(token: str) -> dict[str, object]:
    payload = token.partition(".")[0]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert isinstance(claims, dict)
    return claims


def issued(key: bytes, claims: Mapping[str, object]) -> str:
    return signed(key, base64url(json.dumps(claims).encode()))


async def test_a_token_is_what_other_servers_issue(server: Server, key: bytes) -> None:
    """A-30: and forged as below without a change, one that is let in."""
    claims = claims_of(token_of(server.alice))
    assert set(claims) == {"v", "jti", "webId", "iat", "exp"}
    assert claims["webId"] == server.alice_web_id
    assert isinstance(claims["exp"], int)
    assert isinstance(claims["iat"], int)
    assert claims["exp"] - claims["iat"] == 30 * 24 * 3600
    forged = issued(key, dict(reversed(claims.items())))
    assert (await server.public.get(PRIVATE, authorization=f"Bearer {forged}")).status == 200


CHANGED_CLAIMS: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
    "another version": lambda claims: {**claims, "v": 2},
    "no version": lambda claims: without(claims, "v"),
    "an unknown id": lambda claims: {**claims, "jti": "0" * 32},
    "no id": lambda claims: without(claims, "jti"),
    "another WebID": lambda claims: {**claims, "webId": f"{BASE}/bob/#me"},
    "a WebID of nobody": lambda claims: {**claims, "webId": f"{BASE}/carol/#me"},
    "no WebID": lambda claims: without(claims, "webId"),
    "a WebID that is no text": lambda claims: {**claims, "webId": 5},
    "no time of issue": lambda claims: without(claims, "iat"),
    "an expiry that is text": lambda claims: {**claims, "exp": str(claims["exp"])},
    "an expiry of null": lambda claims: {**claims, "exp": None},
    "a further claim": lambda claims: {**claims, "admin": True},
}


def without(claims: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in claims.items() if key != name}


@pytest.mark.parametrize("change", CHANGED_CLAIMS.values(), ids=CHANGED_CLAIMS)
async def test_a_well_signed_token_with_a_wrong_claim_is_refused(
    server: Server, key: bytes, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    """A-33."""
    forged = issued(key, change(claims_of(token_of(server.alice))))
    answer = await server.public.get(PRIVATE, authorization=f"Bearer {forged}")
    assert_invalid(answer)
    assert forged not in str(answer.headers)


async def test_an_expired_token_says_so(server: Server, key: bytes) -> None:
    """A-9."""
    for expiry in (1, 0, -1):
        claims = {**claims_of(token_of(server.alice)), "exp": expiry}
        answer = await server.public.get(PRIVATE, authorization=f"Bearer {issued(key, claims)}")
        assert_invalid(answer, "Access token expired")


UNSIGNED = base64url(b'{"alg":"none"}')
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def flipped(text: str, index: int) -> str:
    """The text with the lowest bit of one base64 digit turned over."""
    digit = ALPHABET[ALPHABET.index(text[index]) ^ 1]
    return text[:index] + digit + text[index + 1 :]


CHANGED_BYTES: dict[str, Callable[[str, bytes], str]] = {
    "first of the payload": lambda token, _: flipped(token, 0),
    "last of the payload": lambda token, _: flipped(token, token.index(".") - 1),
    "first of the signature": lambda token, _: flipped(token, token.index(".") + 1),
    "a bit that decoding drops": lambda token, _: flipped(token, len(token) - 1),
    "no signature": lambda token, _: token[: token.index(".") + 1],
    "a part of the signature": lambda token, _: token[:-1],
    "a longer signature": lambda token, _: f"{token}A",
    "padding": lambda token, _: f"{token}=",
    "only the signature": lambda token, _: token[token.index(".") :],
    "no dot": lambda token, _: token.replace(".", ""),
    "a third part": lambda token, _: f"{token}.{token[-43:]}",
    "a header part": lambda token, _: f"{UNSIGNED}.{token}",
    "an unsigned JWT": lambda token, _: f"{UNSIGNED}.{token.partition('.')[0]}.",
    "another key": lambda token, _: signed(b"k" * 32, token.partition(".")[0]),
    "an empty key": lambda token, _: signed(b"", token.partition(".")[0]),
    "no JSON": lambda _, key: signed(key, base64url(b"webId")),
    "no UTF-8": lambda _, key: signed(key, base64url(b'{"jti":"\xff"}')),
    "no object": lambda _, key: signed(key, base64url(b"[]")),
    "an endless list": lambda _, key: signed(key, base64url(b"[" * 1000)),
    "no base64": lambda _, key: signed(key, "A"),
    "nothing": lambda _, key: signed(key, ""),
    "too much": lambda token, key: signed(
        key, base64url(json.dumps(claims_of(token)).encode().ljust(4096))
    ),
    "characters that no token has": lambda token, _: f"{token[:-1]}%",
    "blanks": lambda token, _: f"{token[:9]} {token[9:]}",
}


@pytest.mark.parametrize("change", CHANGED_BYTES.values(), ids=CHANGED_BYTES)
async def test_a_token_with_other_bytes_is_refused(
    server: Server, key: bytes, change: Callable[[str, bytes], str]
) -> None:
    """A-33."""
    forged = change(token_of(server.alice), key)
    assert_invalid(await server.public.get(PRIVATE, authorization=f"Bearer {forged}"))


# --- where an invalid one is refused -----------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("target", [PUBLIC, "/alice/", "/alice/inbox/", "/", "/.pods", "/carol/"])
async def test_an_invalid_credential_is_401_also_where_none_is_needed(
    server: Server, method: str, target: str
) -> None:
    """A-5: for every method, and nothing is stored."""
    before = await server.alice.get("/alice/inbox/")
    answer = await server.public.request(
        method, target, body=b'{"name": "carol"}',
        headers={"Content-Type": JSON, "Authorization": "Bearer garbage"},
    )  # fmt: skip
    assert answer.status == 401
    assert challenges(answer) == [DPOP_CHALLENGE, refused_as("Invalid token"), *NOSTR_CHALLENGES]
    assert (await server.alice.get("/alice/inbox/")).body == before.body
    assert (await server.public.get("/carol/")).status == 401


async def test_options_takes_no_notice_of_credentials(server: Server) -> None:
    """A-1, P-13."""
    headers = {"Authorization": "Bearer garbage"}
    answer = await server.public.request("OPTIONS", PRIVATE, headers=headers)
    assert answer.status == 204


async def test_an_address_may_be_wrong_so_often_a_minute(start: Start) -> None:
    """A-181: right credentials and none at all count for nothing and go on working."""
    clock = FakeClock()
    server = await start(clock=clock, invalid_credentials_per_minute=3)

    async def guess(peer: str = "127.0.0.1") -> Answer:
        return await server.public.request(
            "GET", PUBLIC, headers={"Authorization": "Bearer garbage"}, peer=peer
        )

    for _ in range(5):
        assert (await server.public.get(PRIVATE)).status == 401
        assert (await server.bob.get(PRIVATE)).status == 403
    assert [(await guess()).status for _ in range(4)] == [401, 401, 401, 429]
    refused = await guess()
    seconds = int(refused.header("retry-after") or 0)
    assert refused.json() == {
        "error": "Too Many Requests",
        "message": f"Rate limit exceeded. Try again in {seconds} seconds.",
        "retryAfter": seconds,
    }
    assert seconds == 20
    assert (await server.alice.get(PRIVATE)).status == 200
    assert (await server.public.get(PUBLIC)).status == 200
    assert (await guess("192.0.2.7")).status == 401
    clock.advance(20)
    assert [(await guess()).status for _ in range(2)] == [401, 429]


# --- time --------------------------------------------------------------------------------------


async def test_a_token_ends_on_its_second(start: Start) -> None:
    """A-31: also where the same answer was given just before."""
    clock = FakeClock()
    server = await start(clock=clock, token_lifetime_s=60)
    clock.advance(59)
    for _ in range(2):
        assert (await server.alice.get(PRIVATE)).status == 200
    clock.advance(1)
    for _ in range(2):
        assert_invalid(await server.alice.get(PRIVATE), "Access token expired")
    assert (await server.public.get("/alice/")).status == 200


async def test_a_token_without_lifetime_does_not_end(start: Start) -> None:
    """A-31."""
    clock = FakeClock()
    server = await start(clock=clock, token_lifetime_s=0)
    assert "exp" not in claims_of(token_of(server.alice))
    clock.advance(100 * 365 * 24 * 3600)
    assert (await server.alice.get(PRIVATE)).status == 200


async def test_tokens_survive_a_restart(settings: Settings, start: Start) -> None:
    """A-32."""
    first = await start()
    async with running(settings) as application:
        assert (await first.alice.asking(application).get(PRIVATE)).status == 200


def rotate(keys: Path) -> None:
    """Replace the key as an operator would, and keep the one before it."""
    current = keys / "token.key"
    shutil.copy2(current, keys / "token.previous.key")
    current.write_bytes(secrets.token_bytes(32))


async def test_a_key_is_rotated_twice_before_its_tokens_end(
    settings: Settings, start: Start
) -> None:
    """A-32."""
    first = await start()
    found = []
    for _ in range(2):
        rotate(settings.root / "keys")
        async with running(settings) as application:
            found.append((await first.alice.asking(application).get(PRIVATE)).status)
            body = f'{{"name": "pod{len(found)}"}}'
            made = await first.public.asking(application).post("/.pods", body, JSON)
            owner = first.public.asking(application).with_token(made.json()["token"])
            assert (await owner.get(f"/pod{len(found)}/private/")).status == 200
    assert found == [200, 401]


async def test_a_revoked_token_is_refused_at_once_and_another_is_not(
    settings: Settings, server: Server
) -> None:
    """A-31, A-33: the operator does it beside the running server."""
    async with open_root(settings) as root:
        further = server.public.with_token((await root.tokens.create("alice")).token)
        for client in (server.alice, further):
            assert [(await client.get(PRIVATE)).status for _ in range(2)] == [200, 200]
        await root.tokens.revoke(str(claims_of(token_of(server.alice))["jti"]))
        assert_invalid(await server.alice.get(PRIVATE))
        assert (await further.get(PRIVATE)).status == 200
        assert await root.tokens.revoke_all("alice") == 1
        assert_invalid(await further.get(PRIVATE))
        assert (await server.bob.get("/bob/private/")).status == 200


async def test_tokens_of_another_server_are_worth_nothing(
    settings: Settings, start: Start, server: Server
) -> None:
    """A-32: each root has a key of its own."""
    other = await start(root=settings.root.with_name("other"))
    assert_invalid(await server.alice.asking(other.application).get(PRIVATE))


# --- secrets -----------------------------------------------------------------------------------


async def test_the_key_is_the_servers_alone_and_has_no_url(
    settings: Settings, server: Server, key: bytes
) -> None:
    """A-32, A-43."""
    folder = settings.root / "keys"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "token.key").stat().st_mode) == 0o600
    assert len(key) == 32
    for way in ("", "alice/", "alice/private/", "%2e%2e/", "alice/%2e%2e/", "alice/..%2f", ".//"):
        for name in ("keys/token.key", "keys/", "podstead.db"):
            for client in (server.public, server.alice):
                answer = await client.get(f"/{way}{name}")
                assert answer.status in (400, 401, 403, 404)
                assert key not in answer.body


async def test_no_credential_is_logged_or_echoed(
    settings: Settings, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A-183, A-186, P-17."""
    caplog.set_level(logging.DEBUG)
    await server.alice.put(f"{PRIVATE}large", b"x" * 100_000, "text/plain")
    for blob in (settings.root / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    secret = "c2VjcmV0LXNlY3JldA"
    asked = [
        await server.alice.get(f"{PRIVATE}large"),
        await server.public.get(PRIVATE, authorization=f"Bearer {secret}"),
        await server.public.get(PRIVATE, authorization=f"Basic {secret}"),
        await server.public.get(PRIVATE, authorization=f"Bearer {secret}, Basic {secret}"),
        await server.public.get(PRIVATE, cookie=secret),
    ]
    assert [answer.status for answer in asked] == [500, 401, 401, 400, 401]
    assert caplog.records
    told = caplog.text + "".join(f"{answer.headers}{answer.text}" for answer in asked)
    assert secret not in told
    assert token_of(server.alice) not in told
    assert token_of(server.alice).partition(".")[2] not in told
