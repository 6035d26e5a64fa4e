"""Challenges of passkeys, each fact that binds one by itself (A-119)."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.app.system import SystemRandomness
from podstead.core.errors import Overloaded
from podstead.idp.passkeys import challenges as module
from podstead.idp.passkeys.challenges import ADDING, SIGNING_IN, ChallengeInvalid, Challenges
from tests.support.accounts import Office, office


def _challenges(place: Office) -> Challenges:
    return Challenges(store=place.store, clock=place.clock, randomness=SystemRandomness())


async def test_a_challenge_is_taken_for_what_it_was_issued_for(tmp_path: Path) -> None:
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        issued = await challenges.issue(ADDING, holder="mine", account_id="a")
        taken = await challenges.take(issued.challenge_key, ADDING, holder="mine", account_id="a")
        assert bytes.fromhex(taken.challenge) == issued.challenge


@pytest.mark.parametrize(
    ("purpose", "holder", "account_id"),
    [(SIGNING_IN, "mine", "a"), (ADDING, "another's", "a"), (ADDING, "mine", "b")],
)
async def test_a_challenge_is_for_nothing_else(
    tmp_path: Path, purpose: str, holder: str, account_id: str
) -> None:
    """T-75; and the attempt has used it up."""
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        key = (await challenges.issue(ADDING, holder="mine", account_id="a")).challenge_key
        with pytest.raises(ChallengeInvalid):
            await challenges.take(key, purpose, holder=holder, account_id=account_id)
        with pytest.raises(ChallengeInvalid):
            await challenges.take(key, ADDING, holder="mine", account_id="a")


async def test_there_is_room_for_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A-116: past that it is 503, and room again once the oldest are swept."""
    monkeypatch.setattr(module, "MOST_CHALLENGES", 2)
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        for _ in range(2):
            await challenges.issue(SIGNING_IN, holder="mine")
        with pytest.raises(Overloaded):
            await challenges.issue(SIGNING_IN, holder="mine")
        place.clock.move(module.CHALLENGE_S)
        await place.store.sweep(now_ms=place.clock.now_ms())
        await challenges.issue(SIGNING_IN, holder="mine")
