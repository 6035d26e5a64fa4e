"""A proof is for one request, by the key that the token is bound to, and once (A-100 to A-106)."""

from __future__ import annotations

import pytest

from tests.http.tokens.world import (
    DOC,
    NOT_NAMED,
    URL,
    World,
    assert_refused,
    prepared,
)
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider
from tests.support.signing import (
    Change,
    Signer,
    set_to,
    with_other_signature,
    without,
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
