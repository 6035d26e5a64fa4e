"""Tokens of this server's own provider, as its resources see them (A-76, A-109, W-6).

The provider is a stand-in that is told which keys and accounts count; that it is the one of
``idp`` is tested with that."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podstead.authn import credentials
from podstead.authn.authenticate import PodTokenVerifier
from podstead.authn.claims import TokenClaims
from podstead.authn.credentials import (
    InvalidToken,
    SigningKey,
    UnverifiedBearer,
    UnverifiedDpop,
    make_token,
    verify_token,
)
from podstead.authn.issuers import IssuerKeys
from podstead.authn.resource_tokens import AccessTokenVerifier, ProofVerifier, TokenRules
from podstead.authn.web_ids import LocalWebIds, LookupLimits, ProfileSources, WebIdIssuers
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.jose.tokens import InvalidJose, PublicKey, import_public_key
from podstead.outbound.foreign_documents import FetchedDocument
from podstead.storage.records import PodRecord, PodRemoval, TokenRecord, TokenRevocation
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import NOW_MS, commit, new_version, path, plant, put, write
from tests.support.clock import FakeClock
from tests.support.signing import Change, Json, Signer, proof_claims, set_to, without

BASE = "https://pod.example"
WEB_ID = f"{BASE}/alice/#me"
URL = f"{BASE}/alice/private/"


@dataclass
class Own:
    """The provider: a key, and what it thinks of tokens."""

    signer: Signer = field(default_factory=lambda: Signer.new("RS256"))
    refusal: str | None = None
    checked: int = 0

    @property
    def issuer(self) -> str:
        return BASE

    async def key(self, key_id: str | None) -> PublicKey | None:
        known = key_id == self.signer.thumbprint
        return import_public_key(self.signer.jwk) if known else None

    async def check(self, claims: TokenClaims) -> None:
        assert claims.web_id == WEB_ID
        self.checked += 1
        if self.refusal is not None:
            raise InvalidJose(self.refusal)

    def may_state_identity(self, claims: TokenClaims) -> bool:
        return "webid:write" in claims.scopes


class Nobody:
    """Whoever asks another server, or reads a document, has gone wrong."""

    async def fetch(self, url: str, purpose: object) -> FetchedDocument:
        raise AssertionError((url, purpose))

    async def parse(self, content: bytes, content_type: str, base_iri: str) -> Any:  # noqa: ANN401
        raise AssertionError((content, content_type, base_iri))

    async def read_metadata(self, paths: object) -> Any:  # noqa: ANN401
        raise AssertionError(paths)

    async def open_body(self, metadata: object) -> Any:  # noqa: ANN401
        raise AssertionError(metadata)


class Notes:
    """What is used once and how often, in memory."""

    def __init__(self) -> None:
        self._used: set[bytes] = set()

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        assert until_ms > now_ms
        new = key not in self._used
        self._used.add(key)
        return new

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        raise AssertionError((key, now_ms))

    async def wait_s(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        raise AssertionError((key, capacity, per_s, now_ms))

    async def take(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        raise AssertionError((key, capacity, per_s, now_ms))

    async def give_back(self, key: str, *, per_s: float) -> None:
        raise AssertionError((key, per_s))


class World:
    """The verifier with everything around it."""

    def __init__(self, *, rules: TokenRules | None = None) -> None:
        self.clock = FakeClock()
        self.own = Own()
        nobody, notes = Nobody(), Notes()
        lookups = LookupLimits(notes, self.clock)
        self.tokens = AccessTokenVerifier(
            issuers=IssuerKeys(nobody, lookups, self.clock),
            web_ids=WebIdIssuers(
                ProfileSources(LocalWebIds(BASE), nobody, nobody, nobody.parse, self.clock),
                lookups,
            ),
            own=self.own,
            proofs=ProofVerifier(
                used=notes, clock=self.clock, require_ath=False, refuse_replay=True
            ),
            rules=rules or TokenRules(),
            clock=self.clock,
        )

    @property
    def now_s(self) -> int:
        return self.clock.now_s()

    def token(self, *changes: Change, signer: Signer | None = None, **header: object) -> str:
        """An access token of ours, bound to no key."""
        claims: Json = {
            "iss": BASE,
            "sub": "account",
            "webid": WEB_ID,
            "aud": "solid",
            "client_id": "client",
            "iat": self.now_s,
            "exp": self.now_s + 3600,
            "jti": "g-grant.1",
        }
        for change in changes:
            change(claims)
        named = {"kid": self.own.signer.thumbprint, "typ": "at+jwt", **header}
        return (signer or self.own.signer).sign(named, claims)

    async def bearer(self, token: str) -> Identity:
        return await self.tokens.verify_bearer(UnverifiedBearer(token))

    async def dpop(self, token: str, key: Signer) -> Identity:
        proof = key.proof(proof_claims("GET", URL, self.now_s))
        return await self.tokens.verify_dpop(
            UnverifiedDpop(token, proof), method="GET", url=URL, client_address="192.0.2.1"
        )


def identity(method: AuthenticationMethod, world: World) -> Identity:
    return Identity(
        iri=WEB_ID,
        method=method,
        token_id="g-grant.1",
        expires_at_s=world.now_s + 3600,
        issuer=BASE,
        client_id="client",
    )


async def test_an_access_token_of_this_server_may_be_sent_as_bearer() -> None:
    """A-76: no other server is asked, and no document read (A-109)."""
    world = World()
    token = world.token()
    for checked in (1, 2):
        assert await world.bearer(token) == identity(AuthenticationMethod.OIDC_BEARER, world)
        assert world.own.checked == checked
    assert (await world.bearer(world.token(typ="application/at+jwt"))).iri == WEB_ID
    assert (await world.bearer(world.token(set_to("iss", f"{BASE}/")))).iri == WEB_ID


async def test_a_bound_token_of_this_server_comes_with_its_proof() -> None:
    """A-106, A-109."""
    world, key = World(), Signer.new("ES256")
    bound = set_to("cnf", {"jkt": key.thumbprint})
    token = world.token(bound)
    for _ in range(2):
        assert await world.dpop(token, key) == identity(AuthenticationMethod.DPOP, world)
    for typ in ("JWT", None):
        with pytest.raises(NotAuthenticated, match="not an access token"):
            await world.dpop(world.token(bound, typ=typ), key)
    with pytest.raises(NotAuthenticated, match="bound to another key"):
        await world.dpop(token, Signer.new("ES256"))
    with pytest.raises(NotAuthenticated, match="not bound to a key"):
        await world.dpop(world.token(), key)


BAD: dict[str, tuple[list[Change], Json, str]] = {
    "bound to a key": ([set_to("cnf", {"jkt": "a" * 43})], {}, "bound to a key: send it as DPoP"),
    "bound to something": ([set_to("cnf", {"x5t#S256": "a"})], {}, "not bound to a key"),
    "an ID token": ([set_to("aud", ["client", "solid"])], {"typ": "JWT"}, "This is an ID token"),
    "of no type": ([], {"typ": None}, "not an access token"),
    "of another type": ([], {"typ": "dpop+jwt"}, "not an access token"),
    "for others": ([set_to("aud", "client")], {}, "not meant for Solid"),
    "expired": ([set_to("exp", 1_700_000_000)], {}, "expired"),
    "of another issuer": ([set_to("iss", "https://idp.example")], {}, "Tokens of other servers"),
    "of a longer issuer": ([set_to("iss", f"{BASE}/alice")], {}, "Tokens of other servers"),
    "of no account's WebID": ([without("webid")], {}, "has no valid issuer or no valid WebID"),
    "of a key that is not ours": ([], {"kid": "other"}, "Invalid token"),
    "of no key": ([], {"kid": None}, "Invalid token"),
}


@pytest.mark.parametrize(("changes", "header", "phrase"), BAD.values(), ids=BAD)
async def test_tokens_that_are_not_access_tokens_of_this_server_are_not_bearer_tokens(
    changes: list[Change], header: Json, phrase: str
) -> None:
    """A-76, W-6."""
    world = World()
    token = world.token(*changes, **header)
    with pytest.raises(NotAuthenticated, match=phrase) as refused:
        await world.bearer(token)
    assert (refused.value.scheme, refused.value.error) == ("Bearer", "invalid_token")
    assert refused.value.invalid


async def test_a_token_that_we_did_not_sign_is_refused() -> None:
    world = World()
    for signer in (Signer.new("ES256"), Signer.new("RS256", rsa_bits=3072)):
        with pytest.raises(NotAuthenticated, match="Invalid token"):
            await world.bearer(world.token(signer=signer))
    assert world.own.checked == 0


async def test_the_decision_of_the_provider_applies_to_every_request() -> None:
    """A-76: a token that was verified is revoked at once."""
    world, key = World(), Signer.new("ES256")
    token, bound = world.token(), world.token(set_to("cnf", {"jkt": key.thumbprint}))
    await world.bearer(token)
    await world.dpop(bound, key)
    world.own.refusal = "The token is revoked"
    with pytest.raises(NotAuthenticated, match="revoked"):
        await world.bearer(token)
    with pytest.raises(NotAuthenticated, match="revoked"):
        await world.dpop(bound, key)


async def test_a_withdrawn_signing_key_invalidates_its_tokens() -> None:
    """A-44."""
    world = World()
    token = world.token()
    await world.bearer(token)
    world.own.signer = Signer.new("ES256")
    with pytest.raises(NotAuthenticated, match="Invalid token"):
        await world.bearer(token)


async def test_our_own_provider_is_accepted_beside_any_list() -> None:
    """A-112; and may be refused."""
    world = World(rules=TokenRules(allowed_issuers=frozenset({"https://idp.example"})))
    assert (await world.bearer(world.token())).iri == WEB_ID
    world = World(rules=TokenRules(denied_issuers=frozenset({BASE})))
    with pytest.raises(NotAuthenticated, match="issuer is not accepted"):
        await world.bearer(world.token())


async def test_only_tokens_of_usual_length_are_kept() -> None:
    """Long ones are verified each time, so that they fill no memory."""
    world = World()
    for size, kept in ((100, 1), (5000, 0)):
        world = World()
        token = world.token(set_to("scope", "x" * size))
        for _ in range(2):
            assert (await world.bearer(token)).iri == WEB_ID
        assert len(world.tokens._verified._entries) == kept


# --- pod token ---------------------------------------------------------------------------------
#
# Signed tokens: a known answer made without our code, and the order in which one is judged.


POD_TOKEN_KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
POD_WEB_ID = "http://localhost:3000/alice/#me"
NOW_S = 1_800_000_000
KNOWN = (
    "eyJ2IjoxLCJqdGkiOiIwMCIsIndlYklkIjoiaHR0cDovL2xvY2FsaG9zdDozMDAwL2FsaWNlLyNtZSIsImlhdCI6MTgwMDAw"
    "MDAwMCwiZXhwIjoxODAwMDAwMDYwfQ"
)
"""``printf '{"v":1,…}' | base64`` in the URL alphabet, without padding."""


def made(key: SigningKey = POD_TOKEN_KEY, expires_s: int | None = NOW_S + 60) -> str:
    return make_token(key, token_id="00", web_id=POD_WEB_ID, issued_s=NOW_S, expires_s=expires_s)


def test_a_token_is_the_base64_of_its_claims_and_their_hmac() -> None:
    """A-30: by the standard library alone."""
    digest = hmac.new(b"k" * 32, KNOWN.encode(), hashlib.sha256).digest()
    signature = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert made() == f"{KNOWN}.{signature}"
    claims = json.loads(base64.urlsafe_b64decode(KNOWN + "=="))
    assert claims == {"v": 1, "jti": "00", "webId": POD_WEB_ID, "iat": NOW_S, "exp": NOW_S + 60}


def test_a_verified_token_says_what_was_signed() -> None:
    verified = verify_token(made(), keys=[POD_TOKEN_KEY], now_s=NOW_S)
    assert (verified.token_id, verified.web_id) == ("00", POD_WEB_ID)
    assert (verified.issued_s, verified.expires_s) == (NOW_S, NOW_S + 60)
    assert verify_token(made(expires_s=None), keys=[POD_TOKEN_KEY], now_s=2**40).expires_s is None


@pytest.mark.parametrize(("now_s", "valid"), [(NOW_S + 59, True), (NOW_S + 60, False)])
def test_a_token_ends_on_its_second(now_s: int, valid: bool) -> None:
    """A-33."""
    if valid:
        assert verify_token(made(), keys=[POD_TOKEN_KEY], now_s=now_s).token_id == "00"
    else:
        with pytest.raises(InvalidToken, match="Access token expired"):
            verify_token(made(), keys=[POD_TOKEN_KEY], now_s=now_s)


def test_the_previous_key_is_valid_and_no_other() -> None:
    """A-32."""
    assert verify_token(made(OTHER), keys=[POD_TOKEN_KEY, OTHER], now_s=NOW_S).token_id == "00"
    for keys in ([POD_TOKEN_KEY], []):
        with pytest.raises(InvalidToken, match="Invalid token"):
            verify_token(made(OTHER), keys=keys, now_s=NOW_S)


def test_what_is_not_signed_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A-33: the signature comes before the JSON, and an expiry is told to its holder only."""

    class Refusing:
        def decode(self, _: bytes) -> None:
            raise AssertionError("parsed")

    monkeypatch.setattr(credentials, "_decoder", Refusing())
    for token in (made(OTHER), made()[:-1] + "A", made(OTHER, expires_s=1)):
        with pytest.raises(InvalidToken, match="Invalid token"):
            verify_token(token, keys=[POD_TOKEN_KEY], now_s=NOW_S)
    with pytest.raises(AssertionError, match="parsed"):
        verify_token(made(), keys=[POD_TOKEN_KEY], now_s=NOW_S)


@pytest.mark.parametrize("token", ["", ".", "a", "a.b", "..", "é.é", "x" * 5000, f"a.{'b' * 43}.c"])
def test_anything_else_is_invalid(token: str) -> None:
    with pytest.raises(InvalidToken, match="Invalid token"):
        verify_token(token, keys=[POD_TOKEN_KEY], now_s=NOW_S)


# --- recalled tokens ---------------------------------------------------------------------------
#
# An identity that is recalled by its Authorization field is the one that would be found again.
# Two workers share a data root, and whatever makes a token invalid may happen at the other one.


RECALLED_KEY = SigningKey(b"k" * 32)
ALICE = "http://localhost:3000/alice/#me"
ISSUED_S = FakeClock().now_s()
EXPIRES_S = ISSUED_S + 60


class Worker:
    """One that knows the tokens of a data root."""

    def __init__(self, root: Path) -> None:
        self.store = SqliteStore(root)
        self.clock = FakeClock()
        self.tokens = PodTokenVerifier(
            keys=[RECALLED_KEY], registries=self.store, clock=self.clock, enabled=True
        )

    async def verify(self, token: str) -> Identity:
        return await self.tokens.verify(token, authorization_field(token))

    def recall(self, token: str) -> Identity | None:
        return self.tokens.recall(authorization_field(token))


def authorization_field(token: str) -> bytes:
    return f"Bearer {token}".encode()


def token(token_id: str, expires_s: int | None = EXPIRES_S) -> str:
    return make_token(
        RECALLED_KEY, token_id=token_id, web_id=ALICE, issued_s=ISSUED_S, expires_s=expires_s
    )


TOKEN = token("one")


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[list[Worker]]:
    prepare_root(tmp_path)
    both = [Worker(tmp_path) for _ in range(2)]
    for worker in both:
        await worker.store.open()
    store = both[0].store
    await plant(store)
    await commit(
        store,
        write(
            records=[
                PodRecord("alice", path("/alice/"), ALICE, NOW_MS),
                TokenRecord("one", "alice", ALICE, ISSUED_S, EXPIRES_S),
                TokenRecord("two", "alice", ALICE, ISSUED_S, None),
            ]
        ),
    )
    yield both
    for worker in both:
        await worker.store.close()


async def test_what_was_verified_is_recalled(workers: list[Worker]) -> None:
    """Also after documents have been written: or a busy server would verify each token anew."""
    worker = workers[0]
    assert worker.recall(TOKEN) is None
    identity = await worker.verify(TOKEN)
    assert identity.iri == ALICE
    assert worker.recall(TOKEN) is identity
    await commit(worker.store, write(put("/alice/c/a")))
    assert worker.recall(TOKEN) is identity


async def test_only_the_same_field_is_recalled(workers: list[Worker]) -> None:
    worker = workers[0]
    identities = [await worker.verify(each) for each in (TOKEN, token("two", None))]
    assert [worker.recall(each) for each in (TOKEN, token("two", None))] == identities
    assert worker.recall(TOKEN[:-1]) is None
    assert worker.recall(TOKEN + "x") is None


@pytest.mark.parametrize("other", [0, 1])
async def test_a_revoked_token_is_not_recalled_by_any_worker(
    workers: list[Worker], other: int
) -> None:
    """From the next request on (A-33)."""
    for worker in workers:
        await worker.verify(TOKEN)
    await commit(workers[other].store, write(records=[TokenRevocation("one", ISSUED_S)]))
    for worker in workers:
        assert worker.recall(TOKEN) is None
        with pytest.raises(NotAuthenticated):
            await worker.verify(TOKEN)
        assert worker.recall(TOKEN) is None


@pytest.mark.parametrize("other", [0, 1])
async def test_a_token_of_a_pod_that_is_removed_is_not_recalled(
    workers: list[Worker], other: int
) -> None:
    for worker in workers:
        await worker.verify(TOKEN)
    await workers[other].store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    for worker in workers:
        assert worker.recall(TOKEN) is None
        with pytest.raises(NotAuthenticated):
            await worker.verify(TOKEN)


async def test_a_token_that_is_revoked_while_it_is_verified_is_not_recalled(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is revoked after it was read; that request may go on, and no later one."""
    worker, other = workers
    read_pod = worker.store.read_pod

    async def revoke_and_read(name: str) -> PodRecord | None:
        await commit(other.store, write(records=[TokenRevocation("one", ISSUED_S)]))
        return await read_pod(name)

    monkeypatch.setattr(worker.store, "read_pod", revoke_and_read)
    await worker.verify(TOKEN)
    assert worker.recall(TOKEN) is None


async def test_an_expired_token_is_not_recalled(workers: list[Worker]) -> None:
    worker = workers[0]
    await worker.verify(TOKEN)
    typed = await worker.tokens.verify_typed(TOKEN)
    worker.clock.advance(59.999)
    assert worker.recall(TOKEN) is not None
    assert await worker.tokens.is_still_valid(typed)
    worker.clock.advance(0.001)
    assert worker.recall(TOKEN) is None
    assert not await worker.tokens.is_still_valid(typed)
    with pytest.raises(NotAuthenticated):
        await worker.verify(TOKEN)
