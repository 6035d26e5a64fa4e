"""Mail handed to a real mail server (aiosmtpd), with TLS that is verified."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from podstead.outbound.mail import (
    MailDelayed,
    MailDestination,
    MailKind,
    MailRefused,
    MailSecurity,
    parse_mail_destination,
)
from podstead.outbound.smtp import SmtpTransport
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
