"""Starred files and folders: what people want to find again, on their first page and in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore


class StarredFeature(Feature):
    """Always on; pods without stars cost one look for a record."""

    templates = __name__

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.starred.stars import StarsHook

        return (StarsHook(records),)

    def modules(self, settings: Settings) -> Sequence[str]:
        del settings
        return ("podstead.features.starred.pages",)

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.starred.pages import StarredInWorker

        return StarredInWorker(services)


FEATURE = StarredFeature()
