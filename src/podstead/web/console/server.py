"""The pages of the console about the server: its log, its health, its settings, and invitations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode

from podstead.core.date_times import DAY_MS
from podstead.core.errors import BadRequest
from podstead.core.numbers import whole_number
from podstead.idp.accounts import Accounts
from podstead.idp.administration import audit_log, service
from podstead.notifications.channels import DeliveryFailures
from podstead.storage import invitations as storage_invitations
from podstead.web.account.event_texts import event_text
from podstead.web.codes import WebCodes
from podstead.web.console import accounts
from podstead.web.console.accounts import INVITATIONS, LOG, account_url, for_operators
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import again_url
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

PAGE_SIZE: Final = 100
_TITLES: Final = {
    audit_log.CausedBy.OPERATOR: N_("Operators"),
    audit_log.CausedBy.PERSON: N_("Sign-ins and accounts"),
    audit_log.CausedBy.REFUSED: N_("Refused"),
}


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event as a row."""

    at_ms: int
    text: str
    facts: str
    pod: str
    """The name of the pod whose account it is about; empty for none, or if it is gone."""
    account: str
    """The id of an account that is gone."""
    operator: str
    address: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """Shows the log, one kind of events at a time."""

    site: Site
    log: audit_log.AuditLog
    accounts: Accounts

    @route(LOG, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: audit_log.Operator) -> Response:
        """One page of the log."""
        cause = _cause(page.query_text("events"))
        stored = await self.log.newest(cause, after=page.query_text("after"), limit=PAGE_SIZE + 1)
        events = [each.value for each in stored[:PAGE_SIZE]]
        more = None
        if len(stored) > PAGE_SIZE:
            after = stored[PAGE_SIZE - 1].key
            more = f"{LOG}?{urlencode({'events': cause.value, 'after': after})}"
        pods = await self._pods(events)
        return self.site.page(
            page,
            "console/log.html",
            events=[_shown(event, pods) for event in events],
            views=[
                (f"{LOG}?events={each.value}", _(title), each is cause)
                for each, title in _TITLES.items()
            ],
            more=more,
            days=audit_log.KEPT_MS // DAY_MS,
            account_url=account_url,
        )

    async def _pods(self, events: Sequence[audit_log.LoggedEvent]) -> Mapping[str, str]:
        """The names of the pods of the accounts in these events, by the ids of the accounts."""
        pods = {}
        for account_id in {event.account for event in events if event.account}:
            stored = await self.accounts.read(account_id)
            if stored is not None:
                pods[account_id] = stored.value.pod
        return pods


def _cause(text: str) -> audit_log.CausedBy:
    return next(
        (cause for cause in audit_log.CausedBy if cause.value == text), audit_log.CausedBy.OPERATOR
    )


def _shown(event: audit_log.LoggedEvent, pods: Mapping[str, str]) -> ShownEvent:
    pod = pods.get(event.account, "")
    return ShownEvent(
        at_ms=event.at_ms,
        text=event_text(event.what),
        facts=", ".join(f"{name} {value}" for name, value in event.facts.items() if value != pod),
        pod=pod,
        account="" if pod else event.account,
        operator=event.operator,
        address=event.address,
    )


OLD_BACKUP_DAYS: Final = 7
SOON_DAYS: Final = 14
"""How many days before its end a certificate should have been replaced."""
LOW_SHARE: Final = 10
"""Below one such part of the disk, free space is low."""


@dataclass(frozen=True, slots=True)
class MailHealth:
    """How many messages wait to be sent, and how many of these have failed at least once; since
    when the oldest waits, and the last error, in English."""

    waiting: int
    failing: int
    oldest_ms: int | None
    error: str


@dataclass(frozen=True, slots=True)
class BackupHealth:
    """When the last backup of this data root ended, and when the last one failed, if that was
    later."""

    finished_ms: int | None
    failed_ms: int | None
    now_ms: int

    @property
    def is_bad(self) -> bool:
        """Whether the last one failed, or is old."""
        oldest_ms = self.now_ms - OLD_BACKUP_DAYS * DAY_MS
        return self.failed_ms is not None or (self.finished_ms or 0) < oldest_ms


@dataclass(frozen=True, slots=True)
class CertificateHealth:
    """When the certificate of the server ends; ``None`` if that cannot be read."""

    ends_ms: int | None
    now_ms: int

    @property
    def is_bad(self) -> bool:
        """Whether it ends soon, or is no use."""
        return self.ends_ms is None or self.ends_ms < self.now_ms + SOON_DAYS * DAY_MS


@dataclass(frozen=True, slots=True)
class FeatureFinding:
    """What a feature says about its health, in English; ``remedy`` may be empty."""

    check: str
    detail: str
    remedy: str
    is_bad: bool


class Concern(NamedTuple):
    """Something that an operator should look at, and what to do about it."""

    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Health:
    """What operators look at. ``started_ms`` is when the worker that answers started."""

    versions: Sequence[tuple[str, str]]
    started_ms: int
    workers: int
    disk_total_bytes: int
    disk_free_bytes: int
    database_bytes: int
    pods: int
    accounts: int
    used_bytes: int
    channels: int
    deliveries: DeliveryFailures | None
    """``None`` if the server pushes no notifications."""
    slow: Sequence[audit_log.SlowRequest]
    mail: MailHealth | None
    """``None`` if the server sends no mail."""
    backup: BackupHealth
    certificate: CertificateHealth | None
    """``None`` if the server has no certificate of its own."""
    findings: Sequence[FeatureFinding]
    """Those of the features."""

    @property
    def disk_is_low(self) -> bool:
        return self.disk_free_bytes * LOW_SHARE < self.disk_total_bytes

    @property
    def concerns(self) -> Sequence[Concern]:
        """What is not as it should be, in the language of the page."""
        backup, found = self.backup, list[Concern]()
        if backup.is_bad:
            if backup.failed_ms is not None:
                text = _("The last backup failed.")
            elif backup.finished_ms is None:
                text = _("There is no backup yet.")
            else:
                text = _("The last backup is older than a week.")
            remedy = _(
                "Run podstead backup while the server runs, and let the system repeat it each day."
            )
            found.append(Concern(text, remedy))
        if self.disk_is_low:
            remedy = _("Make room, or move the server to a larger disk.")
            found.append(Concern(_("Little space is left on the disk."), remedy))
        if self.certificate is not None and self.certificate.is_bad:
            remedy = _("Renew it. If that happens by itself, the log says why it did not.")
            found.append(Concern(_("The certificate ends soon, or cannot be read."), remedy))
        if self.mail is not None and self.mail.failing:
            remedy = _("Look at the settings of the mail server, and send a message to try it.")
            found.append(Concern(_("Mail cannot be sent."), remedy))
        if any(each.is_bad for each in self.findings):
            remedy = _("Its name and what to do are listed under “Features”.")
            found.append(Concern(_("A part of the server reports a problem."), remedy))
        return found


ReadHealth = Callable[[], Awaitable[Health]]
"""Raises StorageError."""


@dataclass(frozen=True, slots=True)
class HealthPage:
    """Shows the health of the server."""

    site: Site
    read: ReadHealth

    @route(accounts.HEALTH, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: audit_log.Operator) -> Response:
        """The page."""
        return self.site.page(page, "console/health.html", health=await self.read())


DEFAULT_USES: Final = 1
DEFAULT_DAYS: Final = 7

add_flash_messages(
    Tone.DONE,
    invitation_sent=N_("The invitation is on its way to %(subject)s."),
    invitation_revoked=N_("The invitation is revoked. Whoever has used it keeps their account."),
)


@dataclass(frozen=True, slots=True)
class InvitationsPage:
    """Lists, creates and revokes invitations."""

    site: Site
    invitations: service.InvitationActions
    sends_mail: Callable[[], bool]

    @route(INVITATIONS, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: audit_log.Operator) -> Response:
        """The list."""
        return self.site.page(
            page,
            "console/invitations.html",
            registration=self.site.registration.mode,
            invitations=await self.invitations.list(),
            max_uses=storage_invitations.MAX_USES,
            max_days=storage_invitations.MAX_DAYS,
            default_uses=DEFAULT_USES,
            default_days=DEFAULT_DAYS,
            url=INVITATIONS,
            settings_url=accounts.SETTINGS,
            max_note=storage_invitations.MAX_NOTE_CHARACTERS,
            sends_mail=self.sends_mail(),
            sign_in_url=None
            if page.signed_in().signed_in_recently
            else again_url("console", INVITATIONS),
        )

    @route(INVITATIONS, "POST")
    @for_operators
    async def create(self, page: PageRequest, operator: audit_log.Operator) -> Response:
        """Create an invitation, and show its code. Raises BadRequest, Conflict, WrongFormToken."""
        sent = await page.form()
        uses, days = _number(sent, "uses"), _number(sent, "days")
        send_to = sent.text("send_to").strip()
        if send_to:
            signing_in = accounts.again(page, INVITATIONS)
            if signing_in is not None:
                return signing_in
            if not self.sends_mail():
                raise BadRequest(WebCodes.NO_MAIL)
        made = await self.invitations.create(
            uses=uses,
            days=days,
            note=sent.text("note"),
            send_to=send_to,
            language=page.texts.language,
            by=operator,
        )
        if send_to:
            return self.site.see_other(INVITATIONS, FlashMessage("invitation-sent", send_to))
        return self.site.page(
            page,
            "console/invitation_created.html",
            code=made.code,
            link=storage_invitations.invitation_url(self.site.base_url, made.code),
            uses=uses,
            expires_ms=made.expires_ms,
            url=INVITATIONS,
        )

    @route(accounts.REVOKE, "POST")
    @for_operators
    async def revoke(self, page: PageRequest, operator: audit_log.Operator) -> Response:
        """End an invitation. Raises NotFound, WrongFormToken."""
        await page.form()
        await self.invitations.revoke(page.path_segment(4), operator)
        return self.site.see_other(INVITATIONS, FlashMessage("invitation-revoked"))


def _number(sent: FormSubmission, name: str) -> int:
    number = whole_number(sent.text(name).strip(), 999_999)
    if number is None:
        raise BadRequest(WebCodes.NO_WHOLE_NUMBERS)
    return number
