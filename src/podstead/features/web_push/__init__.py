"""Web Push: notices that the system shows, in the browsers for which people have switched that
on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordKind, RecordStore


class WebPushFeature(Feature):
    """Always on; nothing is stored or sent until somebody switches it on for a browser."""

    templates = __name__

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.web_push.devices import DEVICES, PUSHES
        from podstead.resources.planning import PodRecordsHook

        return (PodRecordsHook(records, DEVICES, PUSHES),)

    def ended_with_sessions(self) -> Sequence[RecordKind[Any]]:
        from podstead.features.web_push.devices import DEVICES, PUSHES

        return (DEVICES, PUSHES)

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return (f"{__name__}.worker", f"{__name__}.encryption")

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.web_push.worker import WebPushInWorker

        return WebPushInWorker(services)


FEATURE = WebPushFeature()
