"""Rotates the provider's keys: which one signs, and which are published (A-42, A-44).

A new key is published a day before it signs, so that a client that caches the key set for a while
can verify every token. A replaced key stays published until no token that it signed is in use.
There is one key for each of two algorithms: RS256 for access tokens, ES256 for the ID tokens of
most clients. Pure: keys and times are passed in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.jose.tokens import Json, PublicKey, SigningAlgorithm, SigningKeyPair

ALGORITHMS: Final[tuple[SigningAlgorithm, ...]] = ("RS256", "ES256")
PUBLISHED_FIRST: Final[tuple[SigningAlgorithm, ...]] = ("ES256", "RS256")
DAY_S: Final = 24 * 3600
PUBLISHED_BEFORE_S: Final = DAY_S
PUBLISHED_AFTER_S: Final = 2 * DAY_S
HINTS_TAKEN_S: Final = 14 * DAY_S
"""How long an ID token signed with a replaced key is accepted as a hint of who signs out (A-44)."""
ROTATION_S: Final = 90 * DAY_S


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A key pair and when it was created; it signs from ``signs_from_s`` on (Unix seconds)."""

    pair: SigningKeyPair
    made_s: int
    signs_from_s: int


class ProviderKeys(Protocol):
    """Where the provider's keys come from."""

    async def current(self, *, look_again: bool = False) -> "ProviderKeySet":
        """All keys as of now; ``look_again`` to include those that another worker has just created.
        Raises StorageError."""


@dataclass(frozen=True, slots=True)
class ProviderKeySet:
    """All keys of the provider at one time."""

    keys: Sequence[ProviderKey]
    now_s: int

    def signer(self, algorithm: SigningAlgorithm) -> SigningKeyPair:
        """The key pair that signs now: the newest of the algorithm that has become active."""
        able = [key for key in self._of(algorithm) if key.signs_from_s <= self.now_s]
        return max(able or self._of(algorithm), key=_age).pair

    def published(self) -> Sequence[Json]:
        """The JWKs of the key set. The current ES256 key comes first, since some clients verify ID
        tokens with the first key only; then the current RS256 key, then the rest."""
        signing = [self.signer(each).key_id for each in PUBLISHED_FIRST if self._of(each)]
        in_use = [key.pair for key in self._in_use(PUBLISHED_AFTER_S)]
        current = [pair for key_id in signing for pair in in_use if pair.key_id == key_id]
        rest = [pair for pair in in_use if pair.key_id not in signing]
        return [pair.public_jwk() for pair in (*current, *rest)]

    def verifier(self, key_id: str | None, *, of_hint: bool = False) -> PublicKey | None:
        """The public key with this id, if tokens that it signed may still be valid.

        ``of_hint`` is for an ID token that only says who wants to sign out.
        """
        after_s = HINTS_TAKEN_S if of_hint else PUBLISHED_AFTER_S
        for key in self._in_use(after_s):
            if key.pair.key_id == key_id:
                return key.pair.public
        return None

    def wants_new(self, algorithm: SigningAlgorithm) -> bool:
        """Whether it is time to create the next key."""
        keys = self._of(algorithm)
        return not keys or self.now_s >= max(map(_age, keys)) + ROTATION_S - PUBLISHED_BEFORE_S

    def outlived(self) -> Sequence[ProviderKey]:
        """The keys whose tokens have all expired."""
        kept = {key.pair.key_id for key in self._in_use(HINTS_TAKEN_S)}
        return [key for key in self.keys if key.pair.key_id not in kept]

    def _of(self, algorithm: SigningAlgorithm) -> Sequence[ProviderKey]:
        return [key for key in self.keys if key.pair.algorithm == algorithm]

    def _in_use(self, after_s: int) -> Iterable[ProviderKey]:
        for key in sorted(self.keys, key=_age, reverse=True):
            replaced = [
                other.signs_from_s
                for other in self._of(key.pair.algorithm)
                if _age(other) > _age(key)
            ]
            if not replaced or self.now_s < min(replaced) + after_s:
                yield key


def next_key(algorithm: SigningAlgorithm, *, now_s: int, first: bool) -> ProviderKey:
    """Create a key. The first one signs at once, later ones after a day of being published."""
    signs_from_s = now_s if first else now_s + PUBLISHED_BEFORE_S
    return ProviderKey(SigningKeyPair.generate(algorithm), now_s, signs_from_s)


def _age(key: ProviderKey) -> int:
    return key.signs_from_s
