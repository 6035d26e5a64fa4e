"""The page about a document: its preview, other views of it, and its details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from podstead.core.identifiers import (
    Auxiliary,
    ResourcePath,
    auxiliary_kind,
    is_container,
    subject_of,
)
from podstead.core.media_types import (
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    essence,
)
from podstead.previews.cards import read_cards, read_statements
from podstead.previews.drawing import draw
from podstead.previews.kinds import Kind, kind_of, language_of
from podstead.previews.links import Links
from podstead.previews.text import read_table
from podstead.rdf.errors import NotExpressible
from podstead.resources.activity import ChangeAuthors, MemberAudiences
from podstead.resources.entity_tags import last_modified_ms, stored_tag
from podstead.resources.outcome import ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode
from podstead.web.browsers import see_other
from podstead.web.pages.addresses import files_url, raw_url
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.files.contents import DocumentContents
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.files.words import kind_name, reach_name, shown_agent
from podstead.web.response import Response

PREVIEW: Final = "preview"
STATEMENTS: Final = "statements"
TEXT: Final = "text"
GRAPH: Final = "graph"
EDIT: Final = "edit"
_TITLES: Final = {
    PREVIEW: N_("Preview"),
    STATEMENTS: N_("Statements"),
    TEXT: N_("Text"),
    GRAPH: N_("Graph"),
    EDIT: N_("Edit"),
}
FORMATS: Final = {
    "turtle": TURTLE,
    "json-ld": JSON_LD,
    "n-triples": N_TRIPLES,
    "n-quads": N_QUADS,
    "trig": TRIG,
    "n3": N3,
    "rdf-xml": RDF_XML,
}
_FORMAT_NAMES: Final = {
    "turtle": "Turtle",
    "json-ld": "JSON-LD",
    "n-triples": "N-Triples",
    "n-quads": "N-Quads",
    "trig": "TriG",
    "n3": "N3",
    "rdf-xml": "RDF/XML",
}


def _described(target: ResourcePath) -> ResourcePath | None:
    """The container whose description the target is, if any."""
    subject = subject_of(target)
    of_container = auxiliary_kind(target) is Auxiliary.DESCRIPTION and is_container(subject)
    return subject if of_container else None


@dataclass(frozen=True, slots=True)
class DocumentView:
    """One way to look at the document."""

    name: str
    title: str
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Shows a document."""

    site: Site
    resources: ResourceService
    contents: DocumentContents
    reach: MemberAudiences
    authors: ChangeAuthors

    async def get(self, page: PageRequest, target: ResourcePath) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        request = page.operation("HEAD", target)
        outcome = await self.resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            return see_other(files_url(outcome.location))
        return await self.show(page, target, request, outcome.metadata)

    async def show(
        self,
        page: PageRequest,
        target: ResourcePath,
        request: ResourceRequest,
        stored: Metadata | None,
        *,
        status: int = 200,
        view: str | None = None,
        edited: Mapping[str, object] | None = None,
    ) -> Response:
        """The page in the view that the query names, or the given one. ``edited`` replaces what
        the view for editing shows."""
        media_type = TURTLE if stored is None else essence(stored.content_type)
        described = _described(target)
        name = shown_name(described or target)
        kind = kind_of(media_type, name)
        may_write = request.grant is not None and request.grant.allows(Mode.WRITE)
        names = _views(kind, may_write=may_write)
        view = view or page.query_text("view")
        current = view if view in names else PREVIEW
        context = dict(await self._context(page, target, kind, media_type, current))
        context.update(edited or {})
        return self.site.page(
            page,
            "files/document.html",
            status=status,
            target=target,
            name=name,
            breadcrumb=breadcrumb(described or target),
            without_members=described is not None and not request.may_read,
            raw=raw_url(target),
            version="" if stored is None else stored.version,
            kind=kind,
            kind_name=kind_name(kind),
            media_type=media_type,
            size_bytes=0 if stored is None else stored.size_bytes,
            modified_ms=None if stored is None else last_modified_ms(stored),
            may_write=may_write,
            may_control=request.grant is not None and request.grant.allows(Mode.CONTROL),
            url=self.site.base_url + target,
            view=current,
            views=[
                DocumentView(
                    each,
                    _(_TITLES[each]),
                    "?" if each == PREVIEW else f"?view={each}",
                    each == current,
                )
                for each in names
            ],
            **await self._facts(page, stored),
            **context,
        )

    async def _facts(self, page: PageRequest, stored: Metadata | None) -> dict[str, Any]:
        """Who can see the document and who changed it, as far as the person may know."""
        if stored is None:
            return {"reach": None, "reach_name": "", "author": None}
        person = page.person
        reach = (await self.reach.of(page.identity, [stored])).get(stored.path)
        author = (await self.authors.of([stored])).get(stored.path)
        own = None if person is None else person.web_id
        owns = person is not None and any(stored.path.startswith(pod) for pod in person.pods)
        if author is not None and not (owns or author == own):
            author = None
        return {
            "reach": reach,
            "reach_name": "" if reach is None else reach_name(reach, owns=owns),
            "author": author and shown_agent(author, own=own, base_url=self.site.base_url),
        }

    async def _context(
        self, page: PageRequest, target: ResourcePath, kind: Kind, media_type: str, view: str
    ) -> Mapping[str, Any]:
        if kind is Kind.LINKED_DATA and view in {PREVIEW, STATEMENTS, GRAPH}:
            return await self._linked_data(page, target, view)
        if kind is Kind.LINKED_DATA and view == TEXT:
            return await self._in_format(page, target, media_type)
        if view == EDIT:
            return await self._editor(page, target)
        if not kind.is_text:
            return {}
        read = await self.contents.text(page, target)
        name = shown_name(target)
        context: dict[str, Any] = {"decoded": read.decoded, "html": None, "table": None}
        if read.decoded is None:
            return context
        if kind is Kind.TABLE and view == PREVIEW:
            is_tabs = media_type == "text/tab-separated-values"
            context["table"] = read_table(read.decoded.text, delimiter="\t" if is_tabs else None)
        elif kind is Kind.MARKDOWN and view == PREVIEW:
            arguments = {"base_url": self.site.base_url, "document": target}
            context["html"] = await self.contents.rendered(page, "markdown", arguments, read)
        elif (language := language_of(media_type, name)) is not None:
            arguments = {"language": language}
            context["html"] = await self.contents.rendered(page, "highlight", arguments, read)
        return context

    async def _linked_data(
        self, page: PageRequest, target: ResourcePath, view: str
    ) -> Mapping[str, Any]:
        links = Links(self.site.base_url, target)
        language = page.texts.language
        contents = self.contents
        if view == STATEMENTS:
            return {
                "statements": await contents.linked_data(
                    page, target, lambda read: read_statements(read, links)
                )
            }
        if view == GRAPH:
            return {
                "drawing": await contents.linked_data(
                    page, target, lambda read: draw(read.default, links, language)
                )
            }
        return {
            "cards": await contents.linked_data(
                page, target, lambda read: read_cards(read.default, links, language)
            )
        }

    async def _in_format(
        self, page: PageRequest, target: ResourcePath, media_type: str
    ) -> Mapping[str, Any]:
        stored_as = next((key for key, kind in FORMATS.items() if kind == media_type), None)
        chosen = page.query_text("format")
        if chosen not in FORMATS:
            chosen = stored_as or "turtle"
        decoded, html, reason = None, None, None
        try:
            read = await self.contents.text(page, target, FORMATS[chosen])
        except NotExpressible as error:
            reason = error.reason
        else:
            decoded = read.decoded
            arguments = {"language": language_of(FORMATS[chosen], "") or ""}
            html = await self.contents.rendered(page, "highlight", arguments, read)
        return {
            "decoded": decoded,
            "html": html,
            "not_expressible": reason,
            "formats_of_text": [
                DocumentView(key, _FORMAT_NAMES[key], f"?view={TEXT}&format={key}", key == chosen)
                for key in FORMATS
            ],
        }

    async def _editor(self, page: PageRequest, target: ResourcePath) -> Mapping[str, Any]:
        read = await self.contents.text(page, target)
        decoded = read.decoded
        editable = decoded is not None and decoded.exact
        text = decoded.text if decoded is not None and editable else ""
        return {
            "editable": editable,
            "text": text,
            "newline": "crlf" if "\r\n" in text else "lf",
            "tag": "" if read.stored is None else stored_tag(read.stored),
            "problem": None,
        }


def _views(kind: Kind, *, may_write: bool) -> tuple[str, ...]:
    names: tuple[str, ...] = (PREVIEW,)
    if kind is Kind.LINKED_DATA:
        names = (PREVIEW, STATEMENTS, TEXT, GRAPH)
    elif kind in {Kind.MARKDOWN, Kind.TABLE}:
        names = (PREVIEW, TEXT)
    return (*names, EDIT) if kind.is_text and may_write else names
