"""Sending mail in one worker. What sends it is loaded when there is a destination."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from podstead.app.live_settings import LiveSettings
from podstead.app.services import Services
from podstead.config.value_types import HOST, integer
from podstead.core import background
from podstead.core.errors import BadRequest
from podstead.features import WorkerFeature
from podstead.features.mail import LOOK_S, MailSettings
from podstead.features.mail import destination as mail_destination
from podstead.idp.administration.audit_log import Operator
from podstead.storage.record_store import RecordStore
from podstead.web import forms, response, routes
from podstead.web.console.accounts import SETTINGS, again, for_operators
from podstead.web.console.settings import SettingForm, SettingText, add_setting_texts
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _

if TYPE_CHECKING:
    from podstead.features.mail.sending import MailSender


MAIL: Final = f"{SETTINGS}/mail"
TRIAL: Final = f"{SETTINGS}/mail/trial"
TRIALS_PER_HOUR: Final = 10


add_setting_texts(
    {
        "mail": SettingText(
            N_("Mail server"),
            N_(
                "It delivers the messages with which people confirm their addresses and get "
                "links for new passwords. Whoever runs the mail server can read these links, and "
                "so take over accounts."
            ),
        )
    }
)
add_flash_messages(
    Tone.DONE, mail_tried=N_("The mail server has taken the message. See whether it arrives.")
)
add_flash_messages(
    Tone.PROBLEM,
    mail_not_reached=N_(
        "The message could not be sent: the mail server could not be reached, or it does not "
        "answer as one. The log of the server says more."
    ),
    mail_no_tls=N_(
        "The message could not be sent: no encrypted connection to the mail server is possible."
    ),
    mail_no_sign_in=N_(
        "The message could not be sent: the mail server does not accept the name or the password."
    ),
    mail_refused=N_("The message could not be sent: the mail server does not accept it."),
    mail_no_address=N_("Your account has no e-mail address to send the message to."),
    mail_off=N_("No mail server is set."),
    mail_too_often=N_("You have sent many messages in the last hour. Try again later."),
)

_SECURITIES: Final = {
    mail_destination.MailSecurity.STARTTLS: N_("STARTTLS (usually port 587)"),
    mail_destination.MailSecurity.TLS: N_("TLS (usually port 465)"),
    mail_destination.MailSecurity.NONE: N_("None; only for a mail server on this machine"),
}
_NOTICES: Final = {
    mail_destination.MailTrouble.NOT_REACHED: "mail-not-reached",
    mail_destination.MailTrouble.TLS: "mail-no-tls",
    mail_destination.MailTrouble.SIGN_IN: "mail-no-sign-in",
    mail_destination.MailTrouble.REFUSED: "mail-refused",
}
_PORT: Final = integer(1, 65535)


class MailForm(SettingForm):
    """The parts of the address of a mail server, as fields. Without a password, the stored one is
    kept, if nothing changes that decides who gets it."""

    template = "pods/mail/setting.html"

    def facts(self, stored: str) -> Mapping[str, object]:
        destination = _smtp(stored)
        return {
            "mail": destination,
            "is_unreadable": bool(stored) and not _is_readable(stored),
            "securities": [(each.value, _(text)) for each, text in _SECURITIES.items()],
            "after": "pods/mail/trial.html",
            "trial_url": TRIAL,
            "has_password": destination is not None and destination.password is not None,
        }

    def text(self, sent: forms.FormSubmission, stored: str) -> str:
        host, user, password = sent.text("host").strip(), sent.text("user"), sent.text("password")
        sender = sent.text("sender").strip()
        try:
            security = mail_destination.MailSecurity(sent.text("security"))
            host, port = HOST.parse(host.strip("[]")), _PORT.parse(sent.text("port").strip())
        except ValueError as error:
            raise BadRequest(_("The mail server or its port is not valid.")) from error
        if not mail_destination.is_port_of_mail(host, port):
            raise BadRequest(_("A mail server has port 587, 465, 25 or 2525."))
        if user and not password:
            known = _smtp(stored)
            same = known is not None and (known.host, known.port, known.security, known.user) == (
                host,
                port,
                security,
                user,
            )
            if known is None or known.password is None or not same:
                raise BadRequest(_("Type the password, since the server or the name is new."))
            password = known.password
        scheme = "smtps" if security is mail_destination.MailSecurity.TLS else "smtp"
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        plain = "&tls=none" if security is mail_destination.MailSecurity.NONE else ""
        text = f"{scheme}://{login}{place}?from={quote(sender, safe='@')}{plain}"
        try:
            mail_destination.parse_mail_destination(text)
        except ValueError as error:
            raise BadRequest(
                _(
                    "The sender must be an e-mail address. Only a mail server on this machine may "
                    "go without encryption."
                )
            ) from error
        return text


def _is_readable(stored: str) -> bool:
    try:
        mail_destination.parse_mail_destination(stored)
    except ValueError:
        return False
    return True


def _smtp(stored: str) -> mail_destination.MailDestination | None:
    """``None`` also for what can no longer be read."""
    destination = (
        mail_destination.parse_mail_destination(stored) if stored and _is_readable(stored) else None
    )
    is_smtp = destination is not None and destination.kind is mail_destination.MailKind.SMTP
    return destination if is_smtp else None


class TrialSender(Protocol):
    """Sends a message at once."""

    async def send_trial(self, recipient: str, language: str) -> None: ...


@dataclass(frozen=True, slots=True)
class MailTrial:
    """Sends a message to the operator who asks for it, and to nobody else."""

    site: Site
    sender: Callable[[], Awaitable[TrialSender | None]]
    records: RecordStore

    @routes.route(TRIAL, "POST")
    @for_operators
    async def post(self, page: PageRequest, operator: Operator) -> response.Response:
        await page.form()
        signing_in = again(page, MAIL)
        if signing_in is not None:
            return signing_in
        return self.site.see_other(SETTINGS, await self._tried(page, operator))

    async def _tried(self, page: PageRequest, operator: Operator) -> FlashMessage:
        sender, address = await self.sender(), page.owner().account.email
        if sender is None:
            return FlashMessage("mail-off")
        if address is None:
            return FlashMessage("mail-no-address")
        key = f"mail-trial:{operator.account_id}"
        if await self.records.take(key, capacity=TRIALS_PER_HOUR, period_s=3600) is not None:
            return FlashMessage("mail-too-often")
        try:
            await sender.send_trial(address, page.texts.language)
        except mail_destination.MailError as error:
            logger.warning("A message to try the mail server could not be sent: %s", error)
            return FlashMessage(_NOTICES[error.trouble])
        return FlashMessage("mail-tried")


logger = logging.getLogger("podstead.mail")


class MailInWorker(WorkerFeature):
    """Sends what waits, to the destination in effect."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sending = background.Background(
            self._send, logger, "Mail could not be sent", every_s=LOOK_S
        )
        self.setting_forms = {"mail": MailForm()}

    @property
    def provider_pages(self) -> Sequence[object]:  # type: ignore[override]
        provider = self._services.provider
        return (
            ()
            if provider is None
            else (MailTrial(provider.pages.site, self._newest_sender, provider.records),)
        )

    async def start(self) -> None:
        self._sending.start()

    async def stop(self) -> None:
        await self._sending.stop()

    def _new_sender(self) -> MailSender | None:
        """One for the settings in effect; ``None`` if these are to send nothing."""
        services, settings = self._services, self._services.live.current
        destination = settings.of(MailSettings).mail
        if destination is None or services.provider is None:
            return None
        from podstead.features.mail.sending import build_mail_sender

        return build_mail_sender(settings, destination, services.provider.accounts)

    async def _newest_sender(self) -> MailSender | None:
        """The same also for what was changed a moment ago, perhaps in another worker. Raises
        StorageError."""
        await self._services.live.look()
        return self._new_sender()

    async def _send(self) -> None:
        """Runs until the settings are changed, which ends one sender and begins the next."""
        live = self._services.live
        sender, version = self._new_sender(), live.data_version()
        if sender is not None:
            await sender.run(partial(_is_version, live, version))


def _is_version(live: LiveSettings, version: int) -> bool:
    return live.data_version() == version
