"""How passwords are hashed (A-93, A-182)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import argon2
import bcrypt
import pytest

from podstead.app.adapters.passwords import Argon2Passwords, HashCost
from podstead.core.errors import Overloaded, StorageError
from podstead.idp.passwords import PasswordCheck, is_usable_bcrypt

CHEAP = HashCost(memory_kib=8, passes=1)
ALICE, MALLORY, TRENT = "192.0.2.1", "192.0.2.2", "192.0.2.3"
AT_ONCE_S = 0.001


async def test_a_hash_is_argon2id_of_enough_memory_and_passes() -> None:
    """A-93, W-15: and a second library of the same parameters agrees."""
    hasher = Argon2Passwords()
    encoded = await hasher.hash("correct horse battery staple", network=ALICE)
    found = argon2.extract_parameters(encoded)
    assert found.type is argon2.Type.ID
    assert found.memory_cost >= 19 * 1024
    assert (found.time_cost, found.parallelism) == (2, 1)
    assert (found.salt_len, found.hash_len) == (16, 32)
    assert argon2.PasswordHasher().verify(encoded, "correct horse battery staple")
    assert (
        await hasher.verify(encoded, "correct horse battery staple", network=ALICE)
        is PasswordCheck.RIGHT
    )
    assert (
        await hasher.verify(encoded, "correct horse battery stable", network=ALICE)
        is PasswordCheck.WRONG
    )


async def test_two_hashes_of_one_password_differ() -> None:
    hasher = Argon2Passwords(CHEAP)
    assert await hasher.hash("password123", network=ALICE) != await hasher.hash(
        "password123", network=ALICE
    )


async def test_every_character_matters_however_long_the_password() -> None:
    """A-93, W-15: bcrypt forgets what is behind 72 bytes."""
    hasher = Argon2Passwords(CHEAP)
    encoded = await hasher.hash("a" * 1023 + "b", network=ALICE)
    assert await hasher.verify(encoded, "a" * 1023 + "b", network=ALICE) is PasswordCheck.RIGHT
    assert await hasher.verify(encoded, "a" * 1023 + "c", network=ALICE) is PasswordCheck.WRONG


async def test_a_hash_of_another_cost_is_outdated() -> None:
    """A-93"""
    encoded = await Argon2Passwords(CHEAP).hash("password123", network=ALICE)
    hasher = Argon2Passwords(HashCost(memory_kib=16, passes=1))
    assert (
        await hasher.verify(encoded, "password123", network=ALICE)
        is PasswordCheck.RIGHT_BUT_OUTDATED
    )
    assert await hasher.verify(encoded, "password124", network=ALICE) is PasswordCheck.WRONG


async def test_nobodys_password_is_compared_at_the_same_cost_and_is_wrong() -> None:
    """A-182"""
    cost = HashCost(memory_kib=16, passes=3)
    hasher = Argon2Passwords(cost)
    found = argon2.extract_parameters(hasher._nobodys_hash)
    own = argon2.extract_parameters(await hasher.hash("password123", network=ALICE))
    assert found == own
    assert await hasher.verify(None, "password123", network=ALICE) is PasswordCheck.WRONG


async def test_a_damaged_hash_is_trouble_and_no_wrong_password() -> None:
    hasher = Argon2Passwords(CHEAP)
    with pytest.raises(StorageError):
        await hasher.verify("$argon2id$v=19$m=8,t=1,p=1$c2FsdA", "password123", network=ALICE)


@dataclass
class Held:
    """A hasher whose comparisons begin at once and end when a test lets them."""

    hasher: Argon2Passwords
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    requests: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        def slow(_: str, password: str) -> PasswordCheck:
            self.requests.append(password)
            self.begun.release()
            self.released.wait()
            return PasswordCheck.WRONG

        self.hasher._compare = slow  # type: ignore[assignment, method-assign]

    def ask(self, network: str) -> asyncio.Task[PasswordCheck]:
        return asyncio.create_task(self.hasher.verify(None, network, network=network))

    async def wait_for_a_beginning(self) -> None:
        await asyncio.to_thread(self.begun.acquire)


@pytest.fixture
def made() -> Iterator[list[Held]]:
    """Those that a test has made; none of their threads outlives it."""
    made: list[Held] = []
    yield made
    for held in made:
        held.released.set()


def held(made: list[Held], *, max_pending: int = 8, wait_s: float = AT_ONCE_S) -> Held:
    hasher = Argon2Passwords(CHEAP, max_pending=max_pending, max_wait_s=wait_s)
    made.append(Held(hasher))
    return made[-1]


async def test_one_address_leaves_a_thread_to_everybody_else(made: list[Held]) -> None:
    """However many hashes it asks for: another address is served while all of those wait."""
    slots = held(made, wait_s=1000)
    greedy = [slots.ask(MALLORY) for _ in range(3)]
    await slots.wait_for_a_beginning()
    other = slots.ask(ALICE)
    await slots.wait_for_a_beginning()
    assert slots.requests == [MALLORY, ALICE]
    slots.released.set()
    assert await asyncio.gather(other, *greedy) == [PasswordCheck.WRONG] * 4


async def test_one_address_has_half_the_places_to_wait_in(made: list[Held]) -> None:
    slots = held(made, wait_s=1000)
    greedy = [slots.ask(MALLORY) for _ in range(4)]
    await slots.wait_for_a_beginning()
    with pytest.raises(Overloaded):
        await slots.hasher.hash("password123", network=MALLORY)
    others = [slots.ask(ALICE) for _ in range(4)]
    await slots.wait_for_a_beginning()
    with pytest.raises(Overloaded):
        await slots.hasher.verify(None, "x", network=TRENT)
    slots.released.set()
    assert await asyncio.gather(*greedy, *others) == [PasswordCheck.WRONG] * 8
    assert await slots.hasher.verify(None, "x", network=MALLORY) is PasswordCheck.WRONG


async def test_a_requester_that_waits_too_long_is_refused(made: list[Held]) -> None:
    slots = held(made)
    waiting = slots.ask(MALLORY)
    await slots.wait_for_a_beginning()
    with pytest.raises(Overloaded, match="Too many sign-ins are in progress"):
        await slots.hasher.verify(None, "x", network=MALLORY)
    slots.released.set()
    assert await waiting is PasswordCheck.WRONG


async def test_a_request_that_is_given_up_keeps_its_place_until_its_hash_is_made(
    made: list[Held],
) -> None:
    slots = held(made)
    given_up = slots.ask(MALLORY)
    await slots.wait_for_a_beginning()
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    with pytest.raises(Overloaded):
        await slots.hasher.verify(None, "x", network=MALLORY)


# Written by javascript-solid-server 0.0.81 for the password `password123`.
FOREIGN_HASH = "$2b$10$oG45Y7X0DTxs9N8t29GyMe9Ibi5jQ5IyYWVoVnTY5Ks1vmRcWT8zO"


async def test_a_hash_from_another_server_is_compared_and_outdated() -> None:
    hasher = Argon2Passwords(CHEAP)
    right = await hasher.verify(FOREIGN_HASH, "password123", network=ALICE)
    assert right is PasswordCheck.RIGHT_BUT_OUTDATED
    wrong = await hasher.verify(FOREIGN_HASH, "password124", network=ALICE)
    assert wrong is PasswordCheck.WRONG


async def test_a_foreign_hash_ignores_what_its_maker_ignored() -> None:
    """Bcrypt uses 72 bytes of a password, and the library here would refuse a longer one."""
    hashed = bcrypt.hashpw(b"a" * 72, bcrypt.gensalt(4)).decode()
    hasher = Argon2Passwords(CHEAP)
    longer = await hasher.verify(hashed, "a" * 72 + "typed but never compared", network=ALICE)
    assert longer is PasswordCheck.RIGHT_BUT_OUTDATED
    assert await hasher.verify(hashed, "a" * 71, network=ALICE) is PasswordCheck.WRONG


async def test_a_damaged_foreign_hash_is_trouble_and_not_a_wrong_password() -> None:
    hasher = Argon2Passwords(CHEAP)
    damaged = "$2b$99$" + "." * 53
    with pytest.raises(StorageError):
        await hasher.verify(damaged, "password123", network=ALICE)


@pytest.mark.parametrize(
    ("password_hash", "usable"),
    [
        (FOREIGN_HASH, True),
        ("$2a$14$" + "." * 53, True),
        ("$2y$15$" + "." * 53, False),  # half a minute for each attempt
        ("$2b$10$short", False),
        ("$2b$10$" + "." * 20 + "AA" + "." * 31, False),  # a salt that is not one
        ("$2$10$" + "." * 53, False),
        ("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAA", False),
        ("password123", False),
    ],
)
def test_only_hashes_that_can_be_compared_in_time_are_imported(
    password_hash: str,
    usable: bool,
) -> None:
    assert is_usable_bcrypt(password_hash) is usable
