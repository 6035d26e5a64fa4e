"""The page behind the search box: what was found, with excerpts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.numbers import whole_number
from podstead.features.search.finder import CONSIDERED, PAGE, Asker, Finder, Hit
from podstead.resources.sharing.shared import SharedLists
from podstead.web.pages.addresses import SEARCH, breadcrumb, files_url, shown_name
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response

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

    async def get(self, page: PageRequest, top: ResourcePath | None, text: str) -> Response:
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
