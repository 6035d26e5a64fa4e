"""The search in one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.features import WorkerFeature
from podstead.features.search.endpoint import DESCRIPTION, SearchEndpoint
from podstead.features.search.extractor import Extractor
from podstead.features.search.finder import Finder
from podstead.features.search.fts5 import INDEX_NAME, Fts5Index
from podstead.features.search.index import Index
from podstead.features.search.indexer import Indexer
from podstead.features.search.page import ResultsPage
from podstead.features.search.postgresql import PostgresqlIndex
from podstead.notifications.answers import AnswerSource
from podstead.resources.sharing.shared import SharedLists
from podstead.web.files.search import SearchResults
from podstead.web.forms import FORM_TYPE
from podstead.web.routes import Endpoint, Route, plain_routes

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.storage.disk_space import DiskSpace
    from podstead.storage.record_store import RecordStore


def index_of(settings: Settings, records: RecordStore, space: DiskSpace) -> Index:
    """The index of a server with these settings, records, and disk."""
    if settings.database is None:
        return Fts5Index(settings.root / INDEX_NAME, space)
    return PostgresqlIndex(records)


class SearchInWorker(WorkerFeature):
    """Answers questions and, in one worker, keeps the index up."""

    storage_links = (
        ("openSearchDescription", "http://rdfs.org/ns/void#openSearchDescription", DESCRIPTION),
    )

    def __init__(self, services: Services) -> None:
        self._services = services
        self._index = index_of(services.settings, services.records, services.space)
        self.indexer = Indexer(self._index, services.store, Extractor())

    @cached_property
    def _finder(self) -> Finder:
        services = self._services
        return Finder(self._index, services.store, services.gate)

    @cached_property
    def _endpoint(self) -> SearchEndpoint:
        return SearchEndpoint(self._finder, self._services.base_url)

    @cached_property
    def routes(self) -> Sequence[Route]:  # type: ignore[override]
        return plain_routes(self._endpoint)

    @cached_property
    def search_results(self) -> SearchResults:  # type: ignore[override]
        services = self._services
        shared = SharedLists(services.resource_context, services.owners)
        return ResultsPage(services.pages.site, self._finder, shared).get

    @cached_property
    def queries(self) -> Mapping[str, Endpoint]:  # type: ignore[override]
        return {FORM_TYPE: self._endpoint.query}

    @cached_property
    def live_queries(self) -> Sequence[AnswerSource]:  # type: ignore[override]
        return (self._endpoint,)

    async def start(self) -> None:
        self.indexer.start()

    async def stop(self) -> None:
        await self.indexer.stop()
        await self._index.close()
