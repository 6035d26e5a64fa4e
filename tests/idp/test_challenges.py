"""Challenges, each fact that binds one by itself (A-119, A-126)."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.core.errors import Overloaded
from podstead.idp import challenges as module
from podstead.idp.challenges import ChallengeInvalid, Challenges
from podstead.idp.nostr.challenges import nostr_challenges
from podstead.idp.passkeys.ceremonies import ADDING, CHALLENGE_S, SIGNING_IN
from podstead.idp.records import PASSKEY_CHALLENGES
from podstead.storage.records import Entry, EntryId
from tests.support.accounts import Office, office


def _challenges(place: Office) -> Challenges:
    return Challenges(PASSKEY_CHALLENGES, lifetime_s=CHALLENGE_S, records=place.services.records)


async def test_a_challenge_is_taken_for_what_it_was_issued_for(tmp_path: Path) -> None:
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        issued = await challenges.issue(
            ADDING, holder="mine", account_id="a", user_handle="h", suffix="uid"
        )
        key = issued.challenge_key
        taken = await challenges.take(key, ADDING, holder="mine", account_id="a")
        assert (taken.account_id, taken.user_handle) == ("a", "h")
        assert (issued.challenge, module.suffix_of(key)) == (module.challenge_of(key), "uid")
        assert len(bytes.fromhex(issued.challenge)) == 32


async def test_a_challenge_is_of_one_kind(tmp_path: Path) -> None:
    async with office(tmp_path / "root") as place:
        of_nostr = nostr_challenges(place.services.records)
        key = (await _challenges(place).issue(SIGNING_IN, holder="mine")).challenge_key
        with pytest.raises(ChallengeInvalid):
            await of_nostr.take(key, SIGNING_IN, holder="mine")


@pytest.mark.parametrize(
    ("purpose", "holder", "account_id"),
    [(SIGNING_IN, "mine", "a"), (ADDING, "another's", "a"), (ADDING, "mine", "b")],
)
async def test_a_challenge_is_for_nothing_else(
    tmp_path: Path, purpose: str, holder: str, account_id: str
) -> None:
    """And the attempt has used it up."""
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        key = (await challenges.issue(ADDING, holder="mine", account_id="a")).challenge_key
        with pytest.raises(ChallengeInvalid):
            await challenges.take(key, purpose, holder=holder, account_id=account_id)
        with pytest.raises(ChallengeInvalid):
            await challenges.take(key, ADDING, holder="mine", account_id="a")


async def test_of_two_concurrent_attempts_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-119, A-126: by two workers, both of which still found it."""
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        key = (await challenges.issue(SIGNING_IN, holder="mine")).challenge_key
        read_entry = place.store.read_entry

        async def read_and_be_overtaken(entry: EntryId, *, now_ms: int) -> Entry | None:
            found = await read_entry(entry, now_ms=now_ms)
            monkeypatch.undo()
            await challenges.take(key, SIGNING_IN, holder="mine")
            return found

        monkeypatch.setattr(place.store, "read_entry", read_and_be_overtaken)
        with pytest.raises(ChallengeInvalid):
            await challenges.take(key, SIGNING_IN, holder="mine")


async def test_there_is_room_for_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A-116: past that it is 503, and room again once the oldest are swept."""
    monkeypatch.setattr(module, "MAX_CHALLENGES", 2)
    async with office(tmp_path / "root") as place:
        challenges = _challenges(place)
        for _ in range(2):
            await challenges.issue(SIGNING_IN, holder="mine")
        with pytest.raises(Overloaded):
            await challenges.issue(SIGNING_IN, holder="mine")
        place.clock.advance(CHALLENGE_S)
        await place.store.sweep(now_ms=place.clock.now_ms())
        await challenges.issue(SIGNING_IN, holder="mine")
