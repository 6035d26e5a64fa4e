"""Signed tokens made without our code: RFC 7515 and RFC 7518 on the cryptography package alone.

Tests sign with this what the server verifies, well-formed or not: header and claims may be any
JSON, and the algorithm that is named may be another than the one used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

Json = dict[str, Any]
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey

_HASHES: dict[str, type[hashes.SHA256 | hashes.SHA384 | hashes.SHA512]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: dict[str, tuple[str, ec.EllipticCurve]] = {
    "ES256": ("P-256", ec.SECP256R1()),
    "ES384": ("P-384", ec.SECP384R1()),
    "ES512": ("P-521", ec.SECP521R1()),
}
_REQUIRED = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}


def base64url(content: bytes) -> str:
    """RFC 7515 section 2."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def encoded(value: object) -> str:
    """A part of a token that holds JSON."""
    return base64url(json.dumps(value, separators=(",", ":")).encode())


def decoded(part: str) -> Json:
    """The JSON object that a part of a token holds."""
    value: Json = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return value


def token_hash(token: str) -> str:
    """The ``ath`` of an access token (RFC 9449 section 4.2)."""
    return base64url(hashlib.sha256(token.encode("ascii")).digest())


@dataclass(frozen=True)
class Signer:
    """A key and the algorithm it signs by."""

    algorithm: str
    private: PrivateKey

    @classmethod
    def new(cls, algorithm: str = "ES256", *, rsa_bits: int = 2048) -> Signer:
        """A key that is new, but for RSA keys, which take long to make."""
        if algorithm == "EdDSA":
            return cls(algorithm, ed25519.Ed25519PrivateKey.generate())
        if algorithm in _CURVES:
            return cls(algorithm, ec.generate_private_key(_CURVES[algorithm][1]))
        return cls(algorithm, _rsa_key(rsa_bits))

    @property
    def jwk(self) -> Json:
        """The public key (RFC 7517), required members only."""
        public = self.private.public_key()
        if isinstance(public, ec.EllipticCurvePublicKey):
            point, size = public.public_numbers(), (public.key_size + 7) // 8
            curve = next(name for name, each in _CURVES.values() if each.name == public.curve.name)
            return {
                "kty": "EC",
                "crv": curve,
                "x": base64url(point.x.to_bytes(size, "big")),
                "y": base64url(point.y.to_bytes(size, "big")),
            }
        if isinstance(public, rsa.RSAPublicKey):
            numbers = public.public_numbers()
            return {"kty": "RSA", "n": _integer(numbers.n), "e": _integer(numbers.e)}
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(public.public_bytes_raw())}

    @property
    def thumbprint(self) -> str:
        """RFC 7638 section 3."""
        members = {name: self.jwk[name] for name in _REQUIRED[self.jwk["kty"]]}
        canonical = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
        return base64url(hashlib.sha256(canonical).digest())

    def sign(self, header: Json, claims: object) -> str:
        """A compact token; ``alg`` is added where the header names none."""
        signed = f"{encoded({'alg': self.algorithm, **header})}.{encoded(claims)}"
        return f"{signed}.{base64url(self._signature(signed.encode()))}"

    def proof(self, claims: Json, **header: object) -> str:
        """A DPoP proof; ``header`` replaces what usually stands there."""
        return self.sign({"typ": "dpop+jwt", "jwk": self.jwk, **header}, claims)

    def _signature(self, signed: bytes) -> bytes:
        key = self.private
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return key.sign(signed)
        digest = _HASHES[self.algorithm[2:]]()
        if isinstance(key, ec.EllipticCurvePrivateKey):
            size = (key.key_size + 7) // 8
            r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if self.algorithm.startswith("PS"):
            salted = padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)
            return key.sign(signed, salted, digest)
        return key.sign(signed, padding.PKCS1v15(), digest)


def signed_with_secret(secret: bytes, header: Json, claims: object) -> str:
    """A token with a symmetric signature (HS256), which nobody can attribute."""
    signed = f"{encoded({'alg': 'HS256', **header})}.{encoded(claims)}"
    return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), 'sha256'))}"


def unsigned(header: Json, claims: object) -> str:
    """A token of algorithm ``none``, with something where the signature stands."""
    return f"{encoded({'alg': 'none', **header})}.{encoded(claims)}.AA"


def with_other_signature(token: str) -> str:
    """The token with one bit of its signature changed."""
    signed, _, signature = token.rpartition(".")
    raw = bytearray(base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)))
    raw[len(raw) // 2] ^= 1
    return f"{signed}.{base64url(bytes(raw))}"


def proof_claims(method: str, url: str, now_s: int) -> Json:
    """The claims of a proof as clients make them."""
    return {"htm": method, "htu": url, "iat": now_s, "jti": secrets.token_urlsafe(12)}


Change = Callable[[Json], None]
"""Makes one thing wrong, or otherwise, in claims that are right."""


def set_to(name: str, value: object) -> Change:
    """Replace one claim."""

    def change(claims: Json) -> None:
        claims[name] = value

    return change


def without(name: str) -> Change:
    """Leave one claim out."""

    def change(claims: Json) -> None:
        del claims[name]

    return change


def _integer(number: int) -> str:
    return base64url(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@cache
def _rsa_key(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)
