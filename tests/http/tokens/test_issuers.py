"""Which providers are believed, and what they must publish (A-108, A-109, A-112)."""

from __future__ import annotations

import json

import pytest

from tests.http.tokens.world import (
    NOT_NAMED,
    UNVERIFIABLE,
    World,
    assert_refused,
    prepared,
)
from tests.support.application import BASE, Start
from tests.support.clock import FakeClock
from tests.support.provider import CONFIGURATION, KEYS, App, Page, Provider
from tests.support.signing import (
    Json,
    Signer,
    set_to,
)


async def test_without_a_triple_no_provider_speaks_for_a_webid(world: World) -> None:
    """W-3; and a change of the document counts at once (A-110)."""
    app = world.app()
    assert (await world.get(app)).status == 200
    await world.name_issuer()
    assert_refused(await world.get(app), NOT_NAMED)
    await world.name_issuer("https://idp.example", world.provider.issuer)
    assert (await world.get(app)).status == 200


async def test_a_provider_may_be_refused(
    start: Start, clock: FakeClock, provider: Provider
) -> None:
    """A-112."""
    world = await prepared(start, clock, provider, refused_issuers=(provider.issuer,))
    for slash in ("", "/"):
        app = world.app(set_to("iss", provider.issuer + slash))
        assert_refused(await world.get(app), "The token's issuer is not accepted")
    assert provider.asked == []


@pytest.mark.parametrize("accepted", [True, False])
async def test_only_the_accepted_providers_count_if_there_are_any(
    start: Start, clock: FakeClock, provider: Provider, accepted: bool
) -> None:
    """A-112."""
    named = provider.issuer if accepted else "https://idp.example"
    world = await prepared(start, clock, provider, accepted_issuers=(named,))
    assert (await world.get(world.app())).status == (200 if accepted else 401)


def config(provider: Provider, **changes: object) -> Page:
    return Page.of({**provider.configuration(), **changes})


def published(provider: Provider, **changes: object) -> Json:
    return {**provider.key_set()["keys"][0], **changes}


async def test_invalid_documents_of_a_provider_are_refused(world: World) -> None:
    """A-108, A-111: each 401, and never a 500 or the public."""
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
        world.clock.advance(61)
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
        world.clock.advance(901)
        assert (await world.get(world.app())).status == 200, how
        world.clock.advance(901)


async def test_a_token_without_a_key_id_is_tried_with_every_key(world: World) -> None:
    """A-108."""
    world.provider.keys[:0] = [Signer.new("ES256"), Signer.new("RS256")]
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    token = world.provider.keys[-1].sign({}, claims)
    assert (await world.get(App(key, token, world.now_s))).status == 200
