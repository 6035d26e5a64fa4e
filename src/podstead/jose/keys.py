"""Importing public keys from JWKs, and the algorithms that they can verify (RFC 7517, RFC 7518).

Only asymmetric keys of secure sizes are accepted, and never private ones: a client that sends a
private or a symmetric key proves nothing (A-101). Keys are identified by their thumbprint
(RFC 7638), which is computed from the required members only.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from podstead.jose.errors import InvalidJose

JoseKey = ECKey | RSAKey | OKPKey

SIGNATURE_ALGORITHMS: Final = (
    "ES256",
    "ES384",
    "ES512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
)
"""The signature algorithms that are accepted and advertised (A-41, A-101)."""

RSA_BITS: Final = range(2048, 8193)
MAX_CACHED: Final = 2048

_EC_ALGORITHMS: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_RSA_ALGORITHMS: Final = frozenset(a for a in SIGNATURE_ALGORITHMS if a[:2] in ("RS", "PS"))
_REQUIRED: Final = MappingProxyType(
    {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
)
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key with its SHA-256 thumbprint in base64url (RFC 7638)."""

    key: JoseKey
    thumbprint: str
    algorithms: frozenset[str]
    """The algorithms whose signatures the key can verify."""


def import_public_key(jwk: Mapping[str, object]) -> PublicKey:
    """Import the key of a JWK, ignoring its optional members. Raises InvalidJose."""
    members = _required_members(jwk)
    importable: dict[str, str | list[str]] = {**members}
    try:
        if members["kty"] == "EC":
            key: JoseKey = ECKey.import_key(importable)
            algorithms = frozenset({_EC_ALGORITHMS[members["crv"]]})
        elif members["kty"] == "RSA":
            # Checked first, because the library warns about small keys and is slow for huge ones.
            if _bits(members["n"]) not in RSA_BITS:
                raise InvalidJose("The RSA key has a size that is not accepted")
            key = RSAKey.import_key(importable)
            algorithms = _RSA_ALGORITHMS
        else:
            key = OKPKey.import_key(importable)
            algorithms = frozenset({"EdDSA"})
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise InvalidJose("The key is not acceptable") from error
    return PublicKey(key, key.thumbprint(), algorithms)


def _required_members(jwk: Mapping[str, object]) -> dict[str, str]:
    kty = jwk.get("kty")
    names = _REQUIRED.get(kty) if isinstance(kty, str) else None
    if names is None or not _PRIVATE.isdisjoint(jwk):
        raise InvalidJose("The key is not acceptable")
    members = {}
    for name in names:
        value = jwk.get(name)
        if not isinstance(value, str):
            raise InvalidJose("The key is not acceptable")
        members[name] = value
    if members["kty"] == "OKP" and members["crv"] != "Ed25519":
        raise InvalidJose("The key is not acceptable")
    return members


def _bits(modulus: str) -> int:
    padded = modulus + "=" * (-len(modulus) % 4)
    return int.from_bytes(base64.b64decode(padded, b"-_", validate=True), "big").bit_length()


class PublicKeyCache:
    """Imports public keys and caches them, since clients send the same one with every request."""

    def __init__(self, *, max_cached: int = MAX_CACHED) -> None:
        self._max_cached = max_cached
        self._cache: OrderedDict[tuple[str, ...], PublicKey] = OrderedDict()

    def import_key(self, jwk: Mapping[str, object]) -> PublicKey:
        """As :func:`import_public_key`, but cached."""
        members = tuple(_required_members(jwk).values())
        cached = self._cache.get(members)
        if cached is None:
            cached = self._cache[members] = import_public_key(jwk)
            if len(self._cache) > self._max_cached:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(members)
        return cached
