"""Sends the messages in the queue to people, one worker at a time.

They are handed over to a mail server or, for trying things out, to files or the console. A message
is tried again after a failure, less and less often, for two days at most. A worker that ends
between handing a message over and recording that sends it twice; both have one Message-ID.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from podstead.app.accounts import AccountServices
from podstead.app.adapters.registration import about_operator
from podstead.app.monitoring.families import MailCounts, MailOutcome
from podstead.config import Settings
from podstead.core.errors import NotFound, ServerTrouble
from podstead.features.mail import LOOK_S, compose
from podstead.features.mail import destination as mail_destination
from podstead.features.mail.compose import MailSite, MailText
from podstead.idp.administration.service import SIGN_IN_LINK_S, OneTimeLinks
from podstead.idp.audit import AuditEvent
from podstead.idp.email_verification import PROOF_S, EmailVerification
from podstead.idp.mail_queue import MailJob, MailQueue, MailSubject, job_id
from podstead.idp.records import ACCOUNTS, Account, mailbox_key
from podstead.storage.files import replace_private
from podstead.storage.invitations import Invitations, invitation_url
from podstead.storage.record_store import Versioned, secret_key
from podstead.web.pages.addresses import link_url, verify_url


def mail_transport(destination: mail_destination.MailDestination) -> mail_destination.MailTransport:
    """The transport for a destination."""
    if destination.kind is mail_destination.MailKind.CONSOLE:
        return ConsoleTransport()
    if destination.folder is not None:
        return FileTransport(destination.folder)
    # A library that only servers with a mail server load.
    from podstead.features.mail.smtp import SmtpTransport

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
            raise mail_destination.MailDelayed(f"{self._folder}: {error.strerror}") from error

    def _write(self, message: EmailMessage) -> None:
        name = str(message["Message-ID"]).strip("<>").partition("@")[0]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_private(self._folder / f"{name}.eml", bytes(message))


class ConsoleTransport:
    """Prints the text of each message on standard error."""

    async def send(self, message: EmailMessage, *, recipient: str) -> None:
        """Raises nothing."""
        body = message.get_body(("plain",))
        text = "" if body is None else body.get_content()
        sys.stderr.write(f"--- Mail to {recipient}: {message['Subject']}\n{text}---\n")
        sys.stderr.flush()


logger = logging.getLogger("podstead.mail")

AGAIN_S: Final = 60
"""How long a worker waits after an error, and while the mail server does not take messages."""
MAX_FAILURES: Final = 3
"""After how many messages in a row that the mail server did not take the rest waits."""
VERIFICATIONS_PER_DAY: Final = 5
"""For one account, to whatever addresses it states: only its owner uses them up."""
VERIFICATIONS_TO_MAILBOX_PER_DAY: Final = 30
"""To one mailbox, whoever states it. More than one account may ask for, so that nobody uses them up
alone, and few enough to bear; one more is possible every 48 minutes."""
PASSWORD_LINKS_PER_HOUR: Final = 3
"""To one account, whoever asks for them. When no further one is sent, the last was sent less than
twenty minutes ago and is valid for an hour, so a stranger who asks keeps nobody from having one."""
NOTICES_PER_DAY: Final = 30
"""To one account."""
_DAY_S: Final = 24 * 3600
_MARK_BYTES: Final = 8
_BATCH: Final = 50


def build_mail_sender(
    settings: Settings, destination: mail_destination.MailDestination, accounts: AccountServices
) -> "MailSender":
    """The sender of one worker."""
    host = urlsplit(settings.issuer)
    return MailSender(
        accounts=accounts,
        transport=mail_transport(destination),
        sender=destination.sender or f"podstead@{host.hostname}",
        site=MailSite(
            server_name=host.netloc, base_url=settings.issuer, operator=about_operator(settings)
        ),
    )


class MailSender:
    """Sends what waits."""

    def __init__(
        self,
        *,
        accounts: AccountServices,
        transport: mail_destination.MailTransport,
        sender: str,
        site: MailSite,
    ) -> None:
        """``sender`` is the address that messages come from."""
        self._records = accounts.records
        self._accounts = accounts.accounts
        self._audit = accounts.audit
        self._queue = MailQueue(accounts.records)
        self._verification = EmailVerification(accounts.records, accounts.audit)
        self._links = OneTimeLinks(accounts.records)
        self._invitations = Invitations(accounts.records)
        self._transport = transport
        self._sender = sender
        self._site = site

    async def run(self, is_current: Callable[[], bool]) -> None:
        """Runs while this is the right sender, also after errors; to be run in its own task."""
        seen: int | None = None
        next_ms: int | None = 0
        try:
            while is_current():
                wait_s = LOOK_S
                try:
                    mark = self._records.store.data_version()
                    is_due = next_ms is not None and next_ms <= self._records.now_ms()
                    if mark is None or mark != seen or is_due:
                        if not await self.send_due(is_current):
                            wait_s = AGAIN_S
                        next_ms = await self._queue.next_ms()
                        seen = mark
                except Exception:
                    logger.exception("Messages could not be read; it is tried again")
                    wait_s = AGAIN_S
                while wait_s > 0 and is_current():
                    await asyncio.sleep(LOOK_S)
                    wait_s -= LOOK_S
        finally:
            with contextlib.suppress(ServerTrouble):
                await self._queue.lease.release()

    async def send_due(self, is_current: Callable[[], bool] = lambda: True) -> bool:
        """Send what is due, if no other worker does; False if the mail server takes nothing now.
        Raises StorageError, Overloaded."""
        failures = 0
        while due := await self._queue.due(limit=_BATCH):
            for stored in due:
                if not is_current() or not await self._queue.lease.hold():
                    return True
                failures = 0 if await self._sent(stored) else failures + 1
                if failures >= MAX_FAILURES:
                    return False
        return True

    async def _sent(self, stored: Versioned[MailJob]) -> bool:
        """Whether the mail server had a decision on a message; otherwise it is tried again later.
        One that cannot be written is tried again, too, and says nothing about the others."""
        try:
            prepared = await self._prepared(stored.value)
        except Exception:
            logger.exception("Mail could not be written; it is tried again later")
            MailCounts.note(MailOutcome.DELAYED)
            await self._queue.later(stored)
            return True
        if prepared is None:
            await self._queue.done(stored)
            return True
        recipient, text = prepared
        try:
            message = self._message(recipient, text, mark=job_id(stored))
            await self._transport.send(message, recipient=recipient)
        except mail_destination.MailDelayed as error:
            logger.warning("Mail could not be sent yet: %s", error)
            MailCounts.note(MailOutcome.DELAYED)
            await self._queue.later(stored, str(error))
            return False
        except mail_destination.MailRefused as error:
            logger.warning("Mail could not be sent: %s", error)
            self._note_given_up(stored.value)
        except Exception:
            # Otherwise one message would keep all others from being sent.
            logger.exception("Mail could not be sent, and is not tried again")
            self._note_given_up(stored.value)
        else:
            MailCounts.note(MailOutcome.SENT)
        await self._queue.done(stored)
        return True

    def _note_given_up(self, job: MailJob) -> None:
        MailCounts.note(MailOutcome.GIVEN_UP)
        self._audit.note(AuditEvent.MAIL_UNSENT, account_id=job.account_id or None)

    async def send_trial(self, recipient: str, language: str) -> None:
        """Send a message that says that messages arrive, now. Raises MailDelayed, MailRefused."""
        text = compose.trial(self._site, language)
        mark = self._records.randomness.token_hex(_MARK_BYTES)
        message = self._message(recipient, text, mark=mark)
        await self._transport.send(message, recipient=recipient)

    # --- what a message says ------------------------------------------------------------------

    async def _prepared(self, job: MailJob) -> tuple[str, MailText] | None:
        """The recipient and the text; ``None`` if there is nothing to say any more, or too much has
        been said already."""
        subject = MailSubject(job.subject)
        if subject is MailSubject.PASSWORD_RESET:
            return await self._password_reset(job)
        if subject is MailSubject.INVITATION:
            return await self._invitation(job)
        account = await self._account(job)
        if account is None:
            return None
        if subject is MailSubject.VERIFICATION:
            return await self._verification_text(job, account)
        if not await self._may_send(job, f"notice:{account.account_id}", NOTICES_PER_DAY, _DAY_S):
            return None
        composed = {
            MailSubject.NEW_BROWSER: compose.new_browser,
            MailSubject.ACCESS_REQUEST: compose.access_request,
            MailSubject.NOTICES: compose.notices,
        }.get(subject, compose.security_notice)
        language = job.language or account.language
        return job.to, composed(self._site, language, name=account.pod, facts=job.facts)

    async def _verification_text(
        self, job: MailJob, account: Account
    ) -> tuple[str, MailText] | None:
        if account.email != job.to:
            return None
        key = f"verification:{account.account_id}"
        if not await self._may_send(job, key, VERIFICATIONS_PER_DAY, _DAY_S):
            return None
        key = f"to:{secret_key(mailbox_key(job.to))}"
        if not await self._may_send(job, key, VERIFICATIONS_TO_MAILBOX_PER_DAY, _DAY_S):
            return None
        secret = await self._verification.create(account)
        if secret is None:
            return None
        return job.to, compose.verification(
            self._site,
            job.language,
            name=account.pod,
            link=self._site.base_url + verify_url(secret),
            days=PROOF_S // _DAY_S,
        )

    async def _password_reset(self, job: MailJob) -> tuple[str, MailText] | None:
        stored = await self._accounts.find(job.login)
        if stored is None or stored.value.disabled:
            return None
        account = stored.value
        if account.confirmed_email is None:
            return None
        key = f"password:{account.account_id}"
        if not await self._may_send(job, key, PASSWORD_LINKS_PER_HOUR, 3600):
            return None
        secret, records = await self._links.beside_others(account)
        await self._records.commit(records)
        self._audit.note(AuditEvent.PASSWORD_LINK_SENT, account_id=account.account_id)
        return account.confirmed_email, compose.password_reset(
            self._site,
            job.language,
            name=account.pod,
            link=self._site.base_url + link_url(secret),
            minutes=SIGN_IN_LINK_S // 60,
        )

    async def _invitation(self, job: MailJob) -> tuple[str, MailText] | None:
        try:
            made = await self._invitations.renewed(job.facts["invitation"])
        except NotFound:
            return None
        return job.to, compose.invitation(
            self._site,
            job.language,
            link=invitation_url(self._site.base_url, made.code),
            note=made.invitation.note,
            ends_ms=made.expires_ms,
        )

    async def _account(self, job: MailJob) -> Account | None:
        account = await self._records.value(ACCOUNTS, job.account_id)
        return None if account is None or account.disabled else account

    async def _may_send(self, job: MailJob, key: str, capacity: int, period_s: int) -> bool:
        """Whether one more message with this key may be sent; one that failed before may."""
        if job.attempts:
            return True
        return await self._records.take(f"mail:{key}", capacity=capacity, period_s=period_s) is None

    def _message(self, recipient: str, text: MailText, *, mark: str) -> EmailMessage:
        """Raises MailRefused for an address that no mail can be sent to."""
        message = EmailMessage()
        domain = self._sender.rpartition("@")[2]
        try:
            message["From"] = Address(self._site.server_name, addr_spec=self._sender)
            message["To"] = Address(addr_spec=recipient)
        except (ValueError, IndexError, AttributeError, HeaderParseError) as error:
            raise mail_destination.MailRefused(
                "the address cannot be written in a message"
            ) from error
        message["Subject"] = text.subject
        now = datetime.fromtimestamp(self._records.now_s(), UTC)
        message["Date"] = format_datetime(now)
        message["Message-ID"] = f"<{mark}@{domain}>"
        if text.unsubscribe:
            message["List-Unsubscribe"] = f"<{text.unsubscribe}>"  # RFC 2369
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answers from out-of-office
        message.set_content(text.text)
        message.add_alternative(text.html, subtype="html")
        message["Content-Language"] = text.language
        return message
