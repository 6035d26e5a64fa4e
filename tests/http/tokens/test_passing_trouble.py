"""What fails for a reason that may pass is 503 with Retry-After: it makes no credential invalid."""

from __future__ import annotations

import pytest

from tests.http.tokens.world import ISSUER_TERM, World
from tests.support.asgi import Answer
from tests.support.provider import CONFIGURATION, KEYS, Page, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import set_to

STATUSES = (500, 503, 429, 408)


def assert_passing(answer: Answer) -> None:
    assert answer.status == 503, answer.text
    assert answer.header("www-authenticate") is None
    assert int(answer.header("retry-after") or 0) > 0


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
async def test_an_unreachable_provider_makes_no_token_invalid(
    world: World, path: str, status: int
) -> None:
    kept = world.provider.pages[path]
    world.provider.pages[path] = Page(b"", status=status)
    for _ in range(2):
        assert_passing(await world.get(world.app()))
    world.provider.pages[path] = kept
    world.clock.advance(61)
    assert (await world.get(world.app())).status == 200


@pytest.mark.parametrize("status", STATUSES)
async def test_a_webid_whose_document_cannot_be_had_makes_no_token_invalid(
    world: World, elsewhere: Provider, status: int
) -> None:
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    elsewhere.pages["/carol"] = Page(b"", status=status)
    for _ in range(2):
        assert_passing(await world.get(world.app(web_id=web_id)))
    stated = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    elsewhere.pages["/carol"] = Page(stated.encode(), TURTLE)
    world.clock.advance(61)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_strangers_who_name_a_dead_port_stop_no_other_origin_of_the_host(
    world: World, elsewhere: Provider
) -> None:
    for number in range(10):
        app = world.app(set_to("iss", f"http://localhost:1/{number}"))
        assert_passing(await world.get(app))
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    stated = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    elsewhere.pages["/carol"] = Page(stated.encode(), TURTLE)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_failing_webids_of_an_origin_do_not_stop_its_provider(
    world: World,
) -> None:
    """The purposes are apart."""
    provider = world.provider
    for number in range(10):
        provider.pages[f"/{number}"] = Page(b"", status=500)
        app = world.app(web_id=f"{provider.issuer}/{number}#me")
        assert_passing(await world.get(app))
    world.clock.advance(16 * 60)  # its keys are to be read again
    assert (await world.get(world.app())).status == 200
