"""A key that is removed while a body arrives cannot be used to store it (A-168)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from tests.http.certificates.world import NO_KEY, TEXT, WEB_ID, World, assert_refused
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.certificates import key_turtle
from tests.support.rdf import TURTLE

NEW = "/alice/private/new"


async def upload(world: World, meanwhile: Callable[[], Awaitable[None]], *names: str) -> Answer:
    """PUT a new resource of Alice's by a certificate with her name, or these; ``meanwhile`` happens
    before its second half."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first "
        await meanwhile()
        yield b"second"

    client = world.server.public.with_certificate(world.holder(*names).pem)
    headers = {"Content-Type": TEXT, "Transfer-Encoding": "chunked"}
    return await client.request("PUT", NEW, headers=headers, body=pieces())


async def test_a_key_that_is_removed_meanwhile_stores_nothing(world: World) -> None:
    async def removed() -> None:
        world.clock.advance(10)
        await world.say()

    assert_refused(await upload(world, removed), NO_KEY)
    assert (await world.server.alice.get(NEW)).status == 404


async def test_a_certificate_that_only_expires_meanwhile_is_good_for_it(world: World) -> None:
    """The request came in time."""

    async def expired() -> None:
        world.clock.advance(24 * 3600)

    assert (await upload(world, expired)).status == 201
    assert (await world.server.alice.get(NEW)).text == "first second"


async def test_a_second_webid_with_the_key_does_not_replace_the_first(
    world: World,
) -> None:
    """A-162: the request is the first one's. Who stole a key can make such a certificate."""
    card = "/alice/public/card"
    await world.server.alice.put(card, key_turtle(world.key, "#thief"), TURTLE)

    async def removed() -> None:
        world.clock.advance(10)
        await world.say()

    assert_refused(await upload(world, removed, WEB_ID, f"{BASE}{card}#thief"), NO_KEY)
    assert (await world.server.alice.get(NEW)).status == 404
