"""Issues challenges for browsers to sign, each for one use in one browser (A-119, A-126).

A challenge is valid for minutes. The server chooses it, because clients that chose their own could
take each other's. The first attempt uses it up, whatever the result.
"""

import hmac
from dataclasses import KW_ONLY, dataclass
from typing import Final

from podstead.core.errors import BadRequest, Overloaded
from podstead.idp.codes import IdpCodes
from podstead.idp.records import Challenge
from podstead.storage.record_store import RecordKind, RecordStore, secret_key

MAX_CHALLENGES: Final = 10_000
"""How many challenges of a kind may be open. The rate limit allows an address only a small share of
them."""

_BYTES: Final = 32


class ChallengeInvalid(BadRequest):
    """The challenge has expired, was used before, or belongs to another browser."""

    known_text = "Challenge expired or invalid"
    code = IdpCodes.CHALLENGE_INVALID


@dataclass(frozen=True, slots=True)
class IssuedChallenge:
    """A challenge, and the key by which the response names it."""

    challenge_key: str

    @property
    def challenge(self) -> str:
        """The text to sign: 64 hexadecimal digits."""
        return challenge_of(self.challenge_key)


@dataclass(frozen=True, slots=True)
class Challenges:
    """Issues and accepts challenges of one kind."""

    kind: RecordKind[Challenge]
    _: KW_ONLY
    lifetime_s: int
    records: RecordStore

    async def issue(
        self,
        purpose: str,
        *,
        holder: str,
        account_id: str | None = None,
        user_handle: str | None = None,
        suffix: str = "",
    ) -> IssuedChallenge:
        """Issue a challenge to the holder of the secret ``holder``. ``suffix`` becomes part of its
        key; :func:`suffix_of` reads it back.

        Raises Overloaded if too many are open.
        """
        count = await self.kind.count(self.records.store, at_most=MAX_CHALLENGES)
        if count >= MAX_CHALLENGES:
            raise Overloaded(IdpCodes.TOO_MANY_SIGN_INS)
        key = self.records.randomness.token_hex(_BYTES) + (f".{suffix}" if suffix else "")
        now_ms = self.records.now_ms()
        record = self.kind.put(
            secret_key(key),
            Challenge(
                purpose=purpose,
                holder_hash=secret_key(holder),
                account_id=account_id,
                user_handle=user_handle,
            ),
            owner=account_id,
            expires_ms=now_ms + self.lifetime_s * 1000,
        )
        await self.records.commit([record])
        return IssuedChallenge(key)

    async def take(
        self, key: str, purpose: str, *, holder: str, account_id: str | None = None
    ) -> Challenge:
        """Use up the challenge with this key, and return its record. Raises ChallengeInvalid unless
        it was issued for this purpose, holder and account."""
        stored = await self.records.read(self.kind, secret_key(key))
        if stored is None or not await self.records.try_commit(
            [self.kind.drop(stored.key)], [stored.unchanged]
        ):
            raise ChallengeInvalid
        taken = stored.value
        is_theirs = hmac.compare_digest(taken.holder_hash, secret_key(holder))
        if not is_theirs or taken.purpose != purpose or taken.account_id != account_id:
            raise ChallengeInvalid
        return taken


def challenge_of(key: str) -> str:
    """The challenge that belongs to an issued key."""
    return key.partition(".")[0]


def suffix_of(key: str) -> str:
    """The suffix of an issued key; empty if it has none."""
    return key.partition(".")[2]
