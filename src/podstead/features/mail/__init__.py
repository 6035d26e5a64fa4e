"""Messages to people by mail: confirmations of addresses, links for a new password, notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podstead.config.table import Group, optional
from podstead.config.value_types import ValueType
from podstead.core.errors import StartRefused
from podstead.features import Feature
from podstead.features.mail import destination as mail_destination

if TYPE_CHECKING:  # others than servers that send mail load none of this
    from podstead.app.monitoring.diagnosis import Diagnosis
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.features import WorkerFeature
    from podstead.storage.record_store import RecordStore

LOOK_S: Final = 2
"""How often a worker looks for messages, if anything has been written, and whether the destination
is still the same."""
_MAIL = ValueType(
    "URL",
    "must be smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS (or smtps://…), file:FOLDER or console; "
    "?tls=none only for a mail server on this machine",
    mail_destination.parse_mail_destination,
)


@dataclass(frozen=True, kw_only=True)
class MailSettings:
    """The settings of this part."""

    mail: mail_destination.MailDestination | None = optional(
        _MAIL,
        Group.IDENTITY,
        "Where messages to people are handed over: a mail server "
        "(smtp://USER:PASSWORD@HOST:587?from=ADDRESS, or smtps:// for TLS from the beginning), a "
        "folder (file:FOLDER), or standard error (console). People then confirm their e-mail "
        "addresses, can get a link for a new password, and are told of changes in how they sign "
        "in. Requires idp. Other users of the machine can see options, so set a URL with a "
        "password in the variable or in the file.",
        secret=True,
        live=True,
    )


class MailFeature(Feature):
    """Sends messages while ``mail`` is set."""

    settings = MailSettings
    templates = "podstead.features.mail"

    def check_settings(self, settings: Settings) -> None:
        mail = settings.of(MailSettings).mail
        if mail is None:
            return
        if not settings.idp:
            raise StartRefused("mail is set, but idp is off. Add --idp, or remove mail.")
        is_smtp = mail.kind is mail_destination.MailKind.SMTP
        is_changed_live = "mail" not in dict(settings.set_by)
        if (
            is_smtp
            and is_changed_live
            and not mail_destination.is_port_of_mail(mail.host, mail.port)
        ):
            ports = ", ".join(map(str, mail_destination.MAIL_PORTS))
            raise StartRefused(
                f"mail names port {mail.port}. Only the configuration of the server can name "
                f"another port than {ports} of another machine."
            )
        if mail.password is not None and ("mail", "--mail") in settings.set_by:
            raise StartRefused(
                "--mail contains a password, which other users of the machine can see. Set "
                "PODSTEAD_MAIL, or mail in the file that --config names."
            )

    def reaches_people(self, settings: Settings) -> bool:
        return settings.of(MailSettings).mail is not None

    async def health(self, settings: Settings, records: RecordStore) -> Sequence[Diagnosis]:
        mail = settings.of(MailSettings).mail
        if mail is None:
            return ()
        from podstead.features.mail.health import mail_findings

        return await mail_findings(mail, records)

    def modules(self, settings: Settings) -> Sequence[str]:
        if not settings.idp:
            return ()
        # Also without mail: operators may set a mail server at any time.
        package = "podstead.features.mail"
        return [f"{package}.{name}" for name in ("worker", "sending", "health", "smtp")]

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not services.settings.idp:
            return None
        from podstead.features.mail.worker import MailInWorker

        return MailInWorker(services)


FEATURE = MailFeature()
