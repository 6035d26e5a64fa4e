"""A token that is revoked while a body arrives is not good for storing it (A-33, A-76, A-109).

The body comes piece by piece; between two of them something happens, and time passes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from podstead.app.operator.administration import open_root
from podstead.config import Settings
from podstead.core.caches import BoundedCache
from podstead.storage.layout import RootLayout
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.rdf import TURTLE
from tests.support.token_world import NOT_NAMED, World, assert_refused

Step = Callable[[], Awaitable[object]]
NEW = "/alice/private/new"
PIECES = {
    "text/plain": [b"first ", b"second"],
    "application/octet-stream": [bytes(range(256)) * 1024] * 2,
    TURTLE: [b"<#a> <#b> ", b"1 ."],
}
CONTENT = pytest.mark.parametrize("content_type", PIECES)


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock)


def blobs(settings: Settings) -> list[Path]:
    return [path for path in RootLayout(settings.root).blobs.rglob("*") if path.is_file()]


async def upload(
    server: Server, content_type: str, meanwhile: Step, fields: dict[str, str] | None = None
) -> Answer:
    """PUT a new resource of Alice's; ``meanwhile`` happens before its second half."""

    async def pieces() -> AsyncIterator[bytes]:
        first, second = PIECES[content_type]
        yield first
        await meanwhile()
        yield second

    headers = {"Content-Type": content_type, "Transfer-Encoding": "chunked", **(fields or {})}
    client = server.public if fields else server.alice
    return await client.request("PUT", NEW, headers=headers, body=pieces())


async def is_there(server: Server) -> bool:
    """By a token that nothing happened to."""
    listed = await server.bob.get(NEW)
    assert listed.status in {200, 404}
    return listed.status == 200


@pytest.fixture
async def seen_by_bob(server: Server) -> None:
    place = "/alice/private/"
    answer = await server.put_acl(place, (f"acl:agent <{server.bob_web_id}>", "+Read"))
    assert answer.status in {201, 204}


@CONTENT
async def test_a_simple_token_that_is_revoked_meanwhile_stores_nothing(
    server: Server, seen_by_bob: None, settings: Settings, clock: FakeClock, content_type: str
) -> None:
    """A-33: neither a resource nor a file of it."""
    before = blobs(settings)

    async def revoked() -> None:
        clock.advance(10)
        async with open_root(settings) as root:
            await root.tokens.revoke_all("alice")

    answer = await upload(server, content_type, revoked)
    assert (answer.status, answer.json()["message"]) == (401, "Invalid token")
    assert not await is_there(server)
    assert blobs(settings) == before


@CONTENT
async def test_a_token_that_nothing_happens_to_stores_what_comes_slowly(
    server: Server, seen_by_bob: None, clock: FakeClock, content_type: str
) -> None:
    """Also if it expires meanwhile: the request came in time."""

    async def a_year() -> None:
        clock.advance(365 * 24 * 3600)

    answer = await upload(server, content_type, a_year)
    assert answer.status == 201, answer.text
    assert (await server.alice.get(NEW)).status == 401
    clock.advance(-365 * 24 * 3600)
    assert await is_there(server)


async def test_a_token_that_a_restart_has_forgotten_is_looked_at_as_well(
    server: Server, seen_by_bob: None, settings: Settings, clock: FakeClock
) -> None:
    """What was verified is kept in memory for so many tokens."""
    tokens = server.application._authenticator._pod_tokens

    async def revoked() -> None:
        tokens._verified.clear()
        clock.advance(365 * 24 * 3600)
        async with open_root(settings) as root:
            await root.tokens.revoke_all("alice")

    assert (await upload(server, "text/plain", revoked)).status == 401
    clock.advance(-365 * 24 * 3600)
    assert not await is_there(server)


async def test_content_that_comes_at_once_is_stored_without_another_look(
    server: Server, seen_by_bob: None, settings: Settings
) -> None:
    """A revocation of the same second might as well have come later."""

    async def revoked() -> None:
        async with open_root(settings) as root:
            await root.tokens.revoke_all("alice")

    assert (await upload(server, "text/plain", revoked)).status == 201
    assert await is_there(server)


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_provider_that_the_webid_names_no_more_stores_nothing(
    world: World, forgotten: bool
) -> None:
    """A-109; and one that it goes on to name does, though the token expires."""
    fields = world.app().fields("PUT", f"{BASE}{NEW}")

    async def goes_on() -> None:
        world.clock.advance(24 * 3600)
        if forgotten:
            world.server.application._authenticator._resource_tokens._verified = BoundedCache(1)

    answer = await upload(world.server, "text/plain", goes_on, fields)
    assert answer.status == 201, answer.text
    world.clock.advance(-24 * 3600)

    async def not_named() -> None:
        world.clock.advance(3600)
        await world.name_issuer("https://another.example")

    fields = world.app().fields("PUT", f"{BASE}{NEW}")
    answer = await upload(world.server, "text/plain", not_named, fields)
    assert_refused(answer, NOT_NAMED)
