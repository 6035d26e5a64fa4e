"""Tokens of any provider, bound to a key, open what their WebID may open (section 4, T-51 to T-62).

A stub provider on this machine signs tokens; Alice's pod names it in her WebID document. Every
refusal changes one thing in a request that is good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.http.conftest import BASE, Server, Start, acl_turtle
from tests.http.rdf import TURTLE
from tests.support.asgi import Answer
from tests.support.provider import CONFIGURATION, KEYS, App, Page, Provider, running_provider
from tests.support.signing import (
    Change,
    Json,
    Signer,
    base64url,
    set_to,
    signed_with_secret,
    token_hash,
    unsigned,
    with_other_signature,
    without,
)
from tests.unit.outbound.peer import MovedClock

DOC = "/alice/private/doc"
URL = f"{BASE}{DOC}"
ISSUER_TERM = "http://www.w3.org/ns/solid/terms#oidcIssuer"
UNVERIFIABLE = "The token's issuer could not be verified"
NOT_NAMED = "The WebID does not name the token's issuer"
NO_DOCUMENT = "The WebID's document could not be read"
NOT_NOW = "Access token expired or not valid yet"
NOT_FOR_US = "The token is not meant for Solid resource servers"
NO_ADDRESS = "The token lacks an issuer or a WebID that can be used"


@dataclass(frozen=True)
class World:
    """A server, its clock, and a provider that Alice trusts."""

    server: Server
    clock: MovedClock
    provider: Provider

    @property
    def now_s(self) -> int:
        return self.clock.now_ms() // 1000

    def app(self, *changes: Change, web_id: str | None = None, **more: Any) -> App:  # noqa: ANN401
        """An application of Alice's."""
        return self.provider.app(
            web_id or self.server.alice_web_id, *changes, now_s=self.now_s, **more
        )

    async def send(
        self, fields: dict[str, str] | list[tuple[str, str]], method: str = "GET", target: str = DOC
    ) -> Answer:
        return await self.server.public.request(method, target, headers=fields)

    async def get(self, app: App, *changes: Change, **more: Any) -> Answer:  # noqa: ANN401
        """A GET of Alice's private document with a fresh proof."""
        return await self.send(app.fields("GET", URL, *changes, **more))

    async def name_issuer(self, *issuers: str) -> None:
        """Let Alice's WebID document name these issuers and no other."""
        named = "".join(f"<#me> <{ISSUER_TERM}> <{each}>.\n" for each in issuers) or "<> a <#x>."
        answer = await self.server.alice.put("/alice/", named, TURTLE)
        assert answer.status == 204, answer.text

    async def let_in(self, web_id: str) -> None:
        """Let another WebID read the document."""
        rules = acl_turtle(DOC, (f"acl:agent <{web_id}>", "Read"))
        assert (await self.server.alice.put(f"{DOC}.acl", rules, TURTLE)).status in {201, 204}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def world(start: Start, clock: MovedClock, provider: Provider) -> World:
    return await prepared(start, clock, provider)


async def prepared(start: Start, clock: MovedClock, provider: Provider, **settings: Any) -> World:  # noqa: ANN401
    settings = {"invalid_credentials_per_minute": 0, **settings}
    world = World(await start(clock=clock, **settings), clock, provider)
    await world.name_issuer(provider.issuer)
    assert (await world.server.alice.put(DOC, "text", "text/plain")).status == 201
    return world


def assert_refused(answer: Answer, phrase: str, error: str = "invalid_token") -> None:
    """A 401 that says what is wrong, on the scheme that was used (A-7 to A-9)."""
    assert (answer.status, answer.json()) == (401, {"error": "Unauthorized", "message": phrase})
    dpop, bearer = answer.header_lines("www-authenticate")
    assert dpop.startswith("DPoP ")
    assert f'error="{error}", error_description="{phrase}"' in dpop
    assert bearer.startswith("Bearer ")
    assert "error=" not in bearer


# --- what opens the document -------------------------------------------------------------------


async def test_a_token_of_a_provider_that_the_webid_names_opens_the_document(world: World) -> None:
    """T-51, A-109."""
    answer = await world.get(world.app())
    assert (answer.status, answer.text) == (200, "text")
    assert answer.header("cache-control") == "private, no-cache"
    assert (await world.server.public.get(DOC)).status == 401


async def test_the_identity_is_the_webid_and_nothing_more(world: World) -> None:
    """T-5: another's token gives 403, without a challenge."""
    bob = world.provider.profile("/bob", world.provider.issuer)
    answer = await world.get(world.app(web_id=bob))
    assert (answer.status, answer.header_lines("www-authenticate")) == (403, [])
    await world.let_in(bob)
    assert (await world.get(world.app(web_id=bob))).status == 200


async def test_every_method_takes_a_proof(world: World) -> None:
    app = world.app()
    written = {**app.fields("PUT", f"{BASE}/alice/private/new"), "Content-Type": "text/plain"}
    answer = await world.server.public.request(
        "PUT", "/alice/private/new", headers=written, body=b"new"
    )
    assert answer.status == 201
    answer = await world.send(app.fields("DELETE", URL), "DELETE")
    assert answer.status == 204


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES384", "EdDSA"])
async def test_other_algorithms_of_proof_and_token_are_accepted(
    world: World, algorithm: str
) -> None:
    """T-62: an RS256 proof with further members in its key, as a test harness sends it."""
    world.provider.keys.append(Signer.new(algorithm))
    key = Signer.new(algorithm)
    app = world.app(key=key)
    jwk = {**key.jwk, "alg": algorithm, "kid": "7", "use": "sig", "key_ops": ["verify"]}
    assert (await world.get(app, jwk=jwk)).status == 200


async def test_a_proof_may_name_the_url_with_its_query(world: World) -> None:
    """T-57."""
    fields = world.app().fields("GET", f"{URL}?a=b")
    assert (await world.send(fields, target=f"{DOC}?a=b")).status == 200


async def test_a_proof_may_name_the_token(world: World) -> None:
    """T-57, A-105."""
    app = world.app()
    assert (await world.get(app, set_to("ath", token_hash(app.token)))).status == 200
    assert_refused(
        await world.get(app, set_to("ath", token_hash("other"))),
        "DPoP proof is for another access token",
        "invalid_dpop_proof",
    )


async def test_that_a_proof_names_the_token_may_be_asked_for(
    start: Start, clock: MovedClock, provider: Provider
) -> None:
    """A-105."""
    world = await prepared(start, clock, provider, require_ath=True)
    app = world.app()
    assert (await world.get(app, set_to("ath", token_hash(app.token)))).status == 200
    assert (await world.get(app)).status == 401


async def test_an_id_token_is_a_credential_too(world: World) -> None:
    """T-61, A-74."""
    app = world.app(set_to("aud", ["https://app.example/id", "solid"]), typ="JWT")
    assert (await world.get(app)).status == 200


async def test_a_subject_that_is_a_webid_will_do(world: World) -> None:
    """A-107."""
    assert (await world.get(world.app(without("webid")))).status == 200


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("configured", ["", "/"])
@pytest.mark.parametrize("named", ["", "/"])
async def test_a_slash_at_the_end_of_the_issuer_makes_no_difference(
    world: World, slash: str, configured: str, named: str
) -> None:
    """T-59, A-40."""
    provider = world.provider
    described = {**provider.configuration(), "issuer": f"{provider.issuer}{configured}"}
    provider.pages[CONFIGURATION] = Page.of(described)
    await world.name_issuer(f"{provider.issuer}{named}")
    assert (await world.get(world.app(set_to("iss", f"{provider.issuer}{slash}")))).status == 200


async def test_a_scheme_in_any_case_and_spaces_are_read(world: World) -> None:
    """T-10, A-3."""
    for scheme in ("dpop", "DPOP", "DPoP  "):
        fields = world.app().fields("GET", URL)
        fields["Authorization"] = fields["Authorization"].replace("DPoP", scheme)
        assert (await world.send(fields)).status == 200


async def test_another_name_of_this_machine_counts_in_proofs_and_not_in_webids(
    world: World,
) -> None:
    """A-11, D-8."""
    other = f"http://127.0.0.1:3000{DOC}"
    fields = {**world.app().fields("GET", other), "Host": "127.0.0.1:3000"}
    assert (await world.send(fields)).status == 200
    fields = {**world.app().fields("GET", URL), "Host": "127.0.0.1:3000"}
    assert_refused(await world.send(fields), "DPoP proof is for another URL", "invalid_dpop_proof")


async def test_a_host_that_is_not_ours_is_misdirected(world: World) -> None:
    """T-6, A-12, W-7: no header of a stranger changes what a proof must name."""
    evil = f"http://evil.example{DOC}"
    fields = world.app().fields("GET", evil)
    assert (await world.send({**fields, "Host": "evil.example"})).status == 421
    forwarded = {**fields, "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    assert_refused(
        await world.send(forwarded), "DPoP proof is for another URL", "invalid_dpop_proof"
    )


# --- the header fields -------------------------------------------------------------------------


async def test_a_token_without_a_proof_is_refused(world: World) -> None:
    fields = world.app().fields("GET", URL)
    del fields["DPoP"]
    assert_refused(await world.send(fields), "Missing DPoP proof header", "invalid_dpop_proof")


async def test_two_proofs_are_refused(world: World) -> None:
    """T-55, A-6."""
    app = world.app()
    first, second = app.fields("GET", URL), app.fields("GET", URL)
    fields = [*first.items(), ("DPoP", second["DPoP"])]
    assert_refused(await world.send(fields), "Send one DPoP header only", "invalid_dpop_proof")
    merged = {**first, "DPoP": f"{first['DPoP']}, {second['DPoP']}"}
    assert_refused(await world.send(merged), "Invalid token", "invalid_dpop_proof")


async def test_two_credentials_are_a_bad_request(world: World) -> None:
    """T-4, A-6."""
    fields = world.app().fields("GET", URL)
    twice = [*fields.items(), ("Authorization", fields["Authorization"])]
    assert (await world.send(twice)).status == 400
    merged = {**fields, "Authorization": f"{fields['Authorization']}, Nostr abc"}
    answer = await world.send(merged)
    assert (answer.status, answer.json()["error"]) == (400, "Bad Request")


async def test_a_credential_of_more_than_16_kibibytes_is_too_large(world: World) -> None:
    """A-3."""
    fields = world.app().fields("GET", URL)
    for size, status in ((16 * 1024 - 5, 401), (16 * 1024 - 4, 431)):
        answer = await world.send({**fields, "Authorization": f"DPoP {'a' * size}"})
        assert answer.status == status, size


@pytest.mark.parametrize("token", ["", " ", "é.é.é", "a b", "a,b", "=a", '"a"', "a==b"])
async def test_what_can_be_no_token_is_refused(world: World, token: str) -> None:
    """A-3: by its characters alone."""
    fields = {**world.app().fields("GET", URL), "Authorization": f"DPoP {token}"}
    assert_refused(await world.send(fields), "Invalid token")


async def test_a_bound_token_sent_as_bearer_is_refused(world: World) -> None:
    """T-34, W-6."""
    for app in (world.app(), world.app(without("cnf"))):
        answer = await world.send({"Authorization": f"Bearer {app.token}"})
        assert answer.status == 401
        dpop, bearer = answer.header_lines("www-authenticate")
        assert "error=" not in dpop
        assert 'error="invalid_token"' in bearer
    assert world.provider.asked == []


async def test_options_is_never_authenticated(world: World) -> None:
    """A-1, T-7."""
    fields = {
        "Authorization": "DPoP rubbish",
        "DPoP": "rubbish",
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization, dpop",
    }
    answer = await world.send(fields, "OPTIONS")
    assert answer.status == 204
    assert answer.header("access-control-allow-headers") == "authorization, dpop"
    exposed = (await world.send(fields)).header("access-control-expose-headers") or ""
    assert {"www-authenticate", "dpop-nonce"} <= {
        name.strip().lower() for name in exposed.split(",")
    }


async def test_an_invalid_token_is_refused_where_the_public_is_let_in(world: World) -> None:
    """T-2, A-5, W-13."""
    assert (await world.server.public.get("/alice/")).status == 200
    fields = world.app().fields("GET", f"{BASE}/alice/", set_to("htm", "PUT"))
    assert (await world.send(fields, target="/alice/")).status == 401


async def test_a_proof_of_another_url_is_no_reason_to_redirect(world: World) -> None:
    """A-102, Q-22: the slash is not corrected, since the proof is for one URL only."""
    assert (await world.server.alice.get("/alice/private/")).status == 200
    answer = await world.send(
        world.app().fields("GET", f"{BASE}/alice/private"), target="/alice/private"
    )
    assert answer.status == 404
    assert answer.header("location") is None


# --- proofs ------------------------------------------------------------------------------------

BAD_PROOFS: dict[str, tuple[Change, str]] = {
    "method": (set_to("htm", "POST"), "DPoP proof is for another method"),
    "path": (set_to("htu", f"{URL}x"), "DPoP proof is for another URL"),
    "slash": (set_to("htu", f"{URL}/"), "DPoP proof is for another URL"),
    "port": (set_to("htu", f"http://localhost{DOC}"), "DPoP proof is for another URL"),
    "scheme": (set_to("htu", f"https://localhost:3000{DOC}"), "DPoP proof is for another URL"),
    "old": (set_to("iat", 1), "DPoP proof is too old or from the future"),
    "future": (set_to("iat", 2_000_000_000), "DPoP proof is too old or from the future"),
    "jti": (without("jti"), "DPoP proof lacks a jti"),
}


@pytest.mark.parametrize(("change", "phrase"), BAD_PROOFS.values(), ids=BAD_PROOFS)
async def test_a_wrong_proof_is_refused_before_anybody_is_asked(
    world: World, change: Change, phrase: str
) -> None:
    """T-55, A-100."""
    assert_refused(await world.get(world.app(), change), phrase, "invalid_dpop_proof")
    assert world.provider.asked == []


async def test_a_proof_that_its_key_did_not_sign_is_refused_before_anybody_is_asked(
    world: World,
) -> None:
    """A-100, A-101."""
    fields = world.app().fields("GET", URL)
    fields["DPoP"] = with_other_signature(fields["DPoP"])
    assert_refused(await world.send(fields), "Invalid token", "invalid_dpop_proof")
    assert world.provider.asked == []


async def test_a_proof_by_another_key_is_refused_before_anybody_is_asked(world: World) -> None:
    """T-54, A-106: a stolen token is of no use."""
    answer = await world.get(world.app(), key=Signer.new("ES256"))
    assert_refused(answer, "The token is bound to another key")
    assert world.provider.asked == []


async def test_a_proof_opens_the_document_once(world: World) -> None:
    """T-56, A-104: an answer that was kept is none for a proof that was used."""
    app = world.app()
    fields = app.fields("GET", URL)
    assert (await world.send(fields)).status == 200
    for _ in range(2):
        assert_refused(
            await world.send(fields), "DPoP proof jti already used", "invalid_dpop_proof"
        )
    assert (await world.get(app)).status == 200


async def test_a_proof_is_used_up_by_another_request_too(world: World) -> None:
    """A-104: by the key and the jti, not by the proof's text."""
    app = world.app()
    same = set_to("jti", "0123456789")
    assert (await world.get(app, same)).status == 200
    assert (await world.get(app, same, set_to("iat", world.now_s - 7))).status == 401
    assert (await world.get(world.app(), same)).status == 200


async def test_a_proof_is_remembered_as_long_as_it_would_be_accepted(world: World) -> None:
    """A-104: from the future, to its last second; then it is too old."""
    fields = world.app().fields("GET", URL, set_to("iat", world.now_s + 120))
    assert (await world.send(fields)).status == 200
    world.clock.move(420)
    assert_refused(await world.send(fields), "DPoP proof jti already used", "invalid_dpop_proof")
    world.clock.move(1)
    assert_refused(
        await world.send(fields), "DPoP proof is too old or from the future", "invalid_dpop_proof"
    )


async def test_a_refused_request_does_not_use_its_proof_up(world: World) -> None:
    """A-104: rubbish fills no store."""
    await world.name_issuer()
    app = world.app()
    fields = app.fields("GET", URL)
    assert_refused(await world.send(fields), NOT_NAMED)
    await world.name_issuer(world.provider.issuer)
    assert (await world.send(fields)).status == 200


async def test_replayed_proofs_may_be_let_through(
    start: Start, clock: MovedClock, provider: Provider
) -> None:
    world = await prepared(start, clock, provider, refuse_replayed_proofs=False)
    fields = world.app().fields("GET", URL)
    for _ in range(2):
        assert (await world.send(fields)).status == 200


# --- tokens ------------------------------------------------------------------------------------


def later(seconds: int) -> int:
    return MovedClock().now_ms() // 1000 + seconds


BAD_TOKENS: dict[str, tuple[Change, str]] = {
    "no cnf": (without("cnf"), "The token is not bound to a key"),
    "cnf no object": (set_to("cnf", "x"), "The token is not bound to a key"),
    "cnf without jkt": (set_to("cnf", {"x5t#S256": "x"}), "The token is not bound to a key"),
    "jkt not ASCII": (set_to("cnf", {"jkt": "é" * 43}), "The token is not bound to a key"),
    "jkt of another": (
        set_to("cnf", {"jkt": Signer.new("ES256").thumbprint}),
        "The token is bound to another key",
    ),
    "no aud": (without("aud"), NOT_FOR_US),
    "aud another": (set_to("aud", "https://api.example"), NOT_FOR_US),
    "aud list without solid": (set_to("aud", ["a", "solid "]), NOT_FOR_US),
    "aud in a list in a list": (set_to("aud", [["solid"]]), NOT_FOR_US),
    "aud an object": (set_to("aud", {"solid": 1}), NOT_FOR_US),
    "no exp": (without("exp"), NOT_NOW),
    "exp a text": (set_to("exp", str(later(60))), NOT_NOW),
    "expired": (set_to("exp", later(-60)), NOT_NOW),
    "no iat": (without("iat"), NOT_NOW),
    "iat of the future": (set_to("iat", later(121)), NOT_NOW),
    "for more than a day": (set_to("exp", later(24 * 3600 + 1)), NOT_NOW),
    "not yet": (set_to("nbf", later(61)), NOT_NOW),
    "nbf a text": (set_to("nbf", "1"), NOT_NOW),
    "no iss": (without("iss"), NO_ADDRESS),
    "iss no URL": (set_to("iss", "idp.example"), NO_ADDRESS),
    "iss plain http elsewhere": (set_to("iss", "http://idp.example"), NO_ADDRESS),
    "iss another scheme": (set_to("iss", "file:///etc/passwd"), NO_ADDRESS),
    "iss with a name": (set_to("iss", "https://a:b@idp.example"), NO_ADDRESS),
    "iss with a query": (set_to("iss", "https://idp.example/?x="), NO_ADDRESS),
    "iss with a fragment": (set_to("iss", "https://idp.example/#x"), NO_ADDRESS),
    "iss with a line": (set_to("iss", "https://idp.example/\n"), NO_ADDRESS),
    "iss too long": (set_to("iss", f"https://idp.example/{'a' * 2048}"), NO_ADDRESS),
    "iss with a wrong port": (set_to("iss", "https://idp.example:x"), UNVERIFIABLE),
    "iss in broken brackets": (set_to("iss", "https://[::1"), NO_ADDRESS),
    "webid no URL": (set_to("webid", "alice"), NO_ADDRESS),
    "webid a list": (set_to("webid", ["https://a.example/#me"]), NO_ADDRESS),
    "webid plain http elsewhere": (set_to("webid", "http://a.example/#me"), NO_ADDRESS),
    "webid no IRI": (set_to("webid", f"{BASE}/alice/#<me>"), NO_ADDRESS),
    "webid of a path that cannot be": (set_to("webid", f"{BASE}/alice/%zz#me"), NO_DOCUMENT),
    "webid of nothing": (set_to("webid", f"{BASE}/alice/nothing#me"), NOT_NAMED),
    "webid of another here": (set_to("webid", f"{BASE}/bob/#me"), NOT_NAMED),
    "webid with another fragment": (set_to("webid", f"{BASE}/alice/#you"), NOT_NAMED),
    "webid of no RDF": (set_to("webid", f"{BASE}{DOC}#me"), NO_DOCUMENT),
    "iss of this server": (set_to("iss", BASE), UNVERIFIABLE),
}


@pytest.mark.parametrize(("change", "phrase"), BAD_TOKENS.values(), ids=BAD_TOKENS)
async def test_a_token_that_says_something_wrong_is_refused(
    world: World, change: Change, phrase: str
) -> None:
    """T-53, T-54, A-106, A-107, A-109, W-12."""
    assert_refused(await world.get(world.app(change)), phrase)


async def test_a_subject_that_is_no_webid_will_not_do(world: World) -> None:
    """A-107."""
    app = world.app(without("webid"), set_to("sub", "alice"))
    assert_refused(await world.get(app), NO_ADDRESS)


GOOD_TOKENS: dict[str, Change] = {
    "expired a moment ago": set_to("exp", later(-59)),
    "of a clock that is ahead": set_to("iat", later(120)),
    "for a day": set_to("exp", later(24 * 3600)),
    "from a moment later": set_to("nbf", later(60)),
}


@pytest.mark.parametrize("change", GOOD_TOKENS.values(), ids=GOOD_TOKENS)
async def test_clocks_may_differ_a_little(world: World, change: Change) -> None:
    """A-107."""
    assert (await world.get(world.app(change))).status == 200


async def test_a_token_that_was_verified_ends(world: World) -> None:
    """A-110."""
    app = world.app()
    assert (await world.get(app)).status == 200
    world.clock.move(3600 + 60)
    answer = await world.get(app, set_to("iat", world.now_s))
    assert_refused(answer, NOT_NOW)


async def test_a_token_that_its_issuer_did_not_sign_is_refused(world: World) -> None:
    """T-101, W-3."""
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    forger, kid = Signer.new("ES256"), world.provider.keys[0].thumbprint
    known = world.provider.keys[0].jwk
    good = world.provider.sign(claims)
    tokens = {
        "by another key": forger.sign({"kid": kid}, claims),
        "by a key that it brings": forger.sign({"kid": kid, "jwk": forger.jwk}, claims),
        "by a key elsewhere": forger.sign({"kid": kid, "jku": "http://localhost:1/"}, claims),
        "by the application's key": key.sign({"kid": kid}, claims),
        "by nobody": unsigned({"kid": kid}, claims),
        "by the public key as a secret": signed_with_secret(
            json.dumps(known).encode(), {"kid": kid}, claims
        ),
        "changed": with_other_signature(good),
    }
    for how, token in tokens.items():
        answer = await world.get(App(key, token, world.now_s))
        assert answer.status == 401, how
        assert answer.json()["message"] == "Invalid token", how
    assert (await world.get(App(key, good, world.now_s))).status == 200


async def test_a_token_of_a_key_that_is_not_published_is_refused(world: World) -> None:
    stranger = Signer.new("ES256")
    assert_refused(
        await world.get(world.app(signed_by=stranger)),
        "The token was signed with a key that its issuer does not publish",
    )


async def test_a_token_of_more_than_eight_kibibytes_is_not_looked_at(world: World) -> None:
    """A-114: nobody is asked about it."""
    long, longer = world.app(set_to("more", "x" * 5000)), world.app(set_to("more", "x" * 5800))
    assert len(long.token) < 8192 < len(longer.token)
    assert_refused(await world.get(longer), "Invalid token")
    assert world.provider.asked == []
    assert (await world.get(long)).status == 200


async def test_a_member_named_twice_is_refused(world: World) -> None:
    """A-114."""
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    twice = json.dumps(claims)[:-1] + f', "webid": "{world.server.bob_web_id}"}}'
    signed = world.provider.sign(claims)
    header, _, signature = signed.split(".")
    token = f"{header}.{base64url(twice.encode())}.{signature}"
    assert_refused(await world.get(App(key, token, world.now_s)), "Invalid token")


# --- which issuers -----------------------------------------------------------------------------


async def test_without_a_triple_no_provider_speaks_for_a_webid(world: World) -> None:
    """T-52, W-3; and a change of the document counts at once (A-110)."""
    app = world.app()
    assert (await world.get(app)).status == 200
    await world.name_issuer()
    assert_refused(await world.get(app), NOT_NAMED)
    await world.name_issuer("https://idp.example", world.provider.issuer)
    assert (await world.get(app)).status == 200


async def test_a_provider_may_be_refused(
    start: Start, clock: MovedClock, provider: Provider
) -> None:
    """A-112."""
    world = await prepared(start, clock, provider, refused_issuers=(provider.issuer,))
    for slash in ("", "/"):
        app = world.app(set_to("iss", provider.issuer + slash))
        assert_refused(await world.get(app), "The token's issuer is not accepted here")
    assert provider.asked == []


@pytest.mark.parametrize("accepted", [True, False])
async def test_only_the_accepted_providers_count_if_there_are_any(
    start: Start, clock: MovedClock, provider: Provider, accepted: bool
) -> None:
    """A-112."""
    named = provider.issuer if accepted else "https://idp.example"
    world = await prepared(start, clock, provider, accepted_issuers=(named,))
    assert (await world.get(world.app())).status == (200 if accepted else 401)


def config(provider: Provider, **changes: object) -> Page:
    return Page.of({**provider.configuration(), **changes})


def published(provider: Provider, **changes: object) -> Json:
    return {**provider.key_set()["keys"][0], **changes}


async def test_documents_of_a_provider_that_are_no_good_are_refused(world: World) -> None:
    """A-108, A-111, T-60: each 401, and never a 500 or the public."""
    provider = world.provider
    good: Json = provider.configuration()
    bad = {
        "another's": (CONFIGURATION, config(provider, issuer="https://idp.example")),
        "no issuer": (CONFIGURATION, Page.of({"jwks_uri": good["jwks_uri"]})),
        "no key set": (CONFIGURATION, Page.of({"issuer": good["issuer"]})),
        "key set a number": (CONFIGURATION, config(provider, jwks_uri=1)),
        "key set a path": (CONFIGURATION, config(provider, jwks_uri=KEYS)),
        "key set of this server": (CONFIGURATION, config(provider, jwks_uri=f"{BASE}/alice/k")),
        "key set in a private network": (
            CONFIGURATION,
            config(provider, jwks_uri="http://10.0.0.1/keys"),
        ),
        "no JSON": (CONFIGURATION, Page(b"<html>")),
        "HTML": (CONFIGURATION, Page(json.dumps(good).encode(), "text/html")),
        "an array": (CONFIGURATION, Page.of([good])),
        "gone": (CONFIGURATION, Page(b"", status=404)),
        "broken": (CONFIGURATION, Page(b"", status=500)),
        "huge": (CONFIGURATION, config(provider, more="x" * 256 * 1024)),
        "elsewhere": (CONFIGURATION, Page.redirect("http://127.0.0.1:1/")),
        "deep": (CONFIGURATION, config(provider, more=[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]])),
        "keys no list": (KEYS, Page.of({"keys": {}})),
        "keys too many": (KEYS, Page.of({"keys": [published(provider)] * 33})),
        "keys gone": (KEYS, Page(b"", status=404)),
    }
    for how, (path, page) in bad.items():
        kept = provider.pages[path]
        provider.pages[path] = page
        assert_refused(await world.get(world.app()), UNVERIFIABLE)
        assert provider.asked, how
        provider.asked.clear()
        provider.pages[path] = kept
        world.clock.move(61)
    assert (await world.get(world.app())).status == 200


async def test_keys_that_cannot_sign_are_passed_over(world: World) -> None:
    """A-108: by use, algorithm, kind and soundness."""
    provider = world.provider
    unusable = {
        "for encryption": published(provider, use="enc"),
        "for another algorithm": published(provider, alg="ES384"),
        "private": published(provider, d="AQAB"),
        "symmetric": {"kty": "oct", "k": "AQAB", "kid": provider.keys[0].thumbprint},
        "no object": "key",
        "of another id": published(provider, kid="other"),
        "of an id that is no text": published(provider, kid=7),
    }
    for how, key in unusable.items():
        provider.pages[KEYS] = Page.of({"keys": [key]})
        answer = await world.get(world.app())
        assert_refused(answer, "The token was signed with a key that its issuer does not publish")
        provider.pages[KEYS] = Page.of({"keys": [key, published(provider)]})
        world.clock.move(901)
        assert (await world.get(world.app())).status == 200, how
        world.clock.move(901)


async def test_a_token_without_a_key_id_is_tried_with_every_key(world: World) -> None:
    """A-108."""
    world.provider.keys[:0] = [Signer.new("ES256"), Signer.new("RS256")]
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    token = world.provider.keys[-1].sign({}, claims)
    assert (await world.get(App(key, token, world.now_s))).status == 200


# --- WebIDs elsewhere --------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where a WebID's document is."""
    with running_provider() as provider:
        yield provider


async def test_a_webid_elsewhere_counts_if_it_names_the_provider(
    world: World, elsewhere: Provider
) -> None:
    """T-51, A-109."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    other = elsewhere.profile("/dave", "https://idp.example")
    assert_refused(await world.get(world.app(web_id=other)), NOT_NAMED)


async def test_a_webid_document_may_be_json_ld_and_may_have_moved(
    world: World, elsewhere: Provider
) -> None:
    """A-109, A-189: relative references are resolved against where it was found."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    document = [{"@id": web_id, ISSUER_TERM: [{"@id": f"{world.provider.issuer}/"}]}]
    elsewhere.pages["/moved"] = Page(json.dumps(document).encode(), "application/ld+json")
    elsewhere.pages["/carol"] = Page.redirect("/moved")
    assert (await world.get(world.app(web_id=web_id))).status == 200
    relative = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    elsewhere.pages["/dave"] = Page.redirect("/moved-too")
    elsewhere.pages["/moved-too"] = Page(relative.encode(), TURTLE)
    answer = await world.get(world.app(web_id=f"{elsewhere.issuer}/dave#me"))
    assert_refused(answer, NOT_NAMED)


async def test_webid_documents_that_are_no_good_are_refused(
    world: World, elsewhere: Provider
) -> None:
    """A-109, A-111, A-189, T-60, T-103."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    text = f'<#me> <{ISSUER_TERM}> "{world.provider.issuer}".'
    link = {"Link": f'<{world.provider.issuer}>; rel="{ISSUER_TERM}"'}
    many = "".join(f"<#a> <#b> {each}." for each in range(10_000))
    issuers = "".join(f"<#me> <{ISSUER_TERM}> <https://{each}.example>." for each in range(64))
    bad = {
        "gone": (Page(b"", status=404), NO_DOCUMENT),
        "broken": (Page(triple.encode(), TURTLE, status=500), NO_DOCUMENT),
        "no RDF": (Page(b"<html>", "text/html"), NO_DOCUMENT),
        "text": (Page(triple.encode(), "text/plain"), NO_DOCUMENT),
        "not Turtle": (Page(b"<", TURTLE), NO_DOCUMENT),
        "huge": (Page(triple.encode() + b"#" * 1024 * 1024, TURTLE), NO_DOCUMENT),
        "too many triples": (Page((triple + many).encode(), TURTLE), NO_DOCUMENT),
        "too many issuers": (Page((triple + issuers).encode(), TURTLE), NO_DOCUMENT),
        "moved to this server": (Page.redirect(f"{BASE}/alice/"), NO_DOCUMENT),
        "moved to a private network": (Page.redirect("http://10.0.0.1/"), NO_DOCUMENT),
        "moved to itself": (Page.redirect("/carol"), NO_DOCUMENT),
        "in a header only": (Page(b"", TURTLE, headers=link), NOT_NAMED),
        "as a text": (Page(text.encode(), TURTLE), NOT_NAMED),
        "of another subject": (Page(triple.replace("#me", "#you").encode(), TURTLE), NOT_NAMED),
        "of a longer issuer": (Page(triple.replace(">.", "/x>.").encode(), TURTLE), NOT_NAMED),
        "of the issuer in other case": (
            Page(triple.replace("localhost", "LOCALHOST").encode(), TURTLE),
            NOT_NAMED,
        ),
        "in a comment": (Page(f"# {triple}".encode(), TURTLE), NOT_NAMED),
    }
    for how, (page, phrase) in bad.items():
        elsewhere.pages["/carol"] = page
        answer = await world.get(world.app(web_id=web_id))
        assert (how, answer.json()["message"]) == (how, phrase)
        assert_refused(answer, phrase)
        world.clock.move(61)
    elsewhere.pages["/carol"] = Page(triple.encode(), TURTLE)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_a_huge_document_here_is_not_read_for_its_issuers(world: World) -> None:
    """A-111, T-103: anybody may have a token for it."""
    path = "/alice/huge"
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    for extra, phrase in ((1024 * 1024, NO_DOCUMENT), (0, None)):
        content = triple.encode() + b"\n#" + b"x" * extra
        assert (await world.server.alice.put(path, content, TURTLE)).status in {201, 204}
        answer = await world.get(world.app(web_id=f"{BASE}{path}#me"))
        assert answer.status == (403 if phrase is None else 401)


# --- how often others are asked ----------------------------------------------------------------


async def test_a_provider_and_a_webid_are_asked_once_for_some_minutes(
    world: World, elsewhere: Provider
) -> None:
    """A-110."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    for _ in range(3):
        assert (await world.get(world.app(web_id=web_id))).status == 200
    assert world.provider.asked == [CONFIGURATION, KEYS]
    assert elsewhere.asked == ["/carol"]
    world.clock.move(299)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    world.clock.move(1)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    assert elsewhere.asked == ["/carol"] * 2
    assert world.provider.asked == [CONFIGURATION, KEYS]
    world.clock.move(600)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    assert world.provider.asked == [CONFIGURATION, KEYS] * 2


async def test_a_webid_that_does_not_name_the_provider_is_asked_again_soon(
    world: World, elsewhere: Provider
) -> None:
    """A-110: and that another provider is named does not keep it longer."""
    web_id = elsewhere.profile("/carol", "https://idp.example")
    await world.let_in(web_id)
    for _ in range(2):
        assert_refused(await world.get(world.app(web_id=web_id)), NOT_NAMED)
    assert elsewhere.count("/carol") == 1
    elsewhere.profile("/carol", world.provider.issuer)
    world.clock.move(30)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_documents_that_are_no_good_are_not_fetched_with_every_request(
    world: World, elsewhere: Provider
) -> None:
    """A-191."""
    elsewhere.pages["/carol"] = Page(b"<", TURTLE)
    web_id = f"{elsewhere.issuer}/carol#me"
    for _ in range(3):
        assert_refused(await world.get(world.app(web_id=web_id)), NO_DOCUMENT)
    assert elsewhere.count("/carol") == 1
    elsewhere.pages[CONFIGURATION] = Page(b"{")
    for _ in range(3):
        assert_refused(await world.get(world.app(set_to("iss", elsewhere.issuer))), UNVERIFIABLE)
    assert elsewhere.count(CONFIGURATION) == 1
    world.clock.move(30)
    assert_refused(await world.get(world.app(set_to("iss", elsewhere.issuer))), UNVERIFIABLE)
    assert elsewhere.count(CONFIGURATION) == 2


@pytest.mark.parametrize(("age", "lifetime_s"), [(0, 60), (300, 300), (10**6, 900)])
async def test_a_provider_says_how_long_its_keys_stay_fresh(
    world: World, age: int, lifetime_s: int
) -> None:
    """A-110: within bounds."""
    provider = world.provider
    provider.pages[KEYS] = Page.of(provider.key_set(), Cache_Control=f"max-age={age}")
    app = world.app()
    for moved, reads in ((0, 1), (lifetime_s - 1, 1), (1, 2)):
        world.clock.move(moved)
        answer = await world.get(app, set_to("iat", world.now_s))
        assert (answer.status, provider.count(KEYS)) == (200, reads)


async def test_a_new_key_is_found_and_a_flood_of_unknown_ones_is_not_looked_for(
    world: World,
) -> None:
    """T-58, A-108: one look a minute."""
    provider = world.provider
    assert (await world.get(world.app())).status == 200
    world.clock.move(1)
    provider.keys.append(Signer.new("ES256"))
    assert (await world.get(world.app())).status == 200
    assert provider.count(KEYS) == 2
    for seconds in (0, 30, 29):
        world.clock.move(seconds)
        for _ in range(3):
            answer = await world.get(world.app(signed_by=Signer.new("ES256")))
            assert answer.status == 401
        assert provider.count(KEYS) == 2
    world.clock.move(1)
    for _ in range(3):
        assert (await world.get(world.app(signed_by=Signer.new("ES256")))).status == 401
    assert provider.count(KEYS) == 3
    assert (await world.get(world.app())).status == 200


async def test_a_key_that_is_withdrawn_takes_its_tokens_along(world: World) -> None:
    """A-110: a token that was verified is so while its key is published."""
    app = world.app()
    assert (await world.get(app)).status == 200
    world.provider.keys[:] = [Signer.new("ES256")]
    world.clock.move(900)
    answer = await world.get(app, set_to("iat", world.now_s))
    assert_refused(answer, "The token was signed with a key that its issuer does not publish")


async def test_keys_are_used_a_while_longer_if_the_provider_is_away(world: World) -> None:
    """A-110: an hour beyond their time."""
    app = world.app(set_to("exp", world.now_s + 8000))
    assert (await world.get(app)).status == 200
    world.provider.pages[CONFIGURATION] = Page(b"", status=503)
    for moved, status in ((900, 200), (3599, 200), (1, 401)):
        world.clock.move(moved)
        answer = await world.get(app, set_to("iat", world.now_s))
        assert answer.status == status, moved
        assert (UNVERIFIABLE in answer.text) == (status == 401)


async def test_an_address_may_have_strangers_looked_up_so_often_a_minute(world: World) -> None:
    """A-111, A-191: who is known needs no look-up."""
    assert (await world.get(world.app())).status == 200

    async def stranger(number: int, peer: str) -> Answer:
        app = world.app(set_to("iss", f"https://idp-{number}.invalid"))
        return await world.server.public.request(
            "GET", DOC, headers=app.fields("GET", URL), peer=peer
        )

    answers = [await stranger(each, "192.0.2.1") for each in range(31)]
    phrases = {answer.json()["message"] for answer in answers[:29]}
    assert phrases == {UNVERIFIABLE}
    assert "try later" in answers[30].json()["message"]
    assert answers[30].status == 401
    assert (await stranger(99, "192.0.2.2")).json()["message"] == UNVERIFIABLE
    assert (await world.get(world.app())).status == 200
    world.clock.move(60)
    assert (await stranger(100, "192.0.2.1")).json()["message"] == UNVERIFIABLE
