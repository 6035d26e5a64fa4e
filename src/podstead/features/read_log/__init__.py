"""Read logs: who has read what in a folder, for those who control the folder and have switched the
log on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore


@dataclass(frozen=True, kw_only=True)
class ReadLogSettings:
    """The settings of this part."""

    read_log_days: int = setting(
        90,
        value_types.integer(0, 3650),
        Group.TRUST,
        "For how many days the logs that people can switch on for a folder keep who has read what. "
        "With 0, nobody can switch one on, and nothing is recorded.",
        unit="days",
    )


class ReadLogFeature(Feature):
    """On unless the operator forbids it; folders without a log cost nothing."""

    settings = ReadLogSettings
    templates = __name__

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.read_log.recording import ReadLogHook

        return (ReadLogHook(records),)

    def modules(self, settings: Settings) -> Sequence[str]:
        on = settings.of(ReadLogSettings).read_log_days > 0
        return ("podstead.features.read_log.pages",) if on else ()

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if services.settings.of(ReadLogSettings).read_log_days == 0:
            return None
        from podstead.features.read_log.pages import ReadLogInWorker

        return ReadLogInWorker(services)


FEATURE = ReadLogFeature()
