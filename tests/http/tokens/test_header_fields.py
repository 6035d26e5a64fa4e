"""How a token and its proof are sent, and how not (A-1 to A-6)."""

from __future__ import annotations

import pytest

from tests.http.tokens.world import (
    URL,
    World,
    assert_refused,
)
from tests.support.application import BASE
from tests.support.signing import (
    set_to,
    without,
)


async def test_a_token_without_a_proof_is_refused(world: World) -> None:
    fields = world.app().fields("GET", URL)
    del fields["DPoP"]
    assert_refused(await world.send(fields), "Missing DPoP proof header", "invalid_dpop_proof")


async def test_two_proofs_are_refused(world: World) -> None:
    """A-6."""
    app = world.app()
    first, second = app.fields("GET", URL), app.fields("GET", URL)
    fields = [*first.items(), ("DPoP", second["DPoP"])]
    assert_refused(await world.send(fields), "Send only one DPoP header", "invalid_dpop_proof")
    merged = {**first, "DPoP": f"{first['DPoP']}, {second['DPoP']}"}
    assert_refused(await world.send(merged), "Invalid token", "invalid_dpop_proof")


async def test_two_credentials_are_a_bad_request(world: World) -> None:
    """A-6."""
    fields = world.app().fields("GET", URL)
    twice = [*fields.items(), ("Authorization", fields["Authorization"])]
    assert (await world.send(twice)).status == 400
    merged = {**fields, "Authorization": f"{fields['Authorization']}, Nostr abc"}
    answer = await world.send(merged)
    assert (answer.status, answer.json()["error"]) == (400, "Bad Request")


async def test_a_credential_of_more_than_16_kibibytes_is_too_large(world: World) -> None:
    """A-3."""
    fields = world.app().fields("GET", URL)
    for size, status in ((16 * 1024 - 5, 401), (16 * 1024 - 4, 431)):
        answer = await world.send({**fields, "Authorization": f"DPoP {'a' * size}"})
        assert answer.status == status, size


@pytest.mark.parametrize("token", ["", " ", "é.é.é", "a b", "a,b", "=a", '"a"', "a==b"])
async def test_text_that_cannot_be_a_token_is_refused(world: World, token: str) -> None:
    """A-3: by its characters alone."""
    fields = {**world.app().fields("GET", URL), "Authorization": f"DPoP {token}"}
    assert_refused(await world.send(fields), "Invalid token")


async def test_a_bound_token_sent_as_bearer_is_refused(world: World) -> None:
    """W-6."""
    for app in (world.app(), world.app(without("cnf"))):
        answer = await world.send({"Authorization": f"Bearer {app.token}"})
        assert answer.status == 401
        dpop, bearer, _ = answer.header_lines("www-authenticate")
        assert "error=" not in dpop
        assert 'error="invalid_token"' in bearer
    assert world.provider.asked == []


async def test_options_is_never_authenticated(world: World) -> None:
    """A-1."""
    fields = {
        "Authorization": "DPoP rubbish",
        "DPoP": "rubbish",
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization, dpop",
    }
    answer = await world.send(fields, "OPTIONS")
    assert answer.status == 204
    assert answer.header("access-control-allow-headers") == "authorization, dpop"
    exposed = (await world.send(fields)).header("access-control-expose-headers") or ""
    assert {"www-authenticate", "dpop-nonce"} <= {
        name.strip().lower() for name in exposed.split(",")
    }


async def test_an_invalid_token_is_refused_although_the_public_has_access(world: World) -> None:
    """A-5, W-13."""
    assert (await world.server.public.get("/alice/")).status == 200
    fields = world.app().fields("GET", f"{BASE}/alice/", set_to("htm", "PUT"))
    assert (await world.send(fields, target="/alice/")).status == 401


async def test_a_proof_of_another_url_is_no_reason_to_redirect(world: World) -> None:
    """A-102: the slash is not corrected, since the proof is for one URL only."""
    assert (await world.server.alice.get("/alice/private/")).status == 200
    answer = await world.send(
        world.app().fields("GET", f"{BASE}/alice/private"), target="/alice/private"
    )
    assert answer.status == 404
    assert answer.header("location") is None
