"""What is a browser asked to sign? Challenges, each good once, for one browser (A-119, A-126).

They last for minutes. The server chooses each, since clients that name their own could take one
another's. The first attempt uses a challenge up, whatever comes of it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, Overloaded
from podstead.idp.records import Challenge
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import Records, secret_key

MOST_CHALLENGES: Final = 10_000
"""How many of a kind may be open. An address has a small share of them, by the limit of its
requests."""

_BYTES: Final = 32


class ChallengeInvalid(BadRequest):
    """The challenge has expired, was used, or is not this browser's."""

    known_text = "Challenge expired or invalid"

    def __init__(self) -> None:
        super().__init__("The challenge has expired or was already used; try again")


@dataclass(frozen=True, slots=True)
class Issued:
    """A challenge, and by what name the answer is to mention it."""

    challenge_key: str

    @property
    def challenge(self) -> str:
        """What is to be signed: 64 hexadecimal digits."""
        return challenge_of(self.challenge_key)


class Challenges:
    """Issues challenges of one kind and takes them back."""

    def __init__(
        self,
        kind: Records[Challenge],
        *,
        lifetime_s: int,
        records: RecordStore,
    ) -> None:
        self._kind = kind
        self._lifetime_s = lifetime_s
        self._records = records

    async def issue(
        self,
        purpose: str,
        *,
        holder: str,
        account_id: str | None = None,
        user_handle: str | None = None,
        suffix: str = "",
    ) -> Issued:
        """A new challenge for who has the secret ``holder``. ``suffix`` is part of its key, from
        which :func:`suffix_of` gets it back.

        Raises Overloaded if too many are open, StorageError.
        """
        count = await self._kind.count(self._records.store, at_most=MOST_CHALLENGES)
        if count >= MOST_CHALLENGES:
            raise Overloaded("Too many sign-ins are in progress; try again")
        key = self._records.randomness.token_hex(_BYTES) + (f".{suffix}" if suffix else "")
        now_ms = self._records.now_ms()
        record = self._kind.put(
            secret_key(key),
            Challenge(
                purpose=purpose,
                holder_hash=secret_key(holder),
                account_id=account_id,
                user_handle=user_handle,
            ),
            owner=account_id,
            expires_ms=now_ms + self._lifetime_s * 1000,
        )
        await self._records.commit([record])
        return Issued(key)

    async def take(
        self, key: str, purpose: str, *, holder: str, account_id: str | None = None
    ) -> Challenge:
        """What is kept of the challenge of a key, which is used up by this. Raises ChallengeInvalid
        unless it is for this, StorageError, Overloaded."""
        kept = await self._records.read(self._kind, secret_key(key))
        if kept is None or not await self._records.try_commit(
            [self._kind.drop(kept.key)], [kept.at]
        ):
            raise ChallengeInvalid
        taken = kept.value
        is_theirs = hmac.compare_digest(taken.holder_hash, secret_key(holder))
        if not is_theirs or taken.purpose != purpose or taken.account_id != account_id:
            raise ChallengeInvalid
        return taken


def challenge_of(key: str) -> str:
    """The challenge of a key that was issued."""
    return key.partition(".")[0]


def suffix_of(key: str) -> str:
    """The suffix that a challenge was issued with; empty if there was none."""
    return key.partition(".")[2]
