"""Hands mail over to a mail server or, for trying things out, to files or the console."""

from __future__ import annotations

import asyncio
import os
import sys
from email.message import EmailMessage
from pathlib import Path

from podstead.outbound.mail import MailDelayed, MailDestination, MailKind, MailTransport


def mail_transport(destination: MailDestination) -> MailTransport:
    """The transport for a destination."""
    if destination.kind is MailKind.CONSOLE:
        return ConsoleTransport()
    if destination.folder is not None:
        return FileTransport(destination.folder)
    # A library that only servers with a mail server load.
    from podstead.outbound.smtp import SmtpTransport

    return SmtpTransport(destination)


class FileTransport:
    """Writes each message to a file of its own, which only this user can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, message: EmailMessage, *, recipient: str) -> None:  # noqa: ARG002 - in the message
        """Raises MailDelayed."""
        try:
            await asyncio.to_thread(self._write, message)
        except OSError as error:
            raise MailDelayed(f"{self._folder}: {error.strerror}") from error

    def _write(self, message: EmailMessage) -> None:
        name = str(message["Message-ID"]).strip("<>").partition("@")[0]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self._folder / f"{name}.eml"
        draft = self._folder / f".{name}.draft"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(message))
        draft.rename(target)


class ConsoleTransport:
    """Prints the text of each message on standard error."""

    async def send(self, message: EmailMessage, *, recipient: str) -> None:
        """Raises nothing."""
        body = message.get_body(("plain",))
        text = "" if body is None else body.get_content()
        sys.stderr.write(f"--- Mail to {recipient}: {message['Subject']}\n{text}---\n")
        sys.stderr.flush()
