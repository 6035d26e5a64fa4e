"""Fetches the keys of other providers: discovery documents and key sets (A-108, A-110).

The discovery document of a provider must name the issuer and refers to its key set. Both are used
for some minutes, and for an hour longer if they cannot be fetched again. Providers change their
keys, so an unknown key causes the set to be fetched again, at most once a minute.
"""

from dataclasses import dataclass, replace
from typing import Final

from podstead.authn.claims import same_issuer
from podstead.authn.web_ids import LookupKind, LookupLimits
from podstead.core.caches import BoundedCache, ExpiringCache
from podstead.core.clock import Clock
from podstead.core.errors import OutboundError, RemoteUnavailable
from podstead.jose import tokens
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
LIFETIME_S: Final = 15 * 60
MIN_LIFETIME_S: Final = 60
STALE_S: Final = 60 * 60
REFETCH_S: Final = 60
FAILURE_S: Final = 30
MAX_KEYS: Final = 32
MAX_CANDIDATES: Final = 10
MAX_CACHED_KEYS: Final = 4096
"""The limit for keys in the cache, of all issuers together."""
MAX_CACHED_FAILURES: Final = 4096

_UNVERIFIABLE: Final = "The token's issuer could not be verified"


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A key that an issuer publishes; ``key_id`` and ``algorithm`` are those of its JWK."""

    key: tokens.PublicKey
    key_id: str | None
    algorithm: str | None


@dataclass(frozen=True, slots=True)
class _KeySet:
    keys: tuple[IssuerKey, ...]
    read_ms: int
    fresh_until_ms: int
    stale_until_ms: int
    unknown_from_ms: int = 0
    """When an unknown key may next cause the set to be fetched again."""


class IssuerKeys:
    """Fetches and caches the keys of providers.

    Fetching is counted for the client address that a caller passes; ``None`` counts nothing.
    """

    def __init__(self, foreign: DocumentFetcher, lookups: LookupLimits, clock: Clock) -> None:
        self._foreign = foreign
        self._lookups = lookups
        self._clock = clock
        self._sets = BoundedCache[str, _KeySet](MAX_CACHED_KEYS)
        self._unusable = ExpiringCache[str, bool](MAX_CACHED_FAILURES)

    def knows(self, issuer: str) -> bool:
        """Whether the issuer's keys are in the cache and fresh."""
        known = self._sets.get(issuer.removesuffix("/"))
        return known is not None and self._clock.now_ms() < known.fresh_until_ms

    async def publishes(
        self, issuer: str, key: tokens.PublicKey, client_address: str | None
    ) -> bool:
        """Whether the issuer still publishes the key. Raises InvalidJose, and RemoteUnavailable if
        the issuer cannot be reached at present."""
        known = await self._current(issuer, client_address)
        return any(each.key.thumbprint == key.thumbprint for each in known.keys)

    async def candidates(
        self, token: tokens.CompactToken, issuer: str, client_address: str | None
    ) -> tuple[tokens.PublicKey, ...]:
        """The keys of ``issuer`` that may have signed the token. Raises InvalidJose, and
        RemoteUnavailable if the issuer cannot be reached at present."""
        name = issuer.removesuffix("/")
        asked_ms = self._clock.now_ms()
        known = await self._current(issuer, client_address)
        found = _matching(known.keys, token)
        if not found and max(known.read_ms + 1, known.unknown_from_ms) <= asked_ms:
            # The provider may have a new key. One attempt a minute, whatever its result.
            known = replace(known, unknown_from_ms=asked_ms + REFETCH_S * 1000)
            self._keep(name, known)
            known = await self._read(issuer, known, client_address)
            found = _matching(known.keys, token)
        if not found:
            raise tokens.InvalidJose(
                "The token was signed with a key that its issuer does not publish"
            )
        return found

    async def _current(self, issuer: str, client_address: str | None) -> _KeySet:
        known = self._sets.get(issuer.removesuffix("/"))
        if known is not None and self._clock.now_ms() < known.fresh_until_ms:
            return known
        return await self._read(issuer, known, client_address)

    async def _read(
        self, issuer: str, known: _KeySet | None, client_address: str | None
    ) -> _KeySet:
        name = issuer.removesuffix("/")
        now_ms = self._clock.now_ms()
        try:
            if self._unusable.get(name, now_ms):
                raise tokens.InvalidJose(_UNVERIFIABLE)
            async with self._lookups.of(LookupKind.ISSUER, name, client_address):
                read = await self._try_to_fetch(name, issuer)
        except (tokens.InvalidJose, RemoteUnavailable):
            if known is not None and now_ms < known.stale_until_ms:
                return known
            raise
        if known is not None:
            read = replace(read, unknown_from_ms=known.unknown_from_ms)
        self._keep(name, read)
        return read

    def _keep(self, name: str, key_set: _KeySet) -> None:
        self._sets.put(name, key_set, weight=1 + len(key_set.keys))

    async def _try_to_fetch(self, name: str, issuer: str) -> _KeySet:
        """Unusable documents are not fetched again for a while (A-191); the fetcher itself
        remembers failed fetches. Raises InvalidJose, and RemoteUnavailable."""
        try:
            return await self._fetch(issuer)
        except RemoteUnavailable:
            raise
        except OutboundError as error:
            raise tokens.InvalidJose(_UNVERIFIABLE) from error
        except tokens.InvalidJose as error:
            expires_at_ms = self._clock.now_ms() + FAILURE_S * 1000
            self._unusable.put(name, value=True, expires_at_ms=expires_at_ms)
            raise tokens.InvalidJose(_UNVERIFIABLE) from error

    async def _fetch(self, issuer: str) -> _KeySet:
        url = issuer.removesuffix("/") + CONFIGURATION_PATH
        described = await self._foreign.fetch(url, Purpose.PROVIDER)
        configuration = tokens.read_object(described.content)
        named, jwks_uri = configuration.get("issuer"), configuration.get("jwks_uri")
        if not isinstance(named, str) or not same_issuer(named, issuer):
            raise tokens.InvalidJose(_UNVERIFIABLE)
        if not isinstance(jwks_uri, str):
            raise tokens.InvalidJose(_UNVERIFIABLE)
        published = await self._foreign.fetch(jwks_uri, Purpose.PROVIDER)
        now_ms = self._clock.now_ms()
        ages_s = [age for age in (described.max_age_s, published.max_age_s) if age is not None]
        lifetime_s = max(MIN_LIFETIME_S, min([LIFETIME_S, *ages_s]))
        fresh_until_ms = now_ms + lifetime_s * 1000
        keys = read_key_set(tokens.read_object(published.content))
        return _KeySet(keys, now_ms, fresh_until_ms, fresh_until_ms + STALE_S * 1000)


def read_key_set(key_set: tokens.Json) -> tuple[IssuerKey, ...]:
    """The keys of a JWK Set that can verify signatures; other keys are ignored.

    Raises InvalidJose if it is not a key set.
    """
    published = key_set.get("keys")
    if not isinstance(published, list) or len(published) > MAX_KEYS:
        raise tokens.InvalidJose(_UNVERIFIABLE)
    keys = []
    for jwk in published:
        if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
            continue
        try:
            key = tokens.import_public_key(jwk)
        except tokens.InvalidJose:
            continue
        key_id, algorithm = jwk.get("kid"), jwk.get("alg")
        keys.append(
            IssuerKey(
                key,
                key_id if isinstance(key_id, str) else None,
                algorithm if isinstance(algorithm, str) else None,
            )
        )
    return tuple(keys)


def _matching(
    keys: tuple[IssuerKey, ...], token: tokens.CompactToken
) -> tuple[tokens.PublicKey, ...]:
    able = [
        each
        for each in keys
        if token.algorithm in each.key.algorithms and each.algorithm in (None, token.algorithm)
    ]
    if token.key_id is not None:
        able = [each for each in able if each.key_id == token.key_id]
    return tuple(each.key for each in able[:MAX_CANDIDATES])
