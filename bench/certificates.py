"""The certificates of the TLS cases: the server's, and a client's that names a WebID."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from bench.site import LOOPBACK

_BITS = 2048
_VALID_DAYS = 2

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class ServerCertificate:
    """A self-signed certificate for this machine, in files of its folder."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """The file of the certificate."""
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        """The file of its key."""
        return self.folder / "server-key.pem"

    def make(self) -> None:
        """Write both files."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address(LOOPBACK))]
        self.certificate.write_bytes(_signed(key, names).public_bytes(Encoding.PEM))
        self.key.write_bytes(_private(key))


@dataclass(frozen=True)
class ClientCertificate:
    """A client's certificate and key."""

    web_id: str

    @cached_property
    def key(self) -> rsa.RSAPrivateKey:
        """Made when it is first asked for."""
        return rsa.generate_private_key(public_exponent=65537, key_size=_BITS)

    def write(self, folder: Path) -> Path:
        """Write one file of both."""
        made = _signed(self.key, [x509.UniformResourceIdentifier(self.web_id)])
        path = folder / "client.pem"
        path.write_bytes(made.public_bytes(Encoding.PEM) + _private(self.key))
        return path

    @property
    def statement(self) -> dict[str, str | int]:
        """The key as profiles state it, in terms of the prefix ``cert``."""
        numbers = self.key.public_key().public_numbers()
        return {"cert:modulus": f"{numbers.n:x}", "cert:exponent": numbers.e}


def _signed(key: Key, names: list[x509.GeneralName]) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Benchmark")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )


def _private(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
