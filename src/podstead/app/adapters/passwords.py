"""Hashes passwords with argon2id, in two threads, with a bounded queue (A-93).

A hash takes a tenth of a second and 46 MiB on purpose. It is computed outside the event loop, never
more than two at a time. Requests from one customer's network use at most one of the two threads and
half the queue, whether their passwords are right or wrong. A request waits a few seconds at most;
after that, or if the queue is full, it is refused.

Accounts that came from another server have its hashes, made with bcrypt. They are compared as they
are, and count as outdated, so the first sign-in replaces them.
"""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import bcrypt
from argon2 import PasswordHasher as Argon2
from argon2.exceptions import HashingError, InvalidHashError, VerificationError, VerifyMismatchError
from argon2.low_level import ARGON2_VERSION, Type

from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.core.errors import Overloaded, StorageError
from podstead.idp.codes import IdpCodes
from podstead.idp.passwords import PasswordCheck, is_bcrypt

_MAX_BYTES: Final = 72
"""bcrypt uses no more of a password, and those who made the hashes ignored the rest."""


def matches_bcrypt(password_hash: str, password: str) -> bool:
    """Whether the hash is that of the password. Raises StorageError for a damaged hash."""
    try:
        return bcrypt.checkpw(password.encode()[:_MAX_BYTES], password_hash.encode())
    except ValueError as error:
        raise StorageError("The hash of a password cannot be read") from error


T = TypeVar("T")

THREADS: Final = 2
MAX_PENDING_HASHES: Final = 64
"""The number of hashes in progress or in the queue."""
MAX_WAIT_S: Final = 5.0
"""A hash takes a tenth of a second, so this is the time of about fifty hashes."""
_HASH_BYTES: Final = 32
_SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class HashCost:
    """The cost of one hash; A-93 requires at least 19 MiB and two passes on one lane."""

    memory_kib: int = 46 * 1024
    passes: int = 2


class Argon2Passwords:
    """Implements PasswordHasher of ``idp.passwords``."""

    def __init__(
        self,
        cost: HashCost | None = None,
        *,
        threads: int = THREADS,
        max_pending: int = MAX_PENDING_HASHES,
        max_wait_s: float = MAX_WAIT_S,
    ) -> None:
        cost = cost or HashCost()
        self._argon2 = Argon2(
            time_cost=cost.passes,
            memory_cost=cost.memory_kib,
            parallelism=1,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
            type=Type.ID,
        )
        self._nobodys_hash = _hash_of_nothing(cost)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._slots = FairSemaphore(
            threads,
            wait_s=max_wait_s,
            max_waiting=max_pending,
            refusal=IdpCodes.TOO_MANY_SIGN_INS,
        )

    async def hash(self, password: str, *, network: str) -> str:
        """The hash to store. Raises Overloaded."""
        return await self._in_turn(network, lambda: self._argon2.hash(password))

    async def verify(
        self, password_hash: str | None, password: str, *, network: str
    ) -> PasswordCheck:
        """Compare a password with a hash; without a hash it takes as long. Raises Overloaded, and
        StorageError for a damaged hash."""
        compared = password_hash or self._nobodys_hash
        return await self._in_turn(network, lambda: self._compare(compared, password))

    def _compare(self, password_hash: str, password: str) -> PasswordCheck:
        if is_bcrypt(password_hash):
            right = matches_bcrypt(password_hash, password)
            return PasswordCheck.RIGHT_BUT_OUTDATED if right else PasswordCheck.WRONG
        try:
            self._argon2.verify(password_hash, password)
        except VerifyMismatchError:
            return PasswordCheck.WRONG
        except (InvalidHashError, VerificationError) as error:
            raise StorageError("The hash of a password cannot be read") from error
        outdated = self._argon2.check_needs_rehash(password_hash)
        return PasswordCheck.RIGHT_BUT_OUTDATED if outdated else PasswordCheck.RIGHT

    async def _in_turn(self, network: str, work: Callable[[], T]) -> T:
        await self._slots.acquire(network)
        loop = asyncio.get_running_loop()

        def give_back(_: object) -> None:
            with contextlib.suppress(
                RuntimeError
            ):  # the loop is closed, and nothing waits any more
                loop.call_soon_threadsafe(self._slots.release, network)

        future = self._threads.submit(work)
        # Not when the request ends, because the hash of a cancelled request is still computed.
        future.add_done_callback(give_back)
        try:
            return await asyncio.wrap_future(future)
        except HashingError as error:
            raise Overloaded("There is no memory to hash a password at this moment") from error


def _hash_of_nothing(cost: HashCost) -> str:
    """A hash with the current cost that matches no password."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).rstrip(b"=").decode("ascii")
        for size in (_SALT_BYTES, _HASH_BYTES)
    )
    parameters = f"m={cost.memory_kib},t={cost.passes},p=1"
    return f"$argon2id$v={ARGON2_VERSION}${parameters}${salt}${digest}"
