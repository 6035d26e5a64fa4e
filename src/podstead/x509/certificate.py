"""What does a certificate say of its holder? Its DER encoding as a value (RFC 5280).

Nothing is judged here: whether the dates are good, the key strong enough and the names usable is
asked elsewhere, and who issued it is of no interest to WebID-TLS.
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
"""Of the DER encoding; a self-signed one with an RSA key of 4096 bits has some 1,500."""


class UnreadableCertificate(Exception):
    """The bytes are no certificate, or one that is not of the form it has to be."""


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A public RSA key (RFC 8017 section 3.1)."""

    modulus: int
    exponent: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says. Times are Unix seconds, both within the validity period."""

    uris: tuple[str, ...]
    """The URIs among its subject alternative names (GeneralName type 6), in their order."""
    not_before_s: int
    not_after_s: int
    key: RsaKey | None
    """``None`` for a key of another kind."""
    key_digest: bytes
    """The SHA-256 of the encoded public key (SubjectPublicKeyInfo); empty without ``key``."""


def read_certificate(der: bytes) -> Certificate:
    """Read a certificate. Raises UnreadableCertificate, also for extensions that are malformed:
    it is not known then what else it says."""
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise UnreadableCertificate
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
        # The library answers what strangers make up with errors of all kinds, KeyError for one.
        raise UnreadableCertificate from error


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
