"""Sending mail in one worker. What sends it is loaded when there is a destination."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from podstead.app.live_settings import LiveSettings
from podstead.app.services import Services
from podstead.core.background import Background
from podstead.features import WorkerFeature
from podstead.features.mail import LOOK_S, MailSettings
from podstead.features.mail.form import MailForm, MailTrial

if TYPE_CHECKING:
    from podstead.features.mail.sending import MailSender

logger = logging.getLogger("podstead.mail")


class MailInWorker(WorkerFeature):
    """Sends what waits, to the destination in effect."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sending = Background(self._send, logger, "Mail could not be sent", every_s=LOOK_S)
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
