"""Parsing the DER encoding of a certificate (RFC 5280).

This module does not validate: the validity period, the strength of the key and the names are
checked elsewhere, and the issuer does not matter for WebID-TLS.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_CERTIFICATE_BYTES: Final = 32 * 1024
"""The limit for the DER encoding; a self-signed certificate with a 4096-bit RSA key has about
1,500 bytes."""


class MalformedCertificate(Exception):
    """The bytes are not a well-formed certificate."""


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A public RSA key (RFC 8017 section 3.1)."""

    modulus: int
    exponent: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """The content of a certificate. Times are Unix seconds, both within the validity period."""

    uris: tuple[str, ...]
    """The URIs among the subject alternative names (GeneralName type 6), in order."""
    not_before_s: int
    not_after_s: int
    key: RsaKey | None
    """``None`` for a key of another kind."""
    key_digest: bytes
    """The SHA-256 of the encoded public key (SubjectPublicKeyInfo); empty without ``key``."""


def read_certificate(der: bytes) -> Certificate:
    """Parse a certificate. Raises MalformedCertificate, also if an extension is malformed."""
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise MalformedCertificate
    try:
        parsed = x509.load_der_x509_certificate(der)
        key, digest = _rsa_key(parsed)
        return Certificate(
            uris=_uris(parsed),
            not_before_s=int(parsed.not_valid_before_utc.timestamp()),
            not_after_s=int(parsed.not_valid_after_utc.timestamp()),
            key=key,
            key_digest=digest,
        )
    except Exception as error:
        # For malformed input, the library raises exceptions of all kinds, such as KeyError.
        raise MalformedCertificate from error


def _uris(parsed: x509.Certificate) -> tuple[str, ...]:
    try:
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.value.get_values_for_type(x509.UniformResourceIdentifier))


def _rsa_key(parsed: x509.Certificate) -> tuple[RsaKey | None, bytes]:
    try:
        key = parsed.public_key()
    except UnsupportedAlgorithm:
        return None, b""
    if not isinstance(key, RSAPublicKey):
        return None, b""
    numbers = key.public_numbers()
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return RsaKey(numbers.n, numbers.e), sha256(encoded).digest()
