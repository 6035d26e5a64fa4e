"""A proof is for one request, by the key that the token is bound to, and once (A-100 to A-106)."""

from __future__ import annotations

import pytest

from podstead.authn.resource_tokens import SLOT_S
from tests.support.application import Start
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider import CONFIGURATION, KEYS, App, Page, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import (
    Change,
    Signer,
    set_to,
    with_other_signature,
    without,
)
from tests.support.token_world import (
    DOC,
    ISSUER_TERM,
    NOT_NAMED,
    URL,
    World,
    assert_refused,
    prepared,
)

BAD_PROOFS: dict[str, tuple[Change, str]] = {
    "method": (set_to("htm", "POST"), "DPoP proof is for another method"),
    "path": (set_to("htu", f"{URL}x"), "DPoP proof is for another URL"),
    "slash": (set_to("htu", f"{URL}/"), "DPoP proof is for another URL"),
    "port": (set_to("htu", f"http://localhost{DOC}"), "DPoP proof is for another URL"),
    "scheme": (set_to("htu", f"https://localhost:3000{DOC}"), "DPoP proof is for another URL"),
    "old": (set_to("iat", 1), "DPoP proof is too old or from the future"),
    "future": (set_to("iat", 2_000_000_000), "DPoP proof is too old or from the future"),
    "jti": (without("jti"), "DPoP proof lacks a jti"),
}


@pytest.mark.parametrize(("change", "phrase"), BAD_PROOFS.values(), ids=BAD_PROOFS)
async def test_a_wrong_proof_is_refused_without_any_fetch(
    world: World, change: Change, phrase: str
) -> None:
    """A-100."""
    assert_refused(await world.get(world.app(), change), phrase, "invalid_dpop_proof")
    assert world.provider.asked == []


async def test_a_proof_that_its_key_did_not_sign_is_refused_without_any_fetch(
    world: World,
) -> None:
    """A-100, A-101."""
    fields = world.app().fields("GET", URL)
    fields["DPoP"] = with_other_signature(fields["DPoP"])
    assert_refused(await world.send(fields), "Invalid token", "invalid_dpop_proof")
    assert world.provider.asked == []


async def test_a_proof_by_another_key_is_refused_without_any_fetch(world: World) -> None:
    """A-106: a stolen token is of no use."""
    answer = await world.get(world.app(), key=Signer.new("ES256"))
    assert_refused(answer, "The token is bound to another key")
    assert world.provider.asked == []


async def test_a_proof_opens_the_document_once(world: World) -> None:
    """A-104: an answer that was kept is none for a proof that was used."""
    app = world.app()
    fields = app.fields("GET", URL)
    assert (await world.send(fields)).status == 200
    for _ in range(2):
        assert_refused(
            await world.send(fields), "DPoP proof jti already used", "invalid_dpop_proof"
        )
    assert (await world.get(app)).status == 200


async def test_a_proof_is_used_up_by_another_request_too(world: World) -> None:
    """A-104: by the key and the jti, not by the proof's text."""
    app = world.app()
    same = set_to("jti", "0123456789")
    assert (await world.get(app, same)).status == 200
    assert (await world.get(app, same, set_to("iat", world.now_s - 7))).status == 401
    assert (await world.get(world.app(), same)).status == 200


async def test_a_proof_is_remembered_as_long_as_it_would_be_accepted(world: World) -> None:
    """A-104: from the future, to its last second; then it is too old."""
    fields = world.app().fields("GET", URL, set_to("iat", world.now_s + 120))
    assert (await world.send(fields)).status == 200
    world.clock.advance(420)
    assert_refused(await world.send(fields), "DPoP proof jti already used", "invalid_dpop_proof")
    world.clock.advance(1)
    assert_refused(
        await world.send(fields), "DPoP proof is too old or from the future", "invalid_dpop_proof"
    )


async def test_a_refused_request_does_not_use_its_proof_up(world: World) -> None:
    """A-104: rubbish fills no store."""
    await world.name_issuer()
    app = world.app()
    fields = app.fields("GET", URL)
    assert_refused(await world.send(fields), NOT_NAMED)
    await world.name_issuer(world.provider.issuer)
    assert (await world.send(fields)).status == 200


async def test_replayed_proofs_can_be_permitted(
    start: Start, clock: FakeClock, provider: Provider
) -> None:
    world = await prepared(start, clock, provider, refuse_replayed_proofs=False)
    fields = world.app().fields("GET", URL)
    for _ in range(2):
        assert (await world.send(fields)).status == 200


# --- Proofs that must hold a nonce, at resources (RFC 9449 section 9, A-113) -------------------


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


# --- passing trouble ---------------------------------------------------------------------------
#
# What fails for a reason that may pass is 503 with Retry-After: it makes no credential invalid.


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
