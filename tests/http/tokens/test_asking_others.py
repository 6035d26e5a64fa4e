"""How often other servers are asked, and what is used meanwhile (A-110, A-111)."""

from __future__ import annotations

import asyncio

import pytest

from tests.http.tokens.world import (
    DOC,
    NO_DOCUMENT,
    NOT_NAMED,
    UNVERIFIABLE,
    URL,
    World,
    assert_refused,
)
from tests.support.asgi import Answer
from tests.support.provider import CONFIGURATION, KEYS, Page, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import (
    Signer,
    set_to,
)

UNREACHABLE = "The remote server could not be reached"


async def test_documents_of_a_provider_and_a_webid_are_fetched_once_in_some_minutes(
    world: World, elsewhere: Provider
) -> None:
    """A-110."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    for _ in range(3):
        assert (await world.get(world.app(web_id=web_id))).status == 200
    assert world.provider.asked == [CONFIGURATION, KEYS]
    assert elsewhere.asked == ["/carol"]
    world.clock.advance(299)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    world.clock.advance(1)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    assert elsewhere.asked == ["/carol"] * 2
    assert world.provider.asked == [CONFIGURATION, KEYS]
    world.clock.advance(600)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    assert world.provider.asked == [CONFIGURATION, KEYS] * 2


async def test_a_webid_that_does_not_name_the_provider_is_fetched_again_soon(
    world: World, elsewhere: Provider
) -> None:
    """A-110: and that another provider is named does not keep it longer."""
    web_id = elsewhere.profile("/carol", "https://idp.example")
    await world.let_in(web_id)
    for _ in range(2):
        assert_refused(await world.get(world.app(web_id=web_id)), NOT_NAMED)
    assert elsewhere.count("/carol") == 1
    elsewhere.profile("/carol", world.provider.issuer)
    world.clock.advance(30)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_invalid_documents_are_not_fetched_with_every_request(
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
    world.clock.advance(30)
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
        world.clock.advance(moved)
        answer = await world.get(app, set_to("iat", world.now_s))
        assert (answer.status, provider.count(KEYS)) == (200, reads)


async def test_a_new_key_is_found_and_a_flood_of_unknown_ones_is_not_looked_for(
    world: World,
) -> None:
    """A-108: one look a minute."""
    provider = world.provider
    assert (await world.get(world.app())).status == 200
    world.clock.advance(1)
    provider.keys.append(Signer.new("ES256"))
    assert (await world.get(world.app())).status == 200
    assert provider.count(KEYS) == 2
    for seconds in (0, 30, 29):
        world.clock.advance(seconds)
        for _ in range(3):
            answer = await world.get(world.app(signed_by=Signer.new("ES256")))
            assert answer.status == 401
        assert provider.count(KEYS) == 2
    world.clock.advance(1)
    for _ in range(3):
        assert (await world.get(world.app(signed_by=Signer.new("ES256")))).status == 401
    assert provider.count(KEYS) == 3
    assert (await world.get(world.app())).status == 200


async def test_a_key_that_is_withdrawn_takes_its_tokens_along(world: World) -> None:
    """A-110: a token that was verified is so while its key is published."""
    app = world.app()
    assert (await world.get(app)).status == 200
    world.provider.keys[:] = [Signer.new("ES256")]
    world.clock.advance(900)
    answer = await world.get(app, set_to("iat", world.now_s))
    assert_refused(answer, "The token was signed with a key that its issuer does not publish")


async def test_keys_are_used_a_while_longer_if_the_provider_is_away(world: World) -> None:
    """A-110: an hour beyond their time."""
    app = world.app(set_to("exp", world.now_s + 8000))
    assert (await world.get(app)).status == 200
    world.provider.pages[CONFIGURATION] = Page(b"", status=503)
    for moved, status in ((900, 200), (3599, 200), (1, 503)):
        world.clock.advance(moved)
        answer = await world.get(app, set_to("iat", world.now_s))
        assert answer.status == status, moved
        assert (answer.header("retry-after") is None) == (status == 200)


async def test_an_address_may_have_strangers_looked_up_so_often_a_minute(world: World) -> None:
    """A-111, A-191: who is known needs no look-up."""
    assert (await world.get(world.app())).status == 200

    async def stranger(number: int, peer: str) -> Answer:
        app = world.app(set_to("iss", f"http://idp-{number}.localhost:1"))
        return await world.server.public.request(
            "GET", DOC, headers=app.fields("GET", URL), peer=peer
        )

    answers = [await stranger(each, "192.0.2.1") for each in range(31)]
    phrases = {answer.json()["message"] for answer in answers[:29]}
    assert phrases == {UNREACHABLE}
    assert "try again later" in answers[30].json()["message"]
    assert answers[30].status == 503
    assert int(answers[30].header("retry-after") or 0) > 0
    assert (await stranger(99, "192.0.2.2")).json()["message"] == UNREACHABLE
    assert (await world.get(world.app())).status == 200
    world.clock.advance(60)
    assert (await stranger(100, "192.0.2.1")).json()["message"] == UNREACHABLE


async def test_a_provider_that_does_not_answer_holds_nobody_else_up(
    world: World, elsewhere: Provider
) -> None:
    """A-111: and is asked once, however many wait for it."""
    assert (await world.get(world.app())).status == 200
    elsewhere.pages[CONFIGURATION] = elsewhere.stalled
    apps = [world.app(set_to("iss", elsewhere.issuer)) for _ in range(5)]
    waiting = [asyncio.create_task(world.get(app)) for app in apps]
    while not elsewhere.asked:  # noqa: ASYNC110 - a thread answers
        await asyncio.sleep(0.01)
    assert (await world.get(world.app())).status == 200
    elsewhere.released.set()
    for task in waiting:
        assert_refused(await task, UNVERIFIABLE)
    assert elsewhere.count(CONFIGURATION) == 1
