"""Responses to requests with a client certificate are cached, and never outlast what proves it."""

from __future__ import annotations

import pytest

from podstead.authn.authenticate import RequestCredentials
from podstead.core.identity import Identity
from podstead.features.webid_tls.verification import NEGATIVE_S, POSITIVE_S, WebIdTls
from tests.features.webid_tls.world import (
    EXPIRED,
    NO_KEY,
    PRIVATE,
    PUBLIC,
    WEB_ID,
    World,
    assert_refused,
)
from tests.support.certificates import key_turtle, rsa_key
from tests.support.provider import Page, Provider
from tests.support.rdf import TURTLE


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The certificates that were verified: those of requests without a cached response."""
    seen: list[bytes] = []
    verify = WebIdTls.verify

    async def noting(self: WebIdTls, credentials: RequestCredentials) -> Identity | None:
        seen.append(credentials.certificate or b"")
        return await verify(self, credentials)

    monkeypatch.setattr(WebIdTls, "verify", noting)
    return seen


def page(*keys: str) -> Page:
    return Page("".join(keys or ("<> a <#x>.",)).encode(), TURTLE)


async def test_a_repeated_request_is_answered_from_the_cache(
    world: World, verified: list[bytes]
) -> None:
    shown = world.holder()
    first, second = await world.send(shown), await world.send(shown)
    assert (first.status, first.headers, first.body) == (
        second.status,
        second.headers,
        second.body,
    )
    assert verified == [shown.der]


async def test_another_certificate_for_the_same_webid_is_verified_itself(
    world: World, verified: list[bytes]
) -> None:
    ours, early = world.holder(), world.holder(starts_s=600)
    theirs = world.holder(key=rsa_key(1))
    assert (await world.send(ours)).status == 200
    assert (await world.send(early)).status == 401
    assert_refused(await world.send(theirs), NO_KEY)
    assert (await world.send(ours)).status == 200
    assert verified == [ours.der, early.der, theirs.der]


async def test_a_removed_key_applies_to_the_next_request(world: World) -> None:
    shown = world.holder()
    for _ in range(2):
        assert (await world.send(shown)).status == 200
    await world.say()
    assert_refused(await world.send(shown), NO_KEY)
    assert_refused(await world.send(shown, target=PUBLIC), NO_KEY)


async def test_a_cached_response_ends_with_the_certificate(world: World) -> None:
    """On its second, which is a minute late for the sake of clocks that differ."""
    shown = world.holder(ends_s=100)
    for moved in (0, 159):
        world.clock.advance(moved)
        assert (await world.send(shown)).status == 200
    world.clock.advance(1)
    assert_refused(await world.send(shown), EXPIRED)


async def test_a_cached_response_ends_when_a_foreign_document_must_be_read_again(
    world: World, elsewhere: Provider, verified: list[bytes]
) -> None:
    """A-168: nothing is committed here when a key is removed there."""
    web_id = f"{elsewhere.issuer}/carol#me"
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    await world.let_in(web_id)
    shown = world.holder(web_id)
    assert (await world.send(shown)).status == 200
    elsewhere.pages["/carol"] = page()
    world.clock.advance(POSITIVE_S - 1)
    assert (await world.send(shown)).status == 200
    assert len(verified) == 1
    world.clock.advance(1)
    assert_refused(await world.send(shown), NO_KEY)


async def test_a_name_that_stands_first_applies_as_soon_as_its_document_names_the_key(
    world: World, elsewhere: Provider, verified: list[bytes]
) -> None:
    elsewhere.pages["/carol"] = page()
    shown = world.holder(f"{elsewhere.issuer}/carol#me", WEB_ID)
    assert (await world.send(shown)).status == 200
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    world.clock.advance(NEGATIVE_S - 1)
    assert (await world.send(shown)).status == 200
    assert len(verified) == 1
    world.clock.advance(1)
    assert (await world.send(shown)).status == 403  # Carol may not read Alice's document


@pytest.mark.parametrize("broken", [Page(b"", status=500), Page(b"<", TURTLE)])
async def test_nothing_is_cached_while_a_document_cannot_be_used(
    world: World, elsewhere: Provider, verified: list[bytes], broken: Page
) -> None:
    elsewhere.pages["/carol"] = broken
    shown = world.holder(f"{elsewhere.issuer}/carol#me", WEB_ID)
    for _ in range(2):
        assert (await world.send(shown, target=PRIVATE)).status == 200
    assert len(verified) == 2
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    world.clock.advance(31)
    assert (await world.send(shown, target=PRIVATE)).status == 403
