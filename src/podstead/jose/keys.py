"""Which public key does a JWK hold, and which signatures may it verify? (RFC 7517, RFC 7518)

Only asymmetric keys of sound sizes, and never a private one: a sender who shows a private key, or
a symmetric one, proves nothing (A-101). Keys are known by their thumbprint (RFC 7638), which
looks at the required members only.
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
"""The algorithms of signatures that are accepted, and advertised as such (A-41, A-101)."""

RSA_BITS: Final = range(2048, 8193)
MOST_KEPT: Final = 2048

_EC_ALGORITHMS: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_RSA_ALGORITHMS: Final = frozenset(a for a in SIGNATURE_ALGORITHMS if a[:2] in ("RS", "PS"))
_REQUIRED: Final = MappingProxyType(
    {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
)
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key; ``thumbprint`` is its SHA-256 thumbprint in base64url (RFC 7638)."""

    key: JoseKey
    thumbprint: str
    algorithms: frozenset[str]
    """The algorithms whose signatures the key can verify."""


def import_public_key(jwk: Mapping[str, object]) -> PublicKey:
    """The key in a JWK, whatever else the JWK says. Raises InvalidJose."""
    members = _required_members(jwk)
    shown: dict[str, str | list[str]] = {**members}
    try:
        if members["kty"] == "EC":
            key: JoseKey = ECKey.import_key(shown)
            algorithms = frozenset({_EC_ALGORITHMS[members["crv"]]})
        elif members["kty"] == "RSA":
            # Looked at first: the library warns of small keys and takes its time for huge ones.
            if _bits(members["n"]) not in RSA_BITS:
                raise InvalidJose("The RSA key has a size that is not accepted")
            key = RSAKey.import_key(shown)
            algorithms = _RSA_ALGORITHMS
        else:
            key = OKPKey.import_key(shown)
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


class KeyRing:
    """Imports keys and keeps the latest: clients show the same one with every request."""

    def __init__(self, *, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._kept: OrderedDict[tuple[str, ...], PublicKey] = OrderedDict()

    def import_key(self, jwk: Mapping[str, object]) -> PublicKey:
        """As :func:`import_public_key`, once for each key."""
        members = tuple(_required_members(jwk).values())
        known = self._kept.get(members)
        if known is None:
            known = self._kept[members] = import_public_key(jwk)
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(members)
        return known
