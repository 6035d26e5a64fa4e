"""Mail handed to a real mail server (aiosmtpd), with TLS that is verified."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podstead.app.monitoring.diagnosis import Severity
from podstead.config import Settings, StartRefused, read_settings
from podstead.config.sources import OptionValue
from podstead.features.mail import MailSettings
from podstead.features.mail.destination import (
    MailDelayed,
    MailDestination,
    MailKind,
    MailRefused,
    MailSecurity,
    parse_mail_destination,
)
from podstead.features.mail.health import _destination
from podstead.features.mail.smtp import SmtpTransport
from podstead.outbound.probing import BadCertificate, CertificateFault, NotReached, probe
from tests.support import mail
from tests.support.mail import MailServer, running_mail_server
from tests.support.peer import TLS_FOLDER

CERTIFICATE, KEY = TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem"
ALICE = "alice@example.org"


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The authority of the mail server is one that this machine trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS_FOLDER / "authority.pem"))


@pytest.fixture
def server() -> Iterator[MailServer]:
    with running_mail_server(CERTIFICATE, KEY) as server:
        yield server


@pytest.fixture
def tls_server() -> Iterator[MailServer]:
    """With TLS from the beginning."""
    with running_mail_server(CERTIFICATE, KEY, starttls=False, tls=True) as server:
        yield server


@pytest.fixture
def plain_server() -> Iterator[MailServer]:
    """Without TLS, as an attacker on the way makes one look like."""
    with running_mail_server(CERTIFICATE, KEY, starttls=False) as server:
        yield server


@pytest.fixture
def open_server() -> Iterator[MailServer]:
    """Without TLS and without passwords, as on the same machine."""
    with running_mail_server(CERTIFICATE, KEY, starttls=False, password=False) as server:
        yield server


def destination(
    server: MailServer,
    security: MailSecurity = MailSecurity.STARTTLS,
    *,
    password: str | None = mail.PASSWORD,
) -> MailDestination:
    return MailDestination(
        MailKind.SMTP,
        sender=mail.SENDER,
        host="localhost",
        port=server.port,
        security=security,
        user=None if password is None else mail.USER,
        password=password,
    )


async def send(to: MailDestination) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = mail.SENDER, ALICE, "Grüße"
    message.set_content("Schönen Tag\n.\nnoch eine Zeile")
    await SmtpTransport(to).send(message, recipient=ALICE)


@pytest.mark.usefixtures("trusted")
async def test_a_message_arrives_whole_over_starttls(server: MailServer) -> None:
    await send(destination(server))
    received = server.next()
    assert (received.recipient, received.subject) == (ALICE, "Grüße")
    assert received.text.splitlines() == ["Schönen Tag", ".", "noch eine Zeile"]
    assert server.was_encrypted == [True]


@pytest.mark.usefixtures("trusted")
async def test_a_message_arrives_over_tls_from_the_beginning(tls_server: MailServer) -> None:
    await send(destination(tls_server, MailSecurity.TLS))
    assert tls_server.next().recipient == ALICE


async def test_a_mail_server_with_another_certificate_gets_nothing(server: MailServer) -> None:
    with pytest.raises(MailDelayed, match="TLS"):
        await send(destination(server))
    assert server.arrived.empty()


@pytest.mark.usefixtures("trusted")
async def test_nothing_is_sent_without_encryption(plain_server: MailServer) -> None:
    """Neither the message nor the password."""
    with pytest.raises(MailDelayed):
        await send(destination(plain_server))
    assert plain_server.arrived.empty()


async def test_a_mail_server_on_this_machine_may_do_without(open_server: MailServer) -> None:
    await send(destination(open_server, MailSecurity.NONE, password=None))
    assert open_server.next().recipient == ALICE
    assert open_server.was_encrypted == [False]


@pytest.mark.usefixtures("trusted")
async def test_a_wrong_password_may_be_corrected_later(server: MailServer) -> None:
    with pytest.raises(MailDelayed) as raised:
        await send(destination(server, password="wrong"))
    assert "wrong" not in str(raised.value)
    assert server.arrived.empty()


@pytest.mark.usefixtures("trusted")
async def test_an_address_that_does_not_exist_is_refused_for_good(server: MailServer) -> None:
    server.replies.append("550 5.1.1 No such user")
    with pytest.raises(MailRefused, match="550"):
        await send(destination(server))
    server.replies.append("451 4.7.1 Greylisted, try again")
    with pytest.raises(MailDelayed, match="451"):
        await send(destination(server))


async def test_a_mail_server_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        absent = MailServer()
        absent.port = unused.getsockname()[1]
        with pytest.raises(MailDelayed):
            await send(destination(absent))


# --- the setting ------------------------------------------------------------------------------


def test_a_destination_is_read_from_a_url() -> None:
    read = parse_mail_destination("smtp://a%40b:p%3Aw@mail.example?from=pods@pods.example")
    assert (read.host, read.port, read.security) == ("mail.example", 587, MailSecurity.STARTTLS)
    assert (read.user, read.password, read.sender) == ("a@b", "p:w", "pods@pods.example")
    assert "p:w" not in repr(read)
    read = parse_mail_destination("smtps://mail.example?from=pods@pods.example")
    assert (read.port, read.security) == (465, MailSecurity.TLS)
    read = parse_mail_destination("smtp://localhost:25?from=a@b.example&tls=none")
    assert (read.port, read.security) == (25, MailSecurity.NONE)
    assert parse_mail_destination("file:mail").folder == Path("mail").absolute()
    assert parse_mail_destination("console").kind is MailKind.CONSOLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mail.example",
        "http://mail.example?from=a@b.example",
        "smtp://?from=a@b.example",
        "smtp://mail.example",
        "smtp://mail.example?from=nobody",
        "smtp://mail.example?from=a@b@c.example",
        "smtp://mail.example?from=a@b.example&tls=none",
        "smtp://mail.example?from=a@b.example&verify=no",
        "smtp://mail.example:x?from=a@b.example",
        "smtp://mail.example/path?from=a@b.example",
        "smtp://user@mail.example?from=a@b.example",
        "smtp://mail.example?from=a@b.example\r\nBcc: x",
        "smtps://localhost?from=a@b.example&tls=none",
        "file:",
    ],
)
def test_what_is_no_destination_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the setting has the message
        parse_mail_destination(text)


# --- What is wrong with a certificate? As clients that verify it see it ------------------------


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


async def test_a_mail_server_that_does_not_answer() -> None:
    destination = parse_mail_destination("smtp://localhost:1?from=a@pods.example&tls=none")
    finding = await _destination(destination)
    assert finding.severity is Severity.PROBLEM
    assert "localhost, port 1" in finding.detail
    assert finding.remedy


SMTP = "smtp://user:secret-word@mail.example:587?from=pods@pods.example"


def test_mail_needs_accounts_and_its_password_is_no_option(tmp_path: Path) -> None:
    def read(
        options: dict[str, OptionValue], environment: dict[str, str] | None = None
    ) -> Settings:
        return read_settings(options, environment or {}, folder=tmp_path)

    def refusal(options: dict[str, OptionValue]) -> str:
        with pytest.raises(StartRefused) as caught:
            read(options)
        return str(caught.value)

    file = tmp_path / "podstead.toml"
    file.write_text(f'mail = "{SMTP}"\n')
    idp: dict[str, OptionValue] = {"idp": True}
    for settings in (
        read(idp, {"PODSTEAD_MAIL": SMTP}),
        read({**idp, "config": str(file)}),
    ):
        mail = settings.of(MailSettings).mail
        assert mail is not None
        assert mail.host == "mail.example"
        assert "secret-word" not in repr(settings)
    assert read({**idp, "mail": "console"}).reaches_people
    message = refusal({**idp, "mail": SMTP})
    assert "PODSTEAD_MAIL" in message
    assert "secret-word" not in message
    assert "secret-word" not in refusal({**idp, "mail": SMTP.replace("from", "form")})
    assert "--idp" in refusal({"mail": "console"})
