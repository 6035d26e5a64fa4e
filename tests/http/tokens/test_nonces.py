"""Proofs that must hold a nonce, at resources (RFC 9449 section 9, A-113)."""

from __future__ import annotations

import pytest

from podstead.authn.resource_tokens import SLOT_S
from tests.http.tokens.world import DOC, URL, World, assert_refused, prepared
from tests.support.application import Start
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider import App, Provider
from tests.support.signing import set_to

WANTED = "Send the DPoP proof with the nonce of the DPoP-Nonce header"


@pytest.fixture
async def strict(start: Start, clock: FakeClock, provider: Provider) -> World:
    return await prepared(start, clock, provider, dpop_nonce=True)


async def nonce_of(world: World, app: App) -> str:
    nonce = (await world.get(app)).header("dpop-nonce")
    assert nonce is not None
    return nonce


def assert_wanted(answer: Answer) -> None:
    assert_refused(answer, WANTED, "use_dpop_nonce")
    assert answer.header("dpop-nonce")
    assert answer.header("cache-control") == "no-store"


async def test_a_client_that_asks_again_with_the_nonce_gets_the_document(strict: World) -> None:
    """A-113"""
    app = strict.app()
    refused = await strict.get(app)
    assert_wanted(refused)
    nonce = refused.header("dpop-nonce")
    answer = await strict.get(app, set_to("nonce", nonce))
    assert (answer.status, answer.text) == (200, "text")
    assert answer.header("dpop-nonce") is None
    assert answer.header("cache-control") == "private, no-cache"


async def test_a_nonce_serves_many_proofs_each_of_them_once(strict: World) -> None:
    """A-104"""
    app = strict.app()
    nonce = await nonce_of(strict, app)
    fields = app.fields("GET", URL, set_to("nonce", nonce))
    assert (await strict.send(fields)).status == 200
    assert (await strict.get(app, set_to("nonce", nonce))).status == 200
    assert_refused(await strict.send(fields), "DPoP proof jti already used", "invalid_dpop_proof")


@pytest.mark.parametrize("nonce", ["", "other", 1, None, ["x"]])
async def test_another_nonce_is_none(strict: World, nonce: object) -> None:
    """A-113"""
    assert_wanted(await strict.get(strict.app(), set_to("nonce", nonce)))


async def test_the_next_nonce_comes_with_an_answer_before_the_old_one_is_over(
    strict: World,
) -> None:
    """RFC 9449 section 8.2; nobody keeps an answer with a nonce in it."""
    old = await nonce_of(strict, strict.app())
    strict.clock.advance(SLOT_S)
    answer = await strict.get(strict.app(), set_to("nonce", old))
    new = answer.header("dpop-nonce")
    assert answer.status == 200
    assert new not in {None, old}
    assert answer.header("cache-control") == "no-store"
    answer = await strict.get(strict.app(), set_to("nonce", new))
    assert (answer.status, answer.header("dpop-nonce")) == (200, None)
    strict.clock.advance(SLOT_S)
    assert_wanted(await strict.get(strict.app(), set_to("nonce", old)))
    assert (await strict.get(strict.app(), set_to("nonce", new))).status == 200


async def test_a_proof_with_another_fault_gets_that_error(strict: World) -> None:
    app = strict.app()
    nonce = await nonce_of(strict, app)
    answer = await strict.get(app, set_to("htm", "PUT"), set_to("nonce", nonce))
    assert_refused(answer, "DPoP proof is for another method", "invalid_dpop_proof")


async def test_scripts_of_other_origins_may_read_the_nonce(strict: World) -> None:
    app = strict.app()
    fields = {**app.fields("GET", URL), "Origin": "https://app.example"}
    answer = await strict.send(fields)
    exposed = answer.header("access-control-expose-headers") or ""
    assert {"DPoP-Nonce", "WWW-Authenticate"} <= set(exposed.split(", "))


async def test_requests_without_a_proof_get_no_nonce(strict: World) -> None:
    assert (await strict.server.public.get(DOC)).header("dpop-nonce") is None
    assert (await strict.server.alice.get(DOC)).header("dpop-nonce") is None
    assert (await strict.server.alice.get(DOC)).status == 200


async def test_an_answer_with_a_nonce_is_given_to_its_sender_alone(strict: World) -> None:
    """An answer that is kept for an identical request would give out a nonce that is over."""
    fields = {"DPoP": strict.app().fields("GET", URL)["DPoP"]}
    first = await strict.send(fields, target="/alice/")
    strict.clock.advance(3 * SLOT_S)
    second = await strict.send(fields, target="/alice/")
    assert first.header("dpop-nonce") != second.header("dpop-nonce")


async def test_a_request_for_a_nonce_is_not_a_failed_attempt(
    start: Start, clock: FakeClock, provider: Provider
) -> None:
    """A-181: every client begins so."""
    strict = await prepared(
        start, clock, provider, dpop_nonce=True, invalid_credentials_per_minute=1
    )
    for _ in range(3):
        assert_wanted(await strict.get(strict.app()))


async def test_without_the_setting_there_are_no_nonces(world: World) -> None:
    for nonce in ("", "other", 1):
        answer = await world.get(world.app(), set_to("nonce", nonce))
        assert (answer.status, answer.header("dpop-nonce")) == (200, None)
    answer = await world.get(world.app(), set_to("htm", "PUT"))
    assert (answer.status, answer.header("dpop-nonce")) == (401, None)
