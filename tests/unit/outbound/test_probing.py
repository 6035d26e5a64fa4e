"""What is wrong with a certificate? As clients that verify it see it."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podstead.outbound.probing import BadCertificate, CertificateFault, NotReached, probe

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def issued(
    name: str, issuer: Issued | None = None, *, authority: bool = False, days: tuple[int, int]
) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_name = subject if issuer is None else issuer.certificate.subject
    signing_key = key if issuer is None else issuer.key
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=not authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=authority,
                crl_sign=authority,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    return Issued(builder.sign(signing_key, hashes.SHA256()), key)


@contextmanager
def serving(folder: Path, chain: bytes, key: bytes) -> Iterator[int]:
    """A server that answers one request with these certificates; the port."""
    (folder / "chain.pem").write_bytes(chain)
    (folder / "key.pem").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    with context.wrap_socket(connection, server_side=True) as secured:
                        secured.recv(65536)
                        secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                except (ssl.SSLError, OSError):
                    return  # the client does not like the certificate

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


ROOT = issued("The root", authority=True, days=(-100, 100))
BETWEEN = issued("The intermediate", ROOT, authority=True, days=(-100, 100))


@pytest.fixture
def _trusting_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the authority were one that this machine knows."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(ROOT.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))


@pytest.mark.usefixtures("_trusting_root")
def test_a_good_certificate_has_days_left(tmp_path: Path) -> None:
    leaf = issued("localhost", BETWEEN, days=(-1, 30))
    with serving(tmp_path, leaf.pem + BETWEEN.pem, leaf.key_pem) as port:
        reply = probe(f"https://localhost:{port}/")
    assert (reply.status, reply.content) == (200, b"ok")
    assert reply.certificate_days is not None
    assert 29 < reply.certificate_days < 31


@pytest.mark.usefixtures("_trusting_root")
@pytest.mark.parametrize(
    ("fault", "name", "days", "kind"),
    [
        (CertificateFault.EXPIRED, "localhost", (-30, -1), "chain"),
        (CertificateFault.NOT_YET_VALID, "localhost", (1, 30), "chain"),
        (CertificateFault.WRONG_NAME, "elsewhere.example", (-1, 30), "chain"),
        (CertificateFault.SELF_SIGNED, "localhost", (-1, 30), "self-signed"),
        (CertificateFault.NO_ISSUER, "localhost", (-1, 30), "without intermediate"),
    ],
    ids=lambda value: value.name if isinstance(value, CertificateFault) else "",
)
def test_what_is_wrong_with_a_certificate(
    fault: CertificateFault, name: str, days: tuple[int, int], kind: str, tmp_path: Path
) -> None:
    leaf = issued(name, None if kind == "self-signed" else BETWEEN, days=days)
    chain = leaf.pem + (BETWEEN.pem if kind == "chain" else b"")
    with serving(tmp_path, chain, leaf.key_pem) as port, pytest.raises(BadCertificate) as raised:
        probe(f"https://localhost:{port}/")
    assert raised.value.fault is fault


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotReached, match="refused"):
        probe(f"http://127.0.0.1:{port}/")


def test_a_server_without_tls_is_no_server_with_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(NotReached, match="no TLS"):
            probe(f"https://localhost:{listener.getsockname()[1]}/")
        thread.join()
