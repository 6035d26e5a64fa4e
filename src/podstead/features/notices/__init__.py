"""Notices: what people are told, such as that somebody shared something with them, on a page and by
mail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore


class NoticesFeature(Feature):
    """Always on: whoever is told nothing has no records."""

    templates = __name__

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.notices.box import DIGESTS, NOTICE_BOXES
        from podstead.resources.planning import PodRecordsHook

        return (PodRecordsHook(records, NOTICE_BOXES, DIGESTS),)

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return (f"{__name__}.worker", f"{__name__}.pages")

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.notices.worker import NoticesInWorker

        return NoticesInWorker(services)


FEATURE = NoticesFeature()
