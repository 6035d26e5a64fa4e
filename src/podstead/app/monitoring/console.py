"""What the console shows of the server: its health and its settings, without secrets."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from typing import Final

from podstead import __version__
from podstead.app.monitoring.diagnosis import FeatureHealth, Severity
from podstead.app.monitoring.stored_facts import read_stored_facts
from podstead.config import Settings
from podstead.config.settings import settings_table
from podstead.config.table import groups_of
from podstead.idp.administration.audit_log import SlowRequests
from podstead.idp.mail_queue import MailQueue
from podstead.notifications.channels import ChannelHandler, DeliveryFailures
from podstead.storage.record_store import RecordStore
from podstead.web.console import server

_BAD: Final = (Severity.WARNING, Severity.PROBLEM)


class ServerHealth:
    """Reads the health of the server; the start of this object is that of the worker."""

    def __init__(
        self,
        settings: Settings,
        records: RecordStore,
        slow: SlowRequests,
        handlers: Iterable[ChannelHandler],
        features: FeatureHealth,
    ) -> None:
        """``handlers`` are those of all types of notification channels."""
        self._settings = settings
        self._records = records
        self._slow = slow
        self._handlers = tuple(handlers)
        self._features = features
        self._started_ms = records.now_ms()

    async def read(self) -> server.Health:
        """Raises StorageError."""
        facts = await read_stored_facts(self._settings, self._records.store)
        return server.Health(
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
            deliveries=await self._deliveries(),
            slow=await self._slow.newest(),
            mail=await self._mail(),
            findings=[
                server.FeatureFinding(
                    each.check, each.detail, each.remedy, is_bad=each.severity in _BAD
                )
                for each in await self._features.findings()
            ],
        )

    async def _mail(self) -> server.MailHealth | None:
        if not self._settings.reaches_people:
            return None
        queue = MailQueue(self._records)
        return server.MailHealth(await queue.waiting(), await queue.failing())

    async def _deliveries(self) -> DeliveryFailures | None:
        """Of all channel types whose messages the server pushes; ``None`` without any."""
        found = [await each.failures() for each in self._handlers]
        failures = [each for each in found if each is not None]
        if not failures:
            return None
        return DeliveryFailures(
            retrying=sum(each.retrying for each in failures),
            given_up=sum(each.given_up for each in failures),
            some=[failed for each in failures for failed in each.some],
        )


def shown_settings(settings: Settings) -> Sequence[server.SettingGroup]:
    """All settings with their values and sources."""
    sources = dict(settings.set_by)
    groups = []
    for group in groups_of(settings_table()):
        shown = [
            server.ShownSetting(
                name=row.name,
                value=None if row.secret else _text(settings.value(row)),
                source=sources.get(row.field, ""),
                meaning=row.meaning,
            )
            for row in settings_table()
            if row.group == group
        ]
        groups.append(server.SettingGroup(group, shown))
    return groups


def _text(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
