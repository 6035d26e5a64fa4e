"""The history of resources: a trash, and the versions of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:  # a server that keeps nothing loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore


@dataclass(frozen=True, kw_only=True)
class HistorySettings:
    """The settings of this part."""

    keep_deleted: int = setting(
        30,
        value_types.integer(0, 3650),
        Group.STORAGE,
        "For how many days what was deleted can be restored from the trash. It takes up room that "
        "the quota of the pod and the disk leave free, and the oldest goes first when that is "
        "needed. 0 means that there is no trash.",
        unit="days",
    )
    keep_versions: int = setting(
        30,
        value_types.integer(0, 3650),
        Group.STORAGE,
        "For how many days former versions of documents are kept: all of the last day, and the "
        "last one of each day before, but at most 100 of each document. They take up room as what "
        "was deleted does. 0 means that no versions are kept.",
        unit="days",
    )


class HistoryFeature(Feature):
    """On unless the operator keeps nothing."""

    settings = HistorySettings
    commands = {"purge": f"{__name__}.command:purge"}
    templates = __name__

    def modules(self, settings: Settings) -> Sequence[str]:
        return (f"{__name__}.worker",) if self._is_on(settings) else ()

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.history.retention import CHOICES
        from podstead.resources.planning import PodRecordsHook

        return (PodRecordsHook(records, CHOICES),)

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not self._is_on(services.settings):
            return None
        from podstead.features.history.worker import HistoryInWorker

        return HistoryInWorker(services)

    @staticmethod
    def _is_on(settings: Settings) -> bool:
        own = settings.of(HistorySettings)
        return own.keep_deleted + own.keep_versions > 0


FEATURE = HistoryFeature()
