"""A post office: the messages of a server, handed over when a test says so, and a mail server."""

from __future__ import annotations

import asyncio
import queue
import re
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from importlib import import_module
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from podstead.app.accounts import AccountServices
from podstead.web.registration import AboutOperator
from tests.support.application import BASE

DEADLINE_S = 60
SENDER = "pods@pods.example"
USER, PASSWORD = "pods", "p@ss word"

_LINK = re.compile(r"http://localhost[^\s]*/\.pages/(?:link|verify)/[0-9a-f]{64}")


@dataclass(frozen=True)
class Received:
    """A message as it arrived."""

    recipient: str
    message: EmailMessage

    @property
    def subject(self) -> str:
        return str(self.message["Subject"])

    @property
    def text(self) -> str:
        body = self.message.get_body(("plain",))
        assert body is not None
        content: str = body.get_content()
        return content

    @property
    def html(self) -> str:
        body = self.message.get_body(("html",))
        assert body is not None
        content: str = body.get_content()
        return content

    @property
    def link(self) -> str:
        """The path of the one link for a new password or a confirmation."""
        [link] = _LINK.findall(self.text)
        assert link in self.html
        return "/.pages/" + str(link).partition("/.pages/")[2]


@dataclass
class Postbox:
    """A transport that keeps messages; it fails as often as it is told."""

    received: list[Received] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    async def send(self, message: EmailMessage, *, recipient: str) -> None:
        if self.failures:
            raise self.failures.pop(0)
        # As it arrives after a mail server has had it.
        parsed = message_from_bytes(bytes(message), policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.received.append(Received(recipient, parsed))


@dataclass
class PostOffice:
    """Sends what waits, as one worker of a server does."""

    services: AccountServices
    box: Postbox

    def __post_init__(self) -> None:
        self.sender = self.another_worker()

    def another_worker(self) -> Any:  # noqa: ANN401 - of a feature, which may have been removed
        """A worker that hands its messages over to the same box."""
        compose = import_module("podstead.features.mail.compose")
        sending = import_module("podstead.features.mail.sending")
        site = compose.MailSite("pods.example", BASE, AboutOperator(contact="help@pods.example"))
        return sending.MailSender(
            accounts=self.services, transport=self.box, sender=SENDER, site=site
        )

    async def deliver(self) -> list[Received]:
        """Send what is due, and return what arrived."""
        self.box.received.clear()
        await self.sender.send_due()
        return list(self.box.received)


def _authenticated(*about: Any) -> AuthResult:  # noqa: ANN401 - as aiosmtpd has it
    """Whether the last of the arguments is the right name and password."""
    right = about[-1] == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=right)


class _OnAnyPort(Controller):
    """A controller that asks the port that the system chose whether it listens, and that ends after
    its last connection."""

    def factory(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it asks for passwords without STARTTLS
            smtp: SMTP = super().factory()  # type: ignore[no-untyped-call]
        connection_lost = smtp.connection_lost
        self._open.add(smtp)

        def lost(error: Exception | None) -> None:
            connection_lost(error)
            self._open.discard(smtp)
            self._ended.set()

        smtp.connection_lost = lost  # type: ignore[method-assign]
        return smtp

    def __init__(self, handler: MailServer, **options: Any) -> None:  # noqa: ANN401 - many kinds
        self._open: set[SMTP] = set()
        self._ended = threading.Event()
        super().__init__(handler, loop=asyncio.SelectorEventLoop(), **options)

    def stop(self, no_assert: bool = False) -> None:
        while self._open and self._ended.wait(DEADLINE_S):
            self._ended.clear()
        super().stop(no_assert=no_assert)

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


class MailServer:
    """What a mail server for tests does with messages; ``replies`` are answers to recipients."""

    def __init__(self) -> None:
        self.arrived: queue.Queue[Received] = queue.Queue()
        self.replies: list[str] = []
        self.was_encrypted: list[bool] = []
        self.port = 0

    async def handle_RCPT(  # noqa: N802 - as aiosmtpd has it
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: object
    ) -> str:
        if self.replies:
            return self.replies.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - as aiosmtpd has it
        self, _server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.was_encrypted.append(session.ssl is not None)
        assert isinstance(envelope.content, bytes)
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        for recipient in envelope.rcpt_tos:
            self.arrived.put(Received(recipient, parsed))
        return "250 OK"

    def next(self) -> Received:
        return self.arrived.get(timeout=DEADLINE_S)


@contextmanager
def running_mail_server(
    certificate: Path, key: Path, *, starttls: bool = True, tls: bool = False, password: bool = True
) -> Iterator[MailServer]:
    """A mail server on this machine, with STARTTLS, with TLS from the beginning, or without."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    handler = MailServer()
    options: dict[str, Any] = {}
    if password:
        options = {"authenticator": _authenticated, "auth_required": True}
        options["auth_require_tls"] = starttls
    if starttls:
        options |= {"tls_context": context, "require_starttls": True}
    controller = _OnAnyPort(
        handler,
        hostname="127.0.0.1",
        port=0,
        ready_timeout=DEADLINE_S,
        ssl_context=context if tls else None,
        **options,
    )
    controller.start()
    try:
        handler.port = controller.port
        yield handler
    finally:
        controller.stop()
