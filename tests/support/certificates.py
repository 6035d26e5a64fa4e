"""Client certificates made without our code, by the cryptography package, and what profiles say.

Everything about a certificate can be made otherwise than it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_CERT = "http://www.w3.org/ns/auth/cert#"
_XSD = "http://www.w3.org/2001/XMLSchema#"


@lru_cache
def rsa_key(number: int = 0, *, bits: int = 2048, exponent: int = 65537) -> rsa.RSAPrivateKey:
    """One key for each number, made once: that takes a while."""
    return rsa.generate_private_key(public_exponent=exponent, key_size=bits)


@dataclass(frozen=True)
class Holder:
    """Somebody with a certificate."""

    key: PrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Files of the certificate and the key, as command-line tools want them."""
        certificate, key = folder / "client.pem", folder / "client-key.pem"
        certificate.write_text(self.pem)
        key.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, key


def holder(
    *uris: str,
    key: PrivateKey | None = None,
    now_s: int | None = None,
    starts_s: int = -3600,
    ends_s: int = 3600,
    names: Sequence[x509.GeneralName] | None = None,
    extensions: Sequence[x509.ExtensionType] = (),
) -> Holder:
    """A self-signed certificate with these URIs as names, valid from and to, from now."""
    key = key or rsa_key()
    now = datetime.now(UTC) if now_s is None else datetime.fromtimestamp(now_s, UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "WebID")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(seconds=starts_s))
        .not_valid_after(now + timedelta(seconds=ends_s))
    )
    alternative = [x509.UniformResourceIdentifier(uri) for uri in uris]
    if names is not None or alternative:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([*(names or ()), *alternative]), critical=False
        )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Holder(key, builder.sign(key, algorithm))


def numbers(key: PrivateKey) -> rsa.RSAPublicNumbers:
    """The public numbers of an RSA key."""
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.public_key().public_numbers()


def modulus_hex(key: PrivateKey) -> str:
    """The modulus as xsd:hexBinary has it."""
    return f"{numbers(key).n:0{numbers(key).n.bit_length() // 4}X}"


def key_turtle(key: PrivateKey, who: str = "#me", *, exponent: str | None = None) -> str:
    """The statement of a key in a profile."""
    return (
        f"<{who}> <{_CERT}key> [ a <{_CERT}RSAPublicKey>;\n"
        f'  <{_CERT}modulus> "{modulus_hex(key)}"^^<{_XSD}hexBinary>;\n'
        f"  <{_CERT}exponent> {exponent or numbers(key).e} ].\n"
    )
