"""What the console shows of the server: its health and its settings, without secrets."""

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from podstead import __version__
from podstead.app.adapters.certificate_file import certificate_end_s
from podstead.app.live_settings import LiveSettings
from podstead.app.monitoring.diagnosis import FeatureHealth, Severity
from podstead.app.monitoring.stored_facts import StoredFacts, read_stored_facts
from podstead.config import Settings
from podstead.config.settings import settings_table
from podstead.config.table import Row, groups_of
from podstead.features import features
from podstead.idp.administration.audit_log import SlowRequests
from podstead.idp.mail_queue import MailQueue
from podstead.notifications.channels import ChannelHandler, DeliveryFailures
from podstead.storage.record_store import RecordStore
from podstead.web.console import server
from podstead.web.console.settings import SettingGroup, ShownSetting
from podstead.web.pages.texts import _

_BAD: Final = (Severity.WARNING, Severity.PROBLEM)


class ServerHealth:
    """Reads the health of the server; the start of this object is that of the worker."""

    def __init__(
        self,
        settings: Callable[[], Settings],
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
        settings, now_ms = self._settings(), self._records.now_ms()
        facts = await read_stored_facts(settings, self._records.store)
        database, migration = await self._records.store.database_version()
        name, _space, version = database.partition(" ")
        return server.Health(
            versions=(
                ("Podstead", __version__),
                ("Python", platform.python_version()),
                (name, _("%(version)s, migration %(number)s", version=version, number=migration)),
            ),
            started_ms=self._started_ms,
            workers=settings.workers or 1,
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
            backup=_backup(facts, now_ms),
            certificate=await asyncio.to_thread(_certificate, settings, now_ms),
            findings=[
                server.FeatureFinding(
                    each.check, each.detail, each.remedy, is_bad=each.severity in _BAD
                )
                for each in await self._features.findings()
            ],
        )

    async def concerns(self) -> Sequence[server.Concern]:
        """What is not as it should be. Raises StorageError."""
        return (await self.read()).concerns

    async def _mail(self) -> server.MailHealth | None:
        if not self._settings().reaches_people:
            return None
        backlog = await MailQueue(self._records).backlog()
        return server.MailHealth(backlog.waiting, backlog.failing, backlog.oldest_ms, backlog.error)

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


def _backup(facts: StoredFacts, now_ms: int) -> server.BackupHealth:
    last, failed = facts.last_backup, facts.failed_backup
    finished_s = None if last is None else last.finished_s
    failed_s = None if failed is None or failed.failed_s < (finished_s or 0) else failed.failed_s
    return server.BackupHealth(_ms(finished_s), _ms(failed_s), now_ms)


def _certificate(settings: Settings, now_ms: int) -> server.CertificateHealth | None:
    of_features = (each.certificate_file(settings) for each in features())
    file = settings.ssl_cert or next(filter(None, of_features), None)
    if file is None:
        return None
    return server.CertificateHealth(_ms(certificate_end_s(file)), now_ms)


def _ms(unix_s: float | None) -> int | None:
    return None if unix_s is None else int(unix_s * 1000)


def shown_settings(live: LiveSettings) -> Sequence[SettingGroup]:
    """All settings with their values and sources."""
    sources = dict(live.given.set_by)
    groups = []
    for group in groups_of(settings_table()):
        rows = [row for row in settings_table() if row.group == group]
        groups.append(SettingGroup(group, [_shown(live, row, sources) for row in rows]))
    return groups


def _shown(live: LiveSettings, row: Row[Any], sources: Mapping[str, str]) -> ShownSetting:
    source = sources.get(row.field, "")
    stored = live.stored.get(row.name) if row.live and not source else None
    value = live.current.value(row)
    text = ("" if value is None and row.live else _text(value)) if stored is None else stored.text
    return ShownSetting(
        name=row.name,
        value=None if row.secret else text,
        source=source,
        meaning=row.meaning,
        is_live=row.live,
        is_stored=stored is not None,
        stored="" if stored is None else stored.text,
        by="" if stored is None else stored.by,
        at_ms=0 if stored is None else stored.at_ms,
    )


def _text(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
