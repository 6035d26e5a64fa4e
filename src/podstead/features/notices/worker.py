"""What the feature does in one worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core import background, caches, errors, identifiers, identity
from podstead.features import WorkerFeature
from podstead.features.notices.delivery import NoticeBoxes
from podstead.storage.records import Write
from podstead.web.account.home import NEARLY_FULL_PERCENT, percent_used
from podstead.web.pages import addresses, texts
from podstead.web.pages.notifier import PersonNotice, person_notice_kind

if TYPE_CHECKING:
    from podstead.app.services import Services

logger = logging.getLogger("podstead.notices")

NEARLY_FULL: Final = person_notice_kind(
    "nearly-full",
    texts.N_("Your pod “%(name)s” is nearly full"),
    again_ms=7 * 24 * 3_600_000,
)
CHECKED_EVERY_MS: Final = 300_000
"""How often a worker looks how full a pod is, after a write."""
_MAX_REMEMBERED: Final = 10_000


class SpaceWatch:
    """Tells owners that their pods are nearly full, after a write (:class:`WriteObserver`)."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._checked: caches.BoundedCache[identifiers.ResourcePath, int] = caches.BoundedCache(
            _MAX_REMEMBERED
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def committed(self, agent: identity.Identity | None, write: Write) -> None:
        """Begin to look, unless that was done a moment ago."""
        del agent
        root = identifiers.storage_root(write.puts[0].path) if write.puts else None
        if root is None:
            return
        now_ms, checked_ms = self._services.clock.now_ms(), self._checked.get(root)
        if checked_ms is not None and 0 <= now_ms - checked_ms < CHECKED_EVERY_MS:
            return
        self._checked.put(root, now_ms, weight=1)
        task = asyncio.create_task(self._check(root))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, root: identifiers.ResourcePath) -> None:
        services = self._services
        try:
            quota_bytes = await services.capacity.quotas.of(root)
            if not quota_bytes:
                return
            name = root.strip("/")
            used_bytes = await services.store.used_bytes(name)
            pod = await services.store.read_pod(name)
        except errors.ServerTrouble:
            logger.exception("How full a pod is could not be read")
            return
        percent = percent_used(used_bytes, quota_bytes)
        if pod is not None and percent is not None and percent >= NEARLY_FULL_PERCENT:
            notice = PersonNotice(NEARLY_FULL, f"{addresses.STORAGE}?pod={name}", name)
            await services.notifier.tell(pod.owner, notice)

    async def checked(self) -> None:
        """Wait until nothing is being looked at any more."""
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """Stop looking."""
        await background.cancel_and_wait(self._tasks)


class NoticesInWorker(WorkerFeature):
    """Keeps, shows and sends notices."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.observer = self.space = SpaceWatch(services)

    @cached_property
    def notifier(self) -> NoticeBoxes:  # type: ignore[override]
        services = self._services
        provider = services.provider
        channels = [each.notice_channel for each in services.features if each.notice_channel]
        return NoticeBoxes(
            services.records,
            services.local_web_ids,
            services.base_url,
            lambda: provider.accounts.accounts if provider and provider.sends_mail() else None,
            channels,
        )

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        from podstead.features.notices.pages import NoticesPage

        return (NoticesPage(self._services.pages.site, self.notifier),)

    async def stop(self) -> None:
        await self.space.stop()

    async def sweep(self) -> None:
        await self.notifier.send_digests()
