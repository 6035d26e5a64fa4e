"""The destination of mail, and the errors of handing it over."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from email.message import EmailMessage


SUBMISSION_PORT: Final = 587
TLS_PORT: Final = 465
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MAIL_PORTS: Final = (SUBMISSION_PORT, TLS_PORT, 25, 2525)


def is_port_of_mail(host: str, port: int) -> bool:
    """Whether mail servers are at this port, on other machines than this one. Whoever changes
    settings of a running server cannot try by others what else is in its network."""
    return port in MAIL_PORTS or host in LOOPBACK


class MailTrouble(Enum):
    """At what a message failed."""

    NOT_REACHED = "not reached"
    TLS = "tls"
    SIGN_IN = "sign-in"
    REFUSED = "refused"


class MailError(Exception):
    """A message could not be handed over."""

    def __init__(self, reason: str, trouble: MailTrouble = MailTrouble.REFUSED) -> None:
        super().__init__(reason)
        self.trouble = trouble


class MailDelayed(MailError):
    """It may work later."""


class MailRefused(MailError):
    """It will never work: the address does not exist, or the message is not accepted."""


class MailTransport(Protocol):
    """Hands messages over."""

    async def send(self, message: EmailMessage, *, recipient: str) -> None:
        """Hand over a message, once and for all. Raises MailDelayed, MailRefused."""


class MailKind(Enum):
    """How messages are handed over."""

    SMTP = "smtp"
    FILE = "file"
    CONSOLE = "console"


class MailSecurity(Enum):
    """How the connection to the mail server is protected."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MailDestination:
    """Where the messages of this server are handed over."""

    kind: MailKind
    sender: str = ""
    """The address that messages come from; empty for one of this host."""
    host: str = ""
    port: int = 0
    security: MailSecurity = MailSecurity.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    folder: Path | None = None


def parse_mail_destination(text: str) -> MailDestination:
    """Read ``smtp://user:password@host:587?from=pods@example.org``, ``smtps://…``, ``file:FOLDER``
    or ``console``. Raises ValueError."""
    if text == "console":
        return MailDestination(MailKind.CONSOLE)
    scheme, colon, rest = text.partition(":")
    if scheme == "file" and colon and rest and "\0" not in rest:
        return MailDestination(MailKind.FILE, folder=Path(rest).absolute())
    return _smtp(text)


def _smtp(text: str) -> MailDestination:
    if not text.isprintable() or " " in text:
        raise ValueError
    url = urlsplit(text)
    if url.scheme not in ("smtp", "smtps") or not url.hostname or url.path.strip("/"):
        raise ValueError
    options = parse_qs(url.query, strict_parsing=True)
    if not options.keys() <= {"from", "tls"} or any(len(each) > 1 for each in options.values()):
        raise ValueError
    [sender] = options.get("from", [""])
    local, at, domain = sender.partition("@")
    if not (local and at and domain and sender.isascii()) or "@" in domain:
        raise ValueError
    security = _security(url.scheme, options.get("tls", []), host=url.hostname)
    if (url.username is None) != (url.password is None):
        raise ValueError
    return MailDestination(
        MailKind.SMTP,
        sender=sender,
        host=url.hostname,
        port=url.port or (TLS_PORT if security is MailSecurity.TLS else SUBMISSION_PORT),
        security=security,
        user=None if url.username is None else unquote(url.username),
        password=None if url.password is None else unquote(url.password),
    )


def _security(scheme: str, options: list[str], *, host: str) -> MailSecurity:
    """No TLS only for this machine, since passwords and links would be readable on the way."""
    if not options:
        return MailSecurity.TLS if scheme == "smtps" else MailSecurity.STARTTLS
    if options != ["none"] or scheme != "smtp" or host not in LOOPBACK:
        raise ValueError
    return MailSecurity.NONE
