"""How often other servers are asked, and what is used meanwhile (A-110, A-111)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from podstead.config import Settings
from tests.support.application import running
from tests.support.asgi import Answer, Client
from tests.support.provider import CONFIGURATION, KEYS, App, Page, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import (
    Signer,
    set_to,
)
from tests.support.token_world import (
    DOC,
    NO_DOCUMENT,
    NOT_NAMED,
    UNVERIFIABLE,
    URL,
    World,
    assert_refused,
)

UNREACHABLE = "The remote server could not be reached"
HERE = "192.0.2.1"
"""An address that a stranger and others share."""


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


async def as_stranger(world: World, number: int, peer: str = HERE) -> Answer:
    """A request with a token of a provider that nobody knows."""
    app = world.app(set_to("iss", f"http://idp-{number}.localhost:1"))
    fields = app.fields("GET", URL)
    return await world.server.public.request("GET", DOC, headers=fields, peer=peer)


async def exhaust(world: World) -> None:
    """Use up the look-ups of unknown providers from here."""
    answers = [await as_stranger(world, each) for each in range(31)]
    assert "try again later" in answers[30].json()["message"]


async def get_from_here(world: World, app: App) -> Answer:
    fields = app.fields("GET", URL, set_to("iat", world.now_s))
    return await world.server.public.request("GET", DOC, headers=fields, peer=HERE)


async def test_an_address_may_have_strangers_looked_up_so_often_a_minute(world: World) -> None:
    """A-111, A-191: who is known needs no look-up."""
    assert (await world.get(world.app())).status == 200
    answers = [await as_stranger(world, each) for each in range(31)]
    assert {answer.json()["message"] for answer in answers[:30]} == {UNREACHABLE}
    assert "try again later" in answers[30].json()["message"]
    assert answers[30].status == 503
    assert int(answers[30].header("retry-after") or 0) > 0
    assert (await as_stranger(world, 99, "192.0.2.2")).json()["message"] == UNREACHABLE
    assert (await get_from_here(world, world.app())).status == 200
    world.clock.advance(60)
    assert (await as_stranger(world, 100)).json()["message"] == UNREACHABLE


async def test_strangers_shut_out_no_provider_that_a_profile_of_this_server_names(
    world: World,
) -> None:
    """A-111: even if it has never been asked."""
    await exhaust(world)
    assert (await get_from_here(world, world.app())).status == 200
    assert world.provider.count(KEYS) == 1


async def test_strangers_shut_out_nobody_who_was_found_before(
    world: World, elsewhere: Provider
) -> None:
    """A-110, A-111: neither the provider nor a WebID elsewhere, although both are fetched again."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    app = world.app(set_to("exp", world.now_s + 8000), web_id=web_id)
    assert (await world.get(app)).status == 200
    world.clock.advance(900)
    await exhaust(world)
    assert (await get_from_here(world, app)).status == 200
    assert (world.provider.count(KEYS), elsewhere.count("/carol")) == (2, 2)


async def test_strangers_shut_out_nobody_whom_another_worker_has_found(
    world: World, elsewhere: Provider, settings: Settings
) -> None:
    """A-111: each worker has its own cache, but all know who was found."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    async with running(settings, clock=world.clock) as worker:
        server = replace(
            world.server, application=worker, public=Client(worker, host="localhost:3000")
        )
        other = replace(world, server=server)
        await exhaust(other)
        assert (await get_from_here(other, world.app(web_id=web_id))).status == 200
    assert elsewhere.count("/carol") == 2


async def test_unknown_providers_shut_out_no_new_webid_of_a_known_one(
    world: World, elsewhere: Provider
) -> None:
    """A-111: WebIDs are counted apart."""
    assert (await world.get(world.app())).status == 200
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    await exhaust(world)
    assert (await get_from_here(world, world.app(web_id=web_id))).status == 200


async def test_a_known_provider_that_fails_is_counted_and_its_keys_go_on(
    world: World, elsewhere: Provider
) -> None:
    """A-110, A-191: somebody's own providers, once good and then slow, cost look-ups as well."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    app = world.app(set_to("exp", world.now_s + 80000), web_id=web_id)
    assert (await world.get(app)).status == 200
    world.provider.pages[KEYS] = Page(b"", status=503)
    world.clock.advance(900)
    assert (await get_from_here(world, app)).status == 200
    world.clock.advance(60)
    await exhaust(world)
    asked = world.provider.count(KEYS)
    assert (await get_from_here(world, app)).status == 200
    assert world.provider.count(KEYS) == asked
    world.clock.advance(3600)
    await exhaust(world)
    assert (await get_from_here(world, app)).status == 503


async def test_an_application_that_begins_with_many_requests_is_one_look_up(
    world: World, elsewhere: Provider
) -> None:
    web_id = elsewhere.profile("/carol", elsewhere.issuer)
    await world.let_in(web_id)
    elsewhere.pages[CONFIGURATION] = elsewhere.stalled
    app = elsewhere.app(web_id, now_s=world.now_s)
    waiting = [asyncio.create_task(get_from_here(world, app)) for _ in range(40)]
    while not elsewhere.asked:  # noqa: ASYNC110 - a thread answers
        await asyncio.sleep(0.01)
    elsewhere.pages[CONFIGURATION] = Page.of(elsewhere.configuration())
    elsewhere.released.set()
    answers = [await each for each in waiting]
    assert {answer.status for answer in answers} == {401}, "what was waited for is not good"
    assert (await as_stranger(world, 1)).json()["message"] == UNREACHABLE


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
