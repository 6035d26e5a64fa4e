"""What is a passkey asked to sign? Challenges, each good once, for one browser (A-119).

They last for minutes. The server names each, since clients that name their own could take one
another's. The first attempt uses a challenge up, whatever comes of it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import BadRequest, Overloaded
from podstead.idp.records import PASSKEY_CHALLENGES, PasskeyChallenge
from podstead.idp.token_service import ProviderStore
from podstead.storage.protocol import EntryCounts
from podstead.storage.registry import secret_key
from podstead.storage.writing import commit

CHALLENGE_S: Final = 300
"""How long a person may take over it."""
MOST_CHALLENGES: Final = 10_000
"""How many may be open. An address has a small share of them, by the limit of its requests."""

ADDING: Final = "add"
SIGNING_IN: Final = "sign-in"

_BYTES: Final = 32


class ChallengeInvalid(BadRequest):
    """The challenge has expired, was used, or is not this browser's."""

    known_text = "Challenge expired or invalid"

    def __init__(self) -> None:
        super().__init__("This took too long, or was answered before: try again")


class PasskeyStore(ProviderStore, EntryCounts, Protocol):
    """Where passkeys and challenges are kept; every store is one."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A challenge, and by what name the answer is to mention it."""

    challenge_key: str
    challenge: bytes


class Challenges:
    """Issues challenges and takes them back."""

    def __init__(self, *, store: PasskeyStore, clock: Clock, randomness: Randomness) -> None:
        self._store = store
        self._clock = clock
        self._randomness = randomness

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
        count = await PASSKEY_CHALLENGES.count(self._store, at_most=MOST_CHALLENGES)
        if count >= MOST_CHALLENGES:
            raise Overloaded("Too many people use passkeys at this moment: try again")
        key = self._randomness.token_hex(_BYTES) + (f".{suffix}" if suffix else "")
        challenge = self._randomness.token_hex(_BYTES)
        now_ms = self._clock.now_ms()
        record = PASSKEY_CHALLENGES.put(
            secret_key(key),
            PasskeyChallenge(
                purpose=purpose,
                challenge=challenge,
                holder_hash=secret_key(holder),
                account_id=account_id,
                user_handle=user_handle,
            ),
            owner=account_id,
            expires_ms=now_ms + CHALLENGE_S * 1000,
        )
        await commit(self._store, [record], now_ms=now_ms, randomness=self._randomness)
        return Issued(key, bytes.fromhex(challenge))

    async def take(
        self, key: str, purpose: str, *, holder: str, account_id: str | None = None
    ) -> PasskeyChallenge:
        """The challenge of a key, which is used up by this. Raises ChallengeInvalid unless it is
        for this, StorageError, Overloaded."""
        now_ms = self._clock.now_ms()
        kept = await PASSKEY_CHALLENGES.read(self._store, secret_key(key), now_ms=now_ms)
        if kept is None or not await commit(
            self._store,
            [PASSKEY_CHALLENGES.drop(kept.key)],
            relied_on=[kept.at],
            now_ms=now_ms,
            randomness=self._randomness,
        ):
            raise ChallengeInvalid
        taken = kept.value
        is_theirs = hmac.compare_digest(taken.holder_hash, secret_key(holder))
        if not is_theirs or taken.purpose != purpose or taken.account_id != account_id:
            raise ChallengeInvalid
        return taken


def suffix_of(key: str) -> str:
    """The suffix that a challenge was issued with; empty if there was none."""
    return key.partition(".")[2]
