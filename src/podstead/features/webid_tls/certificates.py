"""Reads client certificates, and issues them for WebID-TLS: for one WebID, with a new RSA key.

Those that it issues are self-signed because WebID-TLS ignores the issuer; what matters is that the
document of the WebID states the key. The key is RSA because the vocabulary of these documents has
no terms for other kinds.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podstead.features.webid_tls.keys import NewKey

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
    if not isinstance(key, rsa.RSAPublicKey):
        return None, b""
    numbers = key.public_numbers()
    encoded = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return RsaKey(numbers.n, numbers.e), sha256(encoded).digest()


_PUBLIC_EXPONENT = 65537
_EARLIER_S = 300
"""How far the start of the validity is backdated, since clocks differ."""


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A new certificate for a WebID, and its private key."""

    web_id: str
    _key: rsa.RSAPrivateKey
    _certificate: x509.Certificate

    @property
    def certificate_pem(self) -> bytes:
        """The certificate in PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key in PEM (PKCS #8), without a password."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def new_key(self) -> NewKey:
        """The public key, which the WebID's document must state."""
        numbers = self._key.public_key().public_numbers()
        return NewKey(self.web_id, numbers.n, numbers.e)

    def key_store(self, *, name: str, password: str) -> bytes:
        """Certificate and key in one encrypted PKCS #12 file, for import into browsers and
        systems."""
        return pkcs12.serialize_key_and_certificates(
            name.encode(),
            self._key,
            self._certificate,
            None,
            serialization.BestAvailableEncryption(password.encode()),
        )


def issue_certificate(
    web_id: str, *, now_s: int, valid_s: int, key_bits: int = 2048
) -> IssuedCertificate:
    """Generate a key and issue its certificate for a WebID; with 4096 bits, up to a second."""
    key = rsa.generate_private_key(public_exponent=_PUBLIC_EXPONENT, key_size=key_bits)
    now = datetime.fromtimestamp(now_s, UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _common_name(web_id))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(seconds=_EARLIER_S))
        .not_valid_after(now + timedelta(seconds=valid_s))
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(web_id)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return IssuedCertificate(web_id, key, certificate)


def _common_name(web_id: str) -> str:
    """The name that programs show for the certificate; X.520 limits it to 64 characters."""
    name = web_id.partition("://")[2]
    return name if len(name) <= 64 else f"{name[:63]}…"
