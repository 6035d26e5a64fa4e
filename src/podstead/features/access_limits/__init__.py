"""Limits to what applications, scripts and tokens may do for the person who let them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore


class AccessLimitsFeature(Feature):
    """Always on: a token without a limit costs nothing."""

    templates = "podstead.features.access_limits"

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.access_limits.enforcement import RenamedLimits

        return (RenamedLimits(records),)

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002 - on in all of them
        return (
            "podstead.features.access_limits.enforcement",
            "podstead.features.access_limits.worker",
        )

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.access_limits.worker import AccessLimitsInWorker

        return AccessLimitsInWorker(services)


FEATURE = AccessLimitsFeature()
