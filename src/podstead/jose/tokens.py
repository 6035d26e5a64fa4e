"""Keys and compact signed tokens (RFC 7515, RFC 7517, RFC 7518)."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, Self

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from podstead.core.caches import memoize_short_keys
from podstead.core.strict_json import MAX_DEPTH, Json, parse_object

__all__ = ["MAX_DEPTH", "Json"]


class InvalidJose(Exception):
    """A token, key or proof is not acceptable; ``str()`` is a fixed public message (A-186)."""


def read_object(content: bytes) -> Json:
    """Parse a JSON object of at most :data:`MAX_DEPTH` levels. Raises InvalidJose."""
    try:
        return parse_object(content)
    except ValueError as error:
        raise InvalidJose("Invalid token") from error


# Importing public keys from JWKs, and the algorithms that they can verify (RFC 7517, RFC 7518).
#
# Only asymmetric keys of secure sizes are accepted, and never private ones: a client that sends a
# private or a symmetric key proves nothing. Keys are identified by their thumbprint
# (RFC 7638), which is computed from the required members only.

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
_MAX_CACHED: Final = 2048

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
    """Import the key of a JWK, ignoring its optional members; once, since clients send the same one
    with every request. Raises InvalidJose."""
    return _imported(tuple(_required_members(jwk).items()))


@lru_cache(_MAX_CACHED)
def _imported(required: tuple[tuple[str, str], ...]) -> PublicKey:
    members = dict(required)
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


# The key pairs that sign the server's own tokens.

SigningAlgorithm = Literal["ES256", "RS256"]

_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class SigningKeyPair:
    """A private key and its one algorithm. The key ID is the thumbprint (A-42)."""

    algorithm: SigningAlgorithm
    public: PublicKey
    _private: ECKey | RSAKey

    @classmethod
    def generate(cls, algorithm: SigningAlgorithm) -> Self:
        """Generate a key pair; RSA takes some tenths of a second."""
        if algorithm == "ES256":
            return cls._of(algorithm, ECKey.generate_key("P-256", private=True))
        return cls._of(algorithm, RSAKey.generate_key(_RSA_BITS, private=True))

    @classmethod
    def load(cls, content: bytes) -> Self:
        """Load the output of :meth:`dump`. Raises InvalidJose."""
        jwk = read_object(content)
        algorithm = jwk.pop("alg", None)
        try:
            if algorithm == "ES256":
                return cls._of(algorithm, ECKey.import_key(jwk))
            if algorithm == "RS256":
                return cls._of(algorithm, RSAKey.import_key(jwk))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise InvalidJose("Not a signing key") from error
        raise InvalidJose("Not a signing key")

    @classmethod
    def _of(cls, algorithm: SigningAlgorithm, private: ECKey | RSAKey) -> Self:
        if not private.is_private:
            raise InvalidJose("Not a signing key")
        return cls(algorithm, import_public_key(private.as_dict(private=False)), private)

    def dump(self) -> bytes:
        """The private key as a JWK. Secret."""
        return json.dumps({**self._private.as_dict(private=True), "alg": self.algorithm}).encode()

    @property
    def key_id(self) -> str:
        """The ``kid`` in tokens and in the key set."""
        return self.public.thumbprint

    def public_jwk(self) -> Json:
        """The public key as a JWK, as published in the key set (RFC 7517)."""
        jwk: Json = dict(self._private.as_dict(private=False))
        return {**jwk, "kid": self.key_id, "use": "sig", "alg": self.algorithm}

    def sign(self, claims: Mapping[str, object], *, media_type: str) -> str:
        """Sign a compact token with ``claims``; ``media_type`` is its ``typ``, such as
        ``at+jwt``."""
        header = {"alg": self.algorithm, "typ": media_type, "kid": self.key_id}
        return self._signed(header, claims)

    def prove(self, claims: Mapping[str, object]) -> str:
        """Sign a DPoP proof with ``claims`` and the public key (RFC 9449, section 4.2)."""
        jwk = dict(self._private.as_dict(private=False))
        return self._signed({"alg": self.algorithm, "typ": "dpop+jwt", "jwk": jwk}, claims)

    def _signed(self, header: Mapping[str, object], claims: Mapping[str, object]) -> str:
        payload = json.dumps(claims, separators=(",", ":")).encode()
        return jws.serialize_compact(
            dict(header), payload, self._private, algorithms=[self.algorithm]
        )


# Compact tokens are parsed and verified in two steps (RFC 7515, section 7.1), because the
# unverified claims decide which key is looked up. No claim may be trusted before the signature has
# been verified.

# The library uses the name that RFC 9864 gives to EdDSA with the one curve supported here.
_REGISTERED: Final = {"EdDSA": "Ed25519"}
_REGISTRY: Final = JWSRegistry(algorithms=[_REGISTERED.get(a, a) for a in SIGNATURE_ALGORITHMS])
_ALGORITHMS: Final = {
    name: _REGISTRY.get_alg(_REGISTERED.get(name, name)) for name in SIGNATURE_ALGORITHMS
}
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# The year 9999. Rejects larger values, including infinity, which is not a time.
_END_OF_TIME_S: Final = 253_402_300_800

# Header parameters that change what is signed or how it is parsed; none are supported here.
_NOT_UNDERSTOOD: Final = frozenset({"crit", "b64"})


@dataclass(frozen=True, slots=True)
class CompactToken:
    """A parsed, unverified token. Tokens with the same header share the object."""

    text: str
    header: Json
    claims: Json
    algorithm: str

    @property
    def key_id(self) -> str | None:
        """The ``kid`` of the header, if it is a string."""
        key_id = self.header.get("kid")
        return key_id if isinstance(key_id, str) else None


def read_token(text: str, *, max_characters: int) -> CompactToken:
    """Parse a token with one of the supported algorithms. Raises InvalidJose."""
    if len(text) > max_characters or not _FORM.fullmatch(text):
        raise InvalidJose("Invalid token")
    header_part, claims_part, _ = text.split(".")
    header = _read_header(header_part)
    algorithm = header.get("alg")
    if algorithm not in SIGNATURE_ALGORITHMS or not _NOT_UNDERSTOOD.isdisjoint(header):
        raise InvalidJose("Invalid token")
    return CompactToken(text, header, read_object(_decode(claims_part)), algorithm)


# Clients send the same header with every proof.
@memoize_short_keys
def _read_header(part: str) -> Json:
    return read_object(_decode(part))


def verify_signature(token: CompactToken, key: PublicKey) -> None:
    """Verify that ``key`` made the signature of the token. Raises InvalidJose."""
    if token.algorithm not in key.algorithms:
        raise InvalidJose("Invalid token")
    signed, _, signature = token.text.rpartition(".")
    try:
        algorithm = _ALGORITHMS[token.algorithm]
        valid = algorithm.verify(signed.encode("ascii"), _decode(signature), key.key)
    except (JoseError, ValueError, TypeError) as error:
        raise InvalidJose("Invalid token") from error
    if not valid:
        raise InvalidJose("Invalid token")


def _decode(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise InvalidJose("Invalid token") from error


def claim_text(claims: dict[str, Any], name: str) -> str | None:
    """The value of a claim if it is a non-empty string, else ``None``."""
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def claim_number(claims: dict[str, Any], name: str) -> float | None:
    """The value of a claim if it is a number of seconds (NumericDate), else ``None``."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _END_OF_TIME_S else None
