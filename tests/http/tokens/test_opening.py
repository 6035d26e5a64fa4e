"""What opens a document: a token of any provider, bound to a key, with a fresh proof (A-109)."""

from __future__ import annotations

import pytest

from tests.support.application import BASE, Start
from tests.support.clock import FakeClock
from tests.support.provider import CONFIGURATION, Page, Provider
from tests.support.signing import (
    Change,
    Signer,
    set_to,
    token_hash,
    without,
)
from tests.support.token_world import (
    DOC,
    URL,
    World,
    assert_refused,
    prepared,
)


async def test_a_token_of_a_provider_that_the_webid_names_opens_the_document(world: World) -> None:
    """A-109."""
    answer = await world.get(world.app())
    assert (answer.status, answer.text) == (200, "text")
    assert answer.header("cache-control") == "private, no-cache"
    assert (await world.server.public.get(DOC)).status == 401


async def test_the_identity_is_the_webid_and_nothing_more(world: World) -> None:
    """Another's token gives 403, without a challenge."""
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
    """An RS256 proof with further members in its key, as a test harness sends it."""
    world.provider.keys.append(Signer.new(algorithm))
    key = Signer.new(algorithm)
    app = world.app(key=key)
    jwk = {**key.jwk, "alg": algorithm, "kid": "7", "use": "sig", "key_ops": ["verify"]}
    assert (await world.get(app, jwk=jwk)).status == 200


async def test_a_proof_may_name_the_url_with_its_query(world: World) -> None:
    fields = world.app().fields("GET", f"{URL}?a=b")
    assert (await world.send(fields, target=f"{DOC}?a=b")).status == 200


async def test_a_proof_may_name_the_token(world: World) -> None:
    """A-105."""
    app = world.app()
    assert (await world.get(app, set_to("ath", token_hash(app.token)))).status == 200
    assert_refused(
        await world.get(app, set_to("ath", token_hash("other"))),
        "DPoP proof is for another access token",
        "invalid_dpop_proof",
    )


async def test_the_hash_of_the_token_in_a_proof_can_be_required(
    start: Start, clock: FakeClock, provider: Provider
) -> None:
    """A-105."""
    world = await prepared(start, clock, provider, require_ath=True)
    app = world.app()
    assert (await world.get(app, set_to("ath", token_hash(app.token)))).status == 200
    assert (await world.get(app)).status == 401


@pytest.mark.parametrize(
    "change",
    [
        set_to("aud", ["https://app.example/id", "solid"]),
        set_to("nonce", "n"),
        set_to("at_hash", "x" * 22),
    ],
    ids=["by its audience", "by its nonce", "by its at_hash"],
)
@pytest.mark.parametrize("typ", ["JWT", None])
async def test_an_id_token_opens_nothing(world: World, change: Change, typ: str | None) -> None:
    """OpenID Connect Core section 2: it tells the client who signed in, and whoever the client
    shows it to must not be able to use it."""
    assert_refused(
        await world.get(world.app(change, typ=typ)), "This is an ID token: send the access token"
    )


@pytest.mark.parametrize("typ", ["JWT", None, "application/at+jwt"])
async def test_an_access_token_need_not_be_typed_as_one(world: World, typ: str | None) -> None:
    """RFC 9068 is younger than some Solid providers."""
    assert (await world.get(world.app(typ=typ))).status == 200


async def test_a_subject_that_is_a_webid_will_do(world: World) -> None:
    """A-107."""
    assert (await world.get(world.app(without("webid")))).status == 200


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("configured", ["", "/"])
@pytest.mark.parametrize("named", ["", "/"])
async def test_a_slash_at_the_end_of_the_issuer_makes_no_difference(
    world: World, slash: str, configured: str, named: str
) -> None:
    """A-40."""
    provider = world.provider
    described = {**provider.configuration(), "issuer": f"{provider.issuer}{configured}"}
    provider.pages[CONFIGURATION] = Page.of(described)
    await world.name_issuer(f"{provider.issuer}{named}")
    assert (await world.get(world.app(set_to("iss", f"{provider.issuer}{slash}")))).status == 200


async def test_a_scheme_in_any_case_and_spaces_are_read(world: World) -> None:
    """A-3."""
    for scheme in ("dpop", "DPOP", "DPoP  "):
        fields = world.app().fields("GET", URL)
        fields["Authorization"] = fields["Authorization"].replace("DPoP", scheme)
        assert (await world.send(fields)).status == 200


async def test_another_name_of_this_machine_is_valid_in_proofs_but_not_in_webids(
    world: World,
) -> None:
    """A-11, A-190."""
    other = f"http://127.0.0.1:3000{DOC}"
    fields = {**world.app().fields("GET", other), "Host": "127.0.0.1:3000"}
    assert (await world.send(fields)).status == 200
    fields = {**world.app().fields("GET", URL), "Host": "127.0.0.1:3000"}
    assert_refused(await world.send(fields), "DPoP proof is for another URL", "invalid_dpop_proof")


async def test_a_host_that_is_not_ours_is_misdirected(world: World) -> None:
    """A-12, W-7: no header of a stranger changes what a proof must name."""
    evil = f"http://evil.example{DOC}"
    fields = world.app().fields("GET", evil)
    assert (await world.send({**fields, "Host": "evil.example"})).status == 421
    forwarded = {**fields, "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    assert_refused(
        await world.send(forwarded), "DPoP proof is for another URL", "invalid_dpop_proof"
    )


async def test_an_application_of_another_provider_does_not_state_identity(world: World) -> None:
    """What the person allowed it there is not known here, whatever scope its token names."""
    before = (await world.server.alice.get("/alice/.meta")).body
    target = "/alice/.meta"
    same_as = "<http://www.w3.org/2002/07/owl#sameAs>"
    name = "<http://xmlns.com/foaf/0.1/nick>"
    for app in (world.app(), world.app(set_to("scope", "openid webid webid:write"))):
        for stated, status in ((f"{same_as} <did:nostr:{'0' * 64}>", 403), (f"{name} 'Al'", 204)):
            fields = app.fields("PATCH", f"{BASE}{target}")
            fields["Content-Type"] = "application/sparql-update"
            body = f"INSERT DATA {{ <{world.server.alice_web_id}> {stated} }}".encode()
            answer = await world.server.public.request("PATCH", target, headers=fields, body=body)
            assert answer.status == status, answer.text
    after = (await world.server.alice.get(target)).body
    assert b"sameAs" not in after
    assert after != before
