"""What a token must say, and that its issuer must have signed it (A-75, A-106, A-107, A-114)."""

from __future__ import annotations

import json

import pytest

from tests.http.tokens.world import (
    DOC,
    NO_ADDRESS,
    NO_DOCUMENT,
    NOT_FOR_US,
    NOT_NAMED,
    NOT_NOW,
    UNVERIFIABLE,
    World,
    assert_refused,
)
from tests.support.application import BASE
from tests.support.clock import FakeClock
from tests.support.provider import App
from tests.support.signing import (
    Change,
    Signer,
    base64url,
    set_to,
    signed_with_secret,
    unsigned,
    with_other_signature,
    without,
)


def later(seconds: int) -> int:
    return FakeClock().now_ms() // 1000 + seconds


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
    """A-106, A-107, A-109, W-12."""
    assert_refused(await world.get(world.app(change)), phrase)


async def test_the_subject_must_be_a_webid(world: World) -> None:
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
    world.clock.advance(3600 + 60)
    answer = await world.get(app, set_to("iat", world.now_s))
    assert_refused(answer, NOT_NOW)


async def test_a_token_that_its_issuer_did_not_sign_is_refused(world: World) -> None:
    """W-3."""
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
