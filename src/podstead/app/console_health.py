"""Where does the console learn how the server is? From the data root and from its records."""

from __future__ import annotations

import asyncio
import platform
from urllib.parse import urlsplit

from podstead import __version__
from podstead.config import Settings
from podstead.idp.administration.slow_requests import SlowRequests
from podstead.idp.records import ACCOUNTS
from podstead.notifications.channels import CHANNELS
from podstead.notifications.webhook_records import WEBHOOKS
from podstead.storage.disk_space import read_disk_usage
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.web.idp.console.health_page import FailedWebhook, Health

_MAX_COUNTED = 1_000_000
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
        store = self._records.store
        layout = RootLayout(self._settings.root)
        disk = await asyncio.to_thread(read_disk_usage, layout.root)
        pods = await store.list_pods()
        failed, retrying, given_up = await self._webhooks()
        return Health(
            versions=(("Podstead", __version__), ("Python", platform.python_version())),
            started_ms=self._started_ms,
            workers=self._settings.workers or 1,
            disk_total_bytes=disk.total_bytes,
            disk_free_bytes=disk.free_bytes,
            database_bytes=_size(layout),
            pods=len(pods),
            accounts=await ACCOUNTS.count(store, at_most=_MAX_COUNTED),
            used_bytes=sum([await store.used_bytes(pod.name) for pod in pods[:_MAX_WEBHOOKS]]),
            channels=await CHANNELS.count(store, at_most=_MAX_COUNTED),
            retrying=retrying,
            given_up=given_up,
            failed=failed,
            slow=await self._slow.newest(),
        )

    async def _webhooks(self) -> tuple[list[FailedWebhook], int, int]:
        """The webhooks that fail, how many of them are tried again, and how many are not."""
        store, now_ms = self._records.store, self._records.now_ms()
        failed: list[FailedWebhook] = []
        retrying = given_up = 0
        for kept in await WEBHOOKS.page(store, now_ms=now_ms, limit=_MAX_WEBHOOKS):
            state = kept.value
            if not state.failures and state.given_up is None:
                continue
            retrying += state.given_up is None
            given_up += state.given_up is not None
            channel = await CHANNELS.read(store, kept.key, now_ms=now_ms)
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


def _size(layout: RootLayout) -> int:
    """The size of the database with its log."""
    files = (layout.database, layout.database.with_name(layout.database.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
