"""Signing in with a password: who is let in, how often others may guess, and what time tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podstead.app.adapters.passwords import Argon2Passwords, HashCost
from podstead.core.errors import BadRequest, Conflict, NotFound, Overloaded, RateLimited
from podstead.idp import challenges as module
from podstead.idp.challenges import ChallengeInvalid, Challenges
from podstead.idp.passwords import PasswordCheck
from podstead.idp.records import Challenge
from podstead.idp.sign_in import FailureLimits, SignInFailed
from podstead.storage.record_store import RecordKind
from podstead.storage.records import Entry, EntryId
from tests.support.accounts import ADDRESS, BASE, CHEAP, Office, office, password_of

OTHER_ADDRESS = "192.0.2.2"
WRONG = "a wrong password"
OFF = FailureLimits(per_minute=0, per_minute_of_account=0, in_a_row=0, per_hour=0)
UNLIMITED_IN_A_ROW = FailureLimits(in_a_row=0, per_hour=0)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path / "root") as desk:
        await desk.new_account()
        yield desk


async def outcome(
    desk: Office, password: str = WRONG, *, login: str = "alice", address: str = ADDRESS
) -> str | int:
    """``in``, ``wrong``, or the seconds to wait."""
    try:
        await desk.services.sign_in.verify(login, password, address=address)
    except SignInFailed:
        return "wrong"
    except RateLimited as limited:
        return limited.retry_after_s
    return "in"


async def right(desk: Office, *, address: str = ADDRESS) -> str | int:
    return await outcome(desk, password_of("alice"), address=address)


# --- who is let in -----------------------------------------------------------------------------


async def test_name_and_address_serve_alike_and_so_do_forms_of_unicode(desk: Office) -> None:
    """A-93"""
    account = await desk.services.accounts.find("alice")
    assert account is not None
    await desk.services.accounts.set_password(account.key, "pässwörter")
    for login in ("alice", "ALICE", "alice@example.org"):
        assert await outcome(desk, "pa\u0308sswo\u0308rter", login=login) == "in"
    assert await outcome(desk, "PÄSSWÖRTER") == "wrong"


@pytest.mark.parametrize("password", ["", "a" * 5000, "\x00", "\ud800", "the password of alice "])
async def test_what_no_password_is_is_a_wrong_one(desk: Office, password: str) -> None:
    assert await outcome(desk, password) == "wrong"


@pytest.mark.parametrize("login", ["", "@", "a" * 300, "bob", "bob@example.org", "\x00", "é"])
async def test_a_name_that_leads_nowhere_is_refused_like_a_wrong_password(
    desk: Office, login: str
) -> None:
    """A-182"""
    assert await outcome(desk, password_of("alice"), login=login) == "wrong"


async def test_a_password_is_rehashed_when_the_cost_has_increased(tmp_path: Path) -> None:
    """A-93"""
    async with office(tmp_path / "root") as desk:
        before = (await desk.new_account()).value.password_hash
    dearer = Argon2Passwords(HashCost(memory_kib=16, passes=1))
    async with office(tmp_path / "root", passwords=dearer) as desk:
        assert await outcome(desk) == "wrong"
        signed_in = await desk.services.sign_in.verify(
            "alice", password_of("alice"), address=ADDRESS
        )
        account = signed_in.account
        assert account.password_hash is not None
        assert account.password_hash != before
        assert "m=16," in account.password_hash
        assert await desk.read(account.account_id) == signed_in.stored
        assert await right(desk) == "in"
        assert (await desk.read(account.account_id)).value == account  # and not every time


# --- what time tells ---------------------------------------------------------------------------


@dataclass
class Counting:
    """Compares passwords and counts how often."""

    real: Argon2Passwords = field(default_factory=lambda: Argon2Passwords(CHEAP))
    compared: list[bool] = field(default_factory=list)

    async def hash(self, password: str, *, network: str) -> str:
        return await self.real.hash(password, network=network)

    async def verify(
        self, password_hash: str | None, password: str, *, network: str
    ) -> PasswordCheck:
        self.compared.append(password_hash is not None)
        return await self.real.verify(password_hash, password, network=network)


async def test_unknown_and_known_accounts_take_the_same_steps(tmp_path: Path) -> None:
    """A-182, W-15: exactly one hash, whoever is named and whatever is typed."""
    counting = Counting()
    async with office(tmp_path / "root", passwords=counting, limits=OFF) as desk:
        await desk.new_account()
        cases = [("alice", WRONG), ("bob", WRONG), ("a" * 300, WRONG), ("alice", "a" * 5000)]
        for login, password in cases:
            counting.compared.clear()
            assert await outcome(desk, password, login=login) == "wrong"
            assert len(counting.compared) == 1


async def test_a_password_changed_while_it_was_compared_lets_nobody_in(tmp_path: Path) -> None:
    """A-76"""

    class ChangedMeanwhile(Counting):
        async def verify(
            self, password_hash: str | None, password: str, *, network: str
        ) -> PasswordCheck:
            verdict = await super().verify(password_hash, password, network=network)
            account = await opened.services.accounts.find("alice")
            assert account is not None
            await opened.services.accounts.set_password(account.key, "another password")
            return verdict

    async with office(tmp_path / "root", passwords=ChangedMeanwhile()) as opened:
        await opened.new_account()
        assert await right(opened) == "wrong"


async def test_an_attempt_that_has_to_wait_costs_no_hash(tmp_path: Path) -> None:
    """A-181: the limit protects the machine as well."""
    counting = Counting()
    async with office(tmp_path / "root", passwords=counting) as desk:
        await desk.new_account()
        for _ in range(5):
            assert await outcome(desk) == "wrong"
        counting.compared.clear()
        assert await right(desk) == 1
        assert counting.compared == []


# --- how often others may guess ----------------------------------------------------------------


async def test_limits_are_there_from_the_first_request_on(tmp_path: Path) -> None:
    """A-180, W-8: ten guesses a minute of one address at one account, and no eleventh is looked
    at, right or wrong; others are not in the way."""
    async with office(tmp_path / "root", limits=UNLIMITED_IN_A_ROW) as desk:
        await desk.new_account("alice")
        await desk.new_account("bob")
        assert [await outcome(desk) for _ in range(11)] == ["wrong"] * 10 + [6]
        assert await right(desk) == 6
        assert await outcome(desk, password_of("alice"), login="ALICE") == 6
        assert await right(desk, address=OTHER_ADDRESS) == "in"
        assert await outcome(desk, password_of("bob"), login="bob") == "in"
        desk.clock.advance(5)
        assert await right(desk) == 1
        desk.clock.advance(1)
        assert await right(desk) == "in"


async def test_an_address_has_sixty_guesses_a_minute_at_all_accounts_together(
    tmp_path: Path,
) -> None:
    """A-181: those that do not exist count as well."""
    async with office(tmp_path / "root", limits=UNLIMITED_IN_A_ROW) as desk:
        await desk.new_account()
        guesses = [await outcome(desk, login=f"name{index}") for index in range(61)]
        assert guesses == ["wrong"] * 60 + [1]
        assert await right(desk) == 1
        assert await right(desk, address=OTHER_ADDRESS) == "in"


@pytest.mark.parametrize("login", ["alice", "nobody"])
async def test_workers_and_addresses_share_the_failures_in_a_row(
    tmp_path: Path, login: str
) -> None:
    """A-180, A-181, A-182: an account that there is not waits like one that there is."""
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:
        await one.new_account()
        other.clock = one.clock
        for index, desk in enumerate([one, other, one, other, one]):
            assert await outcome(desk, login=login, address=f"192.0.2.{index}") == "wrong"
        for desk in (one, other):
            assert await outcome(desk, login=login, address="192.0.2.9") == 1


async def test_a_wait_doubles_and_a_success_ends_it(desk: Office) -> None:
    """A-181"""
    for wait_s in (0, 0, 0, 0, 0, 1, 2, 4):
        desk.clock.advance(wait_s)
        assert await outcome(desk, address=f"192.0.2.{wait_s}") == "wrong"
    assert await right(desk) == 8
    desk.clock.advance(8)
    assert await right(desk) == "in"
    assert await outcome(desk) == "wrong"
    assert await right(desk) == "in"


async def test_successes_never_count(desk: Office) -> None:
    """A-181"""
    assert [await right(desk) for _ in range(100)] == ["in"] * 100


async def test_limits_of_zero_are_off(tmp_path: Path) -> None:
    """A-181"""
    async with office(tmp_path / "root", limits=OFF) as desk:
        await desk.new_account()
        assert [await outcome(desk) for _ in range(150)] == ["wrong"] * 150
        assert await right(desk) == "in"


async def test_guesses_sent_at_once_are_answered_no_more_than_others(tmp_path: Path) -> None:
    """A-181: forty at once, from as many addresses and at two workers, the last one right."""
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:
        await one.new_account()
        guesses = [
            outcome((one, other)[index % 2], f"guess {index}", address=f"192.0.2.{index}")
            for index in range(40)
        ]
        answers = await asyncio.gather(*guesses, right(one, address="192.0.2.99"))
        assert answers.count("wrong") <= 5
        assert all(answer == "wrong" or isinstance(answer, int) for answer in answers[:-1])


@pytest.mark.parametrize("limits", [FailureLimits(), UNLIMITED_IN_A_ROW])
async def test_a_guess_counts_before_it_is_compared(tmp_path: Path, limits: FailureLimits) -> None:
    """A-181: at two workers, where each comparison lasts until nothing else happens any more."""

    class Slow(Counting):
        async def verify(
            self, password_hash: str | None, password: str, *, network: str
        ) -> PasswordCheck:
            verdict = await super().verify(password_hash, password, network=network)
            await asyncio.sleep(0.05)
            return verdict

    slow, allowed = Slow(), limits.in_a_row or limits.per_minute_of_account
    async with (
        office(tmp_path / "root", passwords=slow, limits=limits) as one,
        office(tmp_path / "root", passwords=slow, limits=limits) as other,
    ):
        await one.new_account()
        other.clock = one.clock
        guesses = [outcome((one, other)[index % 2], f"guess {index}") for index in range(30)]
        answers = await asyncio.gather(*guesses, right(one), right(other))
        assert answers.count("wrong") == len(slow.compared) == allowed
        assert answers.count("in") == 0


async def test_right_passwords_sent_at_once_are_not_refused(tmp_path: Path) -> None:
    """A-181: more of them than may fail."""
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:
        await one.new_account()
        for _ in range(2):
            attempts = [right((one, other)[index % 2]) for index in range(20)]
            assert await asyncio.gather(*attempts) == ["in"] * 20
        assert [await outcome(one) for _ in range(6)] == ["wrong"] * 5 + [1]


async def test_a_comparison_that_fails_counts(tmp_path: Path) -> None:
    """Nobody may guess by having the server break off."""

    class Busy(Counting):
        async def verify(self, *_: object, **__: object) -> PasswordCheck:
            raise Overloaded

    async with office(tmp_path / "root", passwords=Busy()) as desk:
        await desk.new_account()
        for _ in range(5):
            with pytest.raises(Overloaded):
                await right(desk)
        assert await right(desk) == 1


async def test_the_attempt_that_would_pause_the_name_is_forgiven_if_it_is_right(
    tmp_path: Path,
) -> None:
    limits = FailureLimits(in_a_row=0, per_hour=3, per_minute_of_account=0)
    async with office(tmp_path / "root", limits=limits) as desk:
        await desk.new_account()
        assert [await outcome(desk) for _ in range(2)] == ["wrong"] * 2
        assert [await right(desk) for _ in range(2)] == ["in"] * 2
        assert await outcome(desk) == "wrong"
        assert await right(desk) == 900


# --- Challenges, each fact that binds one by itself (A-119, A-126) -----------------------------


ADDING, SIGNING_IN = "add", "sign-in"
CHALLENGE_S = 300
OF_A_KIND = RecordKind("some-challenge", Challenge)


def _challenges(place: Office) -> Challenges:
    return Challenges(OF_A_KIND, lifetime_s=CHALLENGE_S, records=place.services.records)


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
        kind = RecordKind("other-challenge", Challenge)
        others = Challenges(kind, lifetime_s=CHALLENGE_S, records=place.services.records)
        key = (await _challenges(place).issue(SIGNING_IN, holder="mine")).challenge_key
        with pytest.raises(ChallengeInvalid):
            await others.take(key, SIGNING_IN, holder="mine")


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


# --- client credentials ------------------------------------------------------------------------
#
# Client credentials: made, listed and ended by the account that they act as.


@pytest.fixture
async def credentials_desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path / "root") as credentials_desk:
        yield credentials_desk


async def test_client_credentials_are_listed_and_ended_by_their_account_only(
    credentials_desk: Office,
) -> None:
    """A-67, A-86"""
    alice, bob = (
        await credentials_desk.new_account("alice"),
        await credentials_desk.new_account("bob"),
    )
    credentials = credentials_desk.services.credentials
    first = await credentials.create(alice, name=" backup ", web_id=alice.value.web_id)
    credentials_desk.clock.advance(1)
    second = await credentials.create(alice)
    assert first.credential.name == "backup"
    assert [each.credential_id for each in await credentials.of(alice.key)] == [
        first.credential.credential_id,
        second.credential.credential_id,
    ]
    assert list(await credentials.of(bob.key)) == []
    with pytest.raises(NotFound):
        await credentials.delete(bob.key, first.credential.credential_id)
    await credentials.delete(alice.key, first.credential.credential_id)
    assert list(await credentials.of(alice.key)) == [second.credential]
    with pytest.raises(NotFound):
        await credentials.delete(alice.key, first.credential.credential_id)


async def test_a_client_secret_needs_no_encoding_and_is_not_kept(credentials_desk: Office) -> None:
    """A-62, A-185"""
    alice = await credentials_desk.new_account()
    made = await credentials_desk.services.credentials.create(alice)
    for text in (made.secret, made.credential.credential_id):
        assert text.isascii()
        assert text.replace("-", "").replace("_", "").isalnum()
    assert len(made.secret) >= 43  # at least 256 bits in any of these letters
    await credentials_desk.store.close()
    stored = b"".join(
        path.read_bytes() for path in credentials_desk.root.rglob("*") if path.is_file()
    )
    assert made.credential.credential_id.encode() in stored
    assert made.secret.encode() not in stored
    await credentials_desk.store.open()


async def test_client_credentials_are_for_the_accounts_own_webid(credentials_desk: Office) -> None:
    """A-67"""
    alice = await credentials_desk.new_account()
    credentials = credentials_desk.services.credentials
    for web_id, name in ((f"{BASE}/bob/#me", ""), ("", ""), (None, "x" * 101)):
        with pytest.raises(BadRequest):
            await credentials.create(alice, web_id=web_id, name=name)
    assert list(await credentials.of(alice.key)) == []


async def test_an_account_has_a_hundred_client_credentials_at_most(
    credentials_desk: Office,
) -> None:
    alice = await credentials_desk.new_account()
    for _ in range(100):
        await credentials_desk.services.credentials.create(alice)
    with pytest.raises(Conflict):
        await credentials_desk.services.credentials.create(alice)
    assert len(await credentials_desk.services.credentials.of(alice.key)) == 100
