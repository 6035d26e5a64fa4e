"""Full-text search over the names and contents of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature
from podstead.features.search.tables import SCHEMA

if TYPE_CHECKING:  # a server without it loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.storage.record_store import RecordStore


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The settings of this part."""

    search: bool = setting(
        True,
        value_types.SWITCH,
        Group.STORAGE,
        "Keep an index of the names and contents of documents, in which people and applications "
        "search what they may read. Without it, only names are searched.",
    )


class SearchFeature(Feature):
    """On unless the operator switches it off."""

    settings = SearchSettings
    commands = {"search": f"{__name__}.command:search"}
    templates = __name__
    schema = SCHEMA

    def modules(self, settings: Settings) -> Sequence[str]:
        own = (f"{__name__}.worker", "snowballstemmer")
        return own if settings.of(SearchSettings).search else ()

    async def remove_derived(self, settings: Settings, records: RecordStore) -> None:
        from podstead.features.search.fts5 import INDEX_NAME, remove_index
        from podstead.features.search.index import Position
        from podstead.features.search.postgresql import PostgresqlIndex

        if settings.database is None:
            remove_index(settings.root / INDEX_NAME)
        else:
            index = PostgresqlIndex(records)
            await index.begin(Position(0, "", ""))
            await index.forget()

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not services.settings.of(SearchSettings).search:
            return None
        from podstead.features.search.worker import SearchInWorker

        return SearchInWorker(services)


FEATURE = SearchFeature()
