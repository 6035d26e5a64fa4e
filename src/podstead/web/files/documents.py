"""The page about a document: its preview, other views of it, and its details."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from podstead.core.caches import BoundedCache
from podstead.core.errors import NotFound
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
    parse_media_type,
)
from podstead.previews.cards import read_cards, read_statements
from podstead.previews.drawing import draw
from podstead.previews.kinds import Kind, kind_of, language_of
from podstead.previews.links import Links
from podstead.previews.rendering import ContentRenderer
from podstead.previews.text import MAX_TEXT_BYTES, DecodedText, decode_text, read_table
from podstead.rdf.codecs import parse
from podstead.rdf.errors import NotExpressible
from podstead.rdf.graph import Dataset
from podstead.resources.activity import ChangeAuthors, MemberAudiences
from podstead.resources.entity_tags import last_modified_ms, stored_tag
from podstead.resources.outcome import Outcome, Representation, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode
from podstead.web.browsers import see_other
from podstead.web.files.members import kind_name, reach_name, shown_agent
from podstead.web.pages.addresses import breadcrumb, files_url, raw_url, shown_name
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response

MAX_LINKED_DATA_BYTES: Final = 2 * 1024 * 1024
"""A longer document, as N-Quads, is not shown as cards: it would take seconds."""
_THREAD_FROM_BYTES: Final = 32 * 1024
_CACHED_BYTES: Final = 16 * 1024 * 1024
_CACHED_FAILURES: Final = 1_000
_FAILURE_KEPT_S: Final = 600
"""After how long a version that could not be rendered is tried again: the machine may have been
busy."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a document and its metadata at that moment."""

    stored: Metadata | None
    content_type: str
    decoded: DecodedText | None


class DocumentContents:
    """Reads and renders the content of documents, as the person who asks."""

    def __init__(
        self, *, resources: ResourceService, renderer: ContentRenderer, base_url: str
    ) -> None:
        self._resources = resources
        self._renderer = renderer
        self._base_url = base_url
        self._rendered: BoundedCache[tuple[str, ...], str] = BoundedCache(_CACHED_BYTES)
        self._failed: BoundedCache[tuple[str, ...], float] = BoundedCache(_CACHED_FAILURES)

    async def text(
        self, page: PageRequest, target: ResourcePath, accept: str | None = None
    ) -> ReadText:
        """The text of a document; ``decoded`` is ``None`` if it is not text. Raises RequestRefused
        and ServerTrouble."""
        outcome = await self._read(page, target, accept)
        representation = _representation(outcome)
        content = await _beginning(representation, MAX_TEXT_BYTES + 1)
        charset = parse_media_type(representation.content_type).parameter("charset")
        decoded = decode_text(content, charset)
        return ReadText(outcome.metadata, representation.content_type, decoded)

    async def linked_data(
        self, page: PageRequest, target: ResourcePath, work: Callable[[Dataset], _Result]
    ) -> _Result | None:
        """The result of some work on the statements of a document; ``None`` if they are too many.

        Raises RequestRefused and ServerTrouble.
        """
        representation = _representation(await self._read(page, target, N_QUADS))
        content = await _beginning(representation, MAX_LINKED_DATA_BYTES + 1)
        if len(content) > MAX_LINKED_DATA_BYTES:
            return None
        base_iri = self._base_url + target

        def worked() -> _Result:
            return work(parse(content, N_QUADS, base_iri=base_iri).dataset)

        if len(content) < _THREAD_FROM_BYTES:
            return worked()
        return await asyncio.to_thread(worked)

    async def rendered(
        self, page: PageRequest, task: str, arguments: Mapping[str, str], read: ReadText
    ) -> str | None:
        """Safe HTML, from the cache or the renderer's process; ``None`` if it cannot be made.

        Raises Overloaded.
        """
        if read.stored is None or read.decoded is None:
            return None
        key = (
            read.stored.path,
            read.stored.version,
            read.content_type,
            task,
            *(f"{name}={value}" for name, value in sorted(arguments.items())),
        )
        cached = self._rendered.get(key)
        if cached is not None:
            return cached
        now_s = asyncio.get_running_loop().time()
        if now_s - (self._failed.get(key) or -_FAILURE_KEPT_S) < _FAILURE_KEPT_S:
            return None
        made = await self._renderer.render(
            task, arguments, read.decoded.text.encode(), requester=page.requester
        )
        if made is None:
            self._failed.put(key, now_s)
            return None
        html = made.decode()
        self._rendered.put(key, html, weight=2 * len(html))
        return html

    async def _read(self, page: PageRequest, target: ResourcePath, accept: str | None) -> Outcome:
        return await self._resources.handle(page.operation("GET", target, accept=accept))


def _representation(outcome: Outcome) -> Representation:
    if outcome.representation is None:
        raise NotFound
    return outcome.representation


async def _beginning(representation: Representation, limit_bytes: int) -> bytes:
    """The first bytes of a representation."""
    body = representation.body
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body[:limit_bytes]
    pieces = body.chunks(0, limit_bytes) if hasattr(body, "chunks") else body
    read = bytearray()
    async for piece in pieces:
        read += piece
        if len(read) >= limit_bytes:
            break
    return bytes(read[:limit_bytes])


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
