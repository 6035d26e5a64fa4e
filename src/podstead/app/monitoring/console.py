"""What the console shows of the server: its health and its settings, without secrets."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from urllib.parse import urlsplit

from podstead import __version__
from podstead.app.monitoring.stored_facts import read_stored_facts
from podstead.config import Settings
from podstead.config.settings import settings_table
from podstead.config.table import groups_of
from podstead.idp.administration.audit_log import SlowRequests
from podstead.idp.mail_queue import MailQueue
from podstead.notifications.channels import CHANNELS
from podstead.notifications.webhook_records import WEBHOOKS
from podstead.storage.record_store import RecordStore
from podstead.web.console.server import (
    FailedWebhook,
    Health,
    MailHealth,
    SettingGroup,
    ShownSetting,
)

_MAX_WEBHOOKS = 10_000
_MAX_SHOWN = 100


class ServerHealth:
    """Reads the health of the server; the start of this object is that of the worker."""

    def __init__(self, settings: Settings, records: RecordStore, slow: SlowRequests) -> None:
        self._settings = settings
        self._records = records
        self._slow = slow
        self._started_ms = records.now_ms()

    async def read(self) -> Health:
        """Raises StorageError."""
        facts = await read_stored_facts(self._settings, self._records.store)
        failed, retrying, given_up = await self._webhooks()
        return Health(
            versions=(("Podstead", __version__), ("Python", platform.python_version())),
            started_ms=self._started_ms,
            workers=self._settings.workers or 1,
            disk_total_bytes=facts.disk.total_bytes,
            disk_free_bytes=facts.disk.free_bytes,
            database_bytes=facts.database_bytes,
            pods=facts.pods.pods,
            accounts=facts.accounts,
            used_bytes=facts.pods.used_bytes,
            channels=facts.channels,
            retrying=retrying,
            given_up=given_up,
            failed=failed,
            slow=await self._slow.newest(),
            mail=await self._mail(),
        )

    async def _mail(self) -> MailHealth | None:
        if self._settings.mail is None:
            return None
        queue = MailQueue(self._records)
        return MailHealth(await queue.waiting(), await queue.failing())

    async def _webhooks(self) -> tuple[list[FailedWebhook], int, int]:
        """The webhooks that fail, how many of them are tried again, and how many are not."""
        store, now_ms = self._records.store, self._records.now_ms()
        failed: list[FailedWebhook] = []
        retrying = given_up = 0
        for stored in await WEBHOOKS.page(store, now_ms=now_ms, limit=_MAX_WEBHOOKS):
            state = stored.value
            if not state.failures and state.given_up is None:
                continue
            retrying += state.given_up is None
            given_up += state.given_up is not None
            channel = await CHANNELS.read(store, stored.key, now_ms=now_ms)
            if channel is None or len(failed) >= _MAX_SHOWN:
                continue
            failed.append(
                FailedWebhook(
                    topic=channel.value.topic,
                    host=urlsplit(channel.value.send_to or "").netloc,
                    failures=state.failures,
                    since_ms=state.first_failed_ms,
                    given_up=state.given_up or "",
                )
            )
        return failed, retrying, given_up


def shown_settings(settings: Settings) -> Sequence[SettingGroup]:
    """All settings with their values and sources."""
    sources = dict(settings.set_by)
    groups = []
    for group in groups_of(settings_table()):
        shown = [
            ShownSetting(
                name=row.name,
                value=None if row.secret else _text(settings.value(row)),
                source=sources.get(row.field, ""),
                meaning=row.meaning,
            )
            for row in settings_table()
            if row.group == group
        ]
        groups.append(SettingGroup(group, shown))
    return groups


def _text(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
