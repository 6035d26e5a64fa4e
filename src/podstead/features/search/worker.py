"""The search in one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.numbers import whole_number
from podstead.features import WorkerFeature
from podstead.features.search import endpoint, extractor, fts5, indexer, postgresql
from podstead.features.search.finder import CONSIDERED, PAGE, Asker, Finder, Hit
from podstead.features.search.index import Index
from podstead.notifications.answers import AnswerSource
from podstead.resources.sharing.shared import SharedLists
from podstead.web import forms, response
from podstead.web.files.search import SearchResults
from podstead.web.pages.addresses import SEARCH, breadcrumb, files_url, shown_name
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.routes import Endpoint, Route, plain_routes

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.storage.disk_space import DiskSpace
    from podstead.storage.record_store import RecordStore


_KINDS: Final[Mapping[str, str]] = {
    "": N_("Everything"),
    "folder": N_("Folders"),
    "text": N_("Text"),
    "pdf": N_("PDF"),
    "image": N_("Pictures"),
    "audio": N_("Music"),
    "video": N_("Videos"),
}
_ORDERS: Final[Mapping[str, str]] = {"": N_("Best first"), "newest": N_("Last changed first")}


MAX_SHARED: Final = 100
"""In how many things that others share a search for everything looks."""


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A row of the page. ``where`` is the way from the folder that was searched."""

    name: str
    address: str
    where: str
    kind: Kind
    modified_ms: int
    size_bytes: int | None
    excerpt: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class ResultsPage:
    """Shows what the person finds."""

    site: Site
    finder: Finder
    shared: SharedLists

    async def get(
        self, page: PageRequest, top: ResourcePath | None, text: str
    ) -> response.Response:
        """What is found below a folder, or in all that is the person's and is shared with them.
        Raises NotAuthenticated, RateLimited, StorageError."""
        kind, order = page.query_text("kind"), page.query_text("sort")
        since = page.query_text("since")
        index = whole_number(page.query_text("page"), 999) or 0
        question = text
        if kind in _KINDS and kind:
            question += f" type:{kind}"
        if since:
            question += f' after:"{since}"'
        answer, is_everywhere = None, True
        if question:
            places: Sequence[ResourcePath] = [top] if top else ()
            if top is None:
                places, is_everywhere = await self._everywhere(page.signed_in())
            answer = await self.finder.find(
                Asker(page.identity, None),
                places,
                question,
                newest=order == "newest",
                page=min(index, CONSIDERED // PAGE),
            )
        chosen = {"q": text, "in": top or "", "kind": kind, "since": since, "sort": order}
        return self.site.page(
            page,
            "search/results.html",
            q=text,
            top=top,
            top_name="" if top is None else shown_name(top),
            breadcrumb=() if top is None else breadcrumb(top),
            everywhere=_address({**chosen, "in": ""}, 0) if page.person and top else None,
            kinds=_KINDS,
            kind=kind,
            orders=_ORDERS,
            order=order,
            since=since,
            has_answer=answer is not None,
            found=[] if answer is None else [_shown(each, top) for each in answer.hits],
            is_complete=answer is None or (answer.is_complete and is_everywhere),
            before=_address(chosen, index - 1) if index else None,
            more=_address(chosen, index + 1) if answer is not None and answer.has_more else None,
        )

    async def _everywhere(self, person: Person) -> tuple[Sequence[ResourcePath], bool]:
        """The person's pods and what others share with them, and whether that is all of it."""
        listed = await self.shared.shared_with(person.identity, own=person.pods)
        shared = [each.resource for each in listed.resources[:MAX_SHARED]]
        is_all = not listed.more_of and listed.after is None
        return [*person.pods, *shared], is_all and len(shared) == len(listed.resources)


def _address(chosen: Mapping[str, str], index: int) -> str:
    parameters = {name: value for name, value in chosen.items() if value}
    if index:
        parameters["page"] = str(index)
    return f"{SEARCH}?{urlencode(parameters, quote_via=quote)}"


def _shown(hit: Hit, top: ResourcePath | None) -> ShownHit:
    way = [crumb.name for crumb in breadcrumb(hit.path)[:-1]]
    is_folder, name = is_container(hit.path), shown_name(hit.path)
    return ShownHit(
        name=name,
        address=files_url(hit.path),
        where=" / ".join(way if top is None else way[len(breadcrumb(top)) - 1 :]),
        kind=Kind.FOLDER if is_folder else kind_of(hit.media_type, name),
        modified_ms=hit.modified_ms,
        size_bytes=None if is_folder else hit.size_bytes,
        excerpt=hit.excerpt,
    )


def index_of(settings: Settings, records: RecordStore, space: DiskSpace) -> Index:
    """The index of a server with these settings, records, and disk."""
    if settings.database is None:
        return fts5.Fts5Index(settings.root / fts5.INDEX_NAME, space)
    return postgresql.PostgresqlIndex(records)


class SearchInWorker(WorkerFeature):
    """Answers questions and, in one worker, keeps the index up."""

    storage_links = (
        (
            "openSearchDescription",
            "http://rdfs.org/ns/void#openSearchDescription",
            endpoint.DESCRIPTION,
        ),
    )

    def __init__(self, services: Services) -> None:
        self._services = services
        self._index = index_of(services.settings, services.records, services.space)
        self.indexer = indexer.Indexer(self._index, services.store, extractor.Extractor())

    @cached_property
    def _finder(self) -> Finder:
        services = self._services
        return Finder(self._index, services.store, services.gate)

    @cached_property
    def _endpoint(self) -> endpoint.SearchEndpoint:
        return endpoint.SearchEndpoint(self._finder, self._services.base_url)

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
        return {forms.FORM_TYPE: self._endpoint.query}

    @cached_property
    def live_queries(self) -> Sequence[AnswerSource]:  # type: ignore[override]
        return (self._endpoint,)

    async def start(self) -> None:
        self.indexer.start()

    async def stop(self) -> None:
        await self.indexer.stop()
        await self._index.close()
