"""How passwords are hashed (A-93, A-182)."""

from __future__ import annotations

import asyncio
import threading

import argon2
import pytest

from podstead.app import passwords
from podstead.app.passwords import Argon2Passwords, HashCost
from podstead.core.errors import Overloaded, StorageError
from podstead.idp.passwords import Verdict

CHEAP = HashCost(memory_kib=8, passes=1)


async def test_a_hash_is_argon2id_of_enough_memory_and_passes() -> None:
    """A-93, W-15: and a second library of the same parameters agrees."""
    hasher = Argon2Passwords()
    encoded = await hasher.hash("correct horse battery staple")
    found = argon2.extract_parameters(encoded)
    assert found.type is argon2.Type.ID
    assert found.memory_cost >= 19 * 1024
    assert (found.time_cost, found.parallelism) == (2, 1)
    assert (found.salt_len, found.hash_len) == (16, 32)
    assert argon2.PasswordHasher().verify(encoded, "correct horse battery staple")
    assert await hasher.verify(encoded, "correct horse battery staple") is Verdict.RIGHT
    assert await hasher.verify(encoded, "correct horse battery stable") is Verdict.WRONG


async def test_two_hashes_of_one_password_differ() -> None:
    hasher = Argon2Passwords(CHEAP)
    assert await hasher.hash("password123") != await hasher.hash("password123")


async def test_every_character_counts_however_long_the_password() -> None:
    """A-93, W-15: bcrypt forgets what is behind 72 bytes."""
    hasher = Argon2Passwords(CHEAP)
    encoded = await hasher.hash("a" * 1023 + "b")
    assert await hasher.verify(encoded, "a" * 1023 + "b") is Verdict.RIGHT
    assert await hasher.verify(encoded, "a" * 1023 + "c") is Verdict.WRONG


async def test_a_hash_of_another_cost_is_outdated() -> None:
    """A-93"""
    encoded = await Argon2Passwords(CHEAP).hash("password123")
    hasher = Argon2Passwords(HashCost(memory_kib=16, passes=1))
    assert await hasher.verify(encoded, "password123") is Verdict.RIGHT_BUT_OUTDATED
    assert await hasher.verify(encoded, "password124") is Verdict.WRONG


async def test_nobodys_password_is_compared_at_the_same_cost_and_is_wrong() -> None:
    """A-182"""
    cost = HashCost(memory_kib=16, passes=3)
    hasher = Argon2Passwords(cost)
    found = argon2.extract_parameters(hasher._nobodys_hash)
    own = argon2.extract_parameters(await hasher.hash("password123"))
    assert found == own
    assert await hasher.verify(None, "password123") is Verdict.WRONG


async def test_a_damaged_hash_is_trouble_and_no_wrong_password() -> None:
    hasher = Argon2Passwords(CHEAP)
    with pytest.raises(StorageError):
        await hasher.verify("$argon2id$v=19$m=8,t=1,p=1$c2FsdA", "password123")


async def test_when_too_many_wait_the_next_one_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A-93: and places are free again afterwards."""
    hasher = Argon2Passwords(CHEAP, most_at_once=3)
    held = threading.Event()
    at_once: list[int] = []
    compare = hasher._compare

    def slow(password_hash: str, password: str) -> Verdict:
        at_once.append(1)
        held.wait()
        return compare(password_hash, password)

    monkeypatch.setattr(hasher, "_compare", slow)
    waiting = [asyncio.ensure_future(hasher.verify(None, "x")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await hasher.verify(None, "x")
    with pytest.raises(Overloaded):
        await hasher.hash("password123")
    assert len(at_once) <= passwords.THREADS
    held.set()
    assert await asyncio.gather(*waiting) == [Verdict.WRONG] * 3
    assert await hasher.verify(None, "x") is Verdict.WRONG


async def test_a_request_that_is_given_up_keeps_its_place_until_its_hash_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hasher = Argon2Passwords(CHEAP, most_at_once=1)
    held, begun = threading.Event(), threading.Event()

    def slow(_: str, __: str) -> Verdict:
        begun.set()
        held.wait()
        return Verdict.WRONG

    monkeypatch.setattr(hasher, "_compare", slow)
    given_up = asyncio.ensure_future(hasher.verify(None, "x"))
    await asyncio.to_thread(begun.wait)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    with pytest.raises(Overloaded):
        await hasher.verify(None, "x")
    held.set()
