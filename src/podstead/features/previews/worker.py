"""Shows stored content on the pages: linked data as cards, statements and a graph, Markdown, source
code, tables, media, and thumbnails in lists.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar, cast

from podstead.app.services import Services
from podstead.core import media_types
from podstead.core.caches import BoundedCache
from podstead.core.conditional import Conditions
from podstead.core.errors import NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container
from podstead.features import WorkerFeature
from podstead.features.previews.cards import read_cards, read_statements
from podstead.features.previews.drawing import draw
from podstead.features.previews.processes import RenderingProcesses, ThumbnailFiles
from podstead.features.previews.tables import read_table
from podstead.features.previews.taken import PictureDates, has_thumbnail
from podstead.rdf import codecs, errors, graph
from podstead.resources.outcome import Result
from podstead.resources.service import ResourceService
from podstead.storage.layout import RootLayout
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.records import Metadata
from podstead.web.account.profile import Profiles
from podstead.web.browsers import VARY_BY_COOKIE
from podstead.web.files import documents
from podstead.web.pages.addresses import FACE, THUMBNAIL
from podstead.web.pages.kinds import Kind, language_of
from podstead.web.pages.links import Links
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import N_
from podstead.web.response import HeaderField, Response, conditional_response, content_response
from podstead.web.routes import REST, route

MAX_LINKED_DATA_BYTES: Final = 2 * 1024 * 1024
"""A longer document, as N-Quads, is not shown as cards: it would take seconds."""
_THREAD_FROM_BYTES: Final = 32 * 1024
_CACHED_BYTES: Final = 16 * 1024 * 1024
_CACHED_FAILURES: Final = 1_000
_FAILURE_KEPT_S: Final = 600
"""After how long a version that could not be rendered is tried again: the machine may have been
busy."""

_Result = TypeVar("_Result")

STATEMENTS: Final = "statements"
TEXT: Final = "text"
GRAPH: Final = "graph"
_VIEWS_OF_LINKED_DATA: Final = {
    STATEMENTS: N_("Statements"),
    TEXT: N_("Text"),
    GRAPH: N_("Graph"),
}
FORMATS: Final = {
    "turtle": ("Turtle", media_types.TURTLE),
    "json-ld": ("JSON-LD", media_types.JSON_LD),
    "n-triples": ("N-Triples", media_types.N_TRIPLES),
    "n-quads": ("N-Quads", media_types.N_QUADS),
    "trig": ("TriG", media_types.TRIG),
    "n3": ("N3", media_types.N3),
    "rdf-xml": ("RDF/XML", media_types.RDF_XML),
}
"""The formats in which linked data is shown as text: their names and media types."""
_VIEWS_OF_TEXT: Final = {TEXT: _VIEWS_OF_LINKED_DATA[TEXT]}
_WITHOUT_PREVIEW: Final = frozenset(
    {
        *(Kind.DOCUMENT, Kind.SPREADSHEET, Kind.PRESENTATION),
        *(Kind.FOLDER, Kind.ARCHIVE, Kind.OTHER),
    }
)


class PreviewsInWorker(WorkerFeature):
    """The previews of one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._renderer = RenderingProcesses()
        # Processes of its own: people do not wait for what is read in the background.
        self.observer = self._dates = PictureDates(
            services.records, RenderingProcesses(max_processes=1)
        )

    async def start(self) -> None:
        self._dates.start()

    async def stop(self) -> None:
        await self._dates.stop()

    @cached_property
    def previews(self) -> "Previews":  # type: ignore[override]  # as pages
        services = self._services
        return Previews(
            services.resources, self._renderer, self._dates, self._thumbnails, services.base_url
        )

    @cached_property
    def _files(self) -> ThumbnailFiles:
        folder = RootLayout(self._services.settings.root).thumbnails
        return ThumbnailFiles(folder, clock=self._services.clock)

    @cached_property
    def _thumbnails(self) -> "Thumbnails":
        services = self._services
        profiles = Profiles(services.resources, services.parse, services.base_url)
        return Thumbnails(services.resources, self._renderer, self._files, profiles)

    @cached_property
    def pages(self) -> tuple[object, ...]:  # type: ignore[override]
        return (self._thumbnails,)


class Previews(documents.ContentPreviews):
    """Reads and renders the content of documents, as the person who asks."""

    def __init__(
        self,
        resources: ResourceService,
        renderer: RenderingProcesses,
        dates: PictureDates,
        thumbnails: "Thumbnails",
        base_url: str,
    ) -> None:
        self._dates = dates
        self._thumbnails = thumbnails
        self._contents = documents.DocumentContents(resources)
        self._renderer = renderer
        self._base_url = base_url
        self._rendered: BoundedCache[tuple[str, ...], str] = BoundedCache(_CACHED_BYTES)
        self._failed: BoundedCache[tuple[str, ...], float] = BoundedCache(_CACHED_FAILURES)

    def views(self, kind: Kind) -> Mapping[str, str]:
        if kind is Kind.LINKED_DATA:
            return _VIEWS_OF_LINKED_DATA
        return _VIEWS_OF_TEXT if kind in {Kind.MARKDOWN, Kind.TABLE} else {}

    def picture(self, metadata: Metadata) -> str | None:
        return thumbnail_url(metadata) if has_thumbnail(metadata) else None

    async def thumbnail(self, page: PageRequest, target: ResourcePath) -> Response:
        return await self._thumbnails.send(page, target)

    async def taken(self, pictures: Sequence[Metadata]) -> Mapping[ResourcePath, int]:
        return await self._dates.taken(pictures)

    async def portrait(self, photo: bytes, page: PageRequest) -> bytes | None:
        return await self._renderer.carry_out(
            "square", {"pixels": str(PORTRAIT_PIXELS)}, photo, requester=page.requester
        )

    async def markdown(self, text: str, document: str, page: PageRequest) -> str | None:
        arguments = {"base_url": self._base_url, "document": document}
        made = await self._renderer.carry_out(
            "markdown", arguments, text.encode(), requester=page.requester
        )
        return None if made is None else made.decode()

    async def view(
        self, page: PageRequest, document: documents.ShownDocument, name: str
    ) -> documents.View | None:
        if document.kind in _WITHOUT_PREVIEW:
            return None
        return documents.View(
            "pods/previews/preview.html", await self._values(page, document, name)
        )

    async def _values(
        self, page: PageRequest, document: documents.ShownDocument, view: str
    ) -> Mapping[str, Any]:
        target, kind, media_type, name = document
        if kind is Kind.LINKED_DATA and view in {documents.PREVIEW, STATEMENTS, GRAPH}:
            return await self._linked_data(page, target, view)
        if kind is Kind.LINKED_DATA and view == TEXT:
            return await self._in_format(page, target, media_type)
        if not kind.is_text:
            return {}
        read = await self._contents.text(page, target)
        context: dict[str, Any] = {"decoded": read.decoded, "html": None, "table": None}
        if read.decoded is None:
            return context
        if kind is Kind.TABLE and view == documents.PREVIEW:
            is_tabs = media_type == "text/tab-separated-values"
            context["table"] = read_table(read.decoded.text, delimiter="\t" if is_tabs else None)
        elif kind is Kind.MARKDOWN and view == documents.PREVIEW:
            arguments = {"base_url": self._base_url, "document": target}
            context["html"] = await self._html(page, "markdown", arguments, read)
        elif (language := language_of(media_type, name)) is not None:
            arguments = {"language": language}
            context["html"] = await self._html(page, "highlight", arguments, read)
        return context

    async def _linked_data(
        self, page: PageRequest, target: ResourcePath, view: str
    ) -> Mapping[str, Any]:
        links, language = Links(self._base_url, target), page.texts.language
        made: dict[str, tuple[str, Callable[[graph.Dataset], object]]] = {
            STATEMENTS: ("statements", lambda read: read_statements(read, links)),
            GRAPH: ("drawing", lambda read: draw(read.default, links, language)),
            documents.PREVIEW: ("cards", lambda read: read_cards(read.default, links, language)),
        }
        name, work = made[view]
        return {name: await self._statements(page, target, work)}

    async def _in_format(
        self, page: PageRequest, target: ResourcePath, media_type: str
    ) -> Mapping[str, Any]:
        chosen = page.query_text("format")
        if chosen not in FORMATS:
            stored_as = (key for key, (_, kind) in FORMATS.items() if kind == media_type)
            chosen = next(stored_as, "turtle")
        shown_type = FORMATS[chosen][1]
        decoded, html, reason = None, None, None
        try:
            read = await self._contents.text(page, target, shown_type)
        except errors.NotExpressible as error:
            reason = error.reason
        else:
            decoded = read.decoded
            arguments = {"language": language_of(shown_type, "") or ""}
            html = await self._html(page, "highlight", arguments, read)
        return {
            "decoded": decoded,
            "html": html,
            "not_expressible": reason,
            "formats_of_text": [
                documents.DocumentView(key, name, f"?view={TEXT}&format={key}", key == chosen)
                for key, (name, _) in FORMATS.items()
            ],
        }

    async def _statements(
        self, page: PageRequest, target: ResourcePath, work: Callable[[graph.Dataset], _Result]
    ) -> _Result | None:
        """The result of some work on the statements of a document; ``None`` if they are too many.

        Raises RequestRefused and ServerTrouble.
        """
        limit_bytes = MAX_LINKED_DATA_BYTES + 1
        _, content = await self._contents.beginning(page, target, media_types.N_QUADS, limit_bytes)
        if len(content) > MAX_LINKED_DATA_BYTES:
            return None
        base_iri = self._base_url + target

        def worked() -> _Result:
            return work(codecs.parse(content, media_types.N_QUADS, base_iri=base_iri).dataset)

        if len(content) < _THREAD_FROM_BYTES:
            return worked()
        return await asyncio.to_thread(worked)

    async def _html(
        self, page: PageRequest, task: str, arguments: Mapping[str, str], read: documents.ReadText
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
        made = await self._renderer.carry_out(
            task, arguments, read.decoded.text.encode(), requester=page.requester
        )
        if made is None:
            self._failed.put(key, now_s)
            return None
        html = made.decode()
        self._rendered.put(key, html, weight=2 * len(html))
        return html


_KEPT: Final = (b"cache-control", b"private, max-age=3600")
_POLICY: Final = (b"content-security-policy", b"default-src 'none'; sandbox")
_NONE: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 48 48" fill="none" stroke="#808080" '
    b'stroke-width="1.2"><path d="M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01"/></svg>'
)
"""Stands in for the thumbnail of a picture that has none."""

PORTRAIT_PIXELS: Final = 512
"""The sides of the photo of a profile, as it is stored."""
FACE_PIXELS: Final = 96
"""The sides of a face beside a name, for screens of triple density."""
_NO_FACE: Final = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
"""Lets the initials behind it be seen."""
_FACE_KEPT: Final = (b"cache-control", b"private, max-age=300")
_OWN_FACE_KEPT: Final = (b"cache-control", b"private, no-cache")
"""Whoever changes it sees that at once."""


def thumbnail_url(metadata: Metadata) -> str:
    """The address, which changes with the picture."""
    return f"{THUMBNAIL}{metadata.path}?v={metadata.version}"


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Sends thumbnails, and the faces of people, to those who may read the picture."""

    resources: ResourceService
    renderer: RenderingProcesses
    store: ThumbnailFiles
    profiles: Profiles

    @route(THUMBNAIL + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        return await self.send(page, page.target)

    async def send(self, page: PageRequest, target: ResourcePath) -> Response:
        """The thumbnail of a picture; raises as :meth:`get`."""
        made = await self._small(page, await self._picture(page, target), "thumbnail")
        headers: list[HeaderField] = [_KEPT, _POLICY]
        return content_response(
            made or _NONE,
            "image/webp" if made else "image/svg+xml",
            method=page.request.method,
            headers=headers,
            vary=VARY_BY_COOKIE,
        )

    @route(FACE, "GET", is_page=False)
    async def get_face(self, page: PageRequest) -> Response:
        """The photo of somebody; where the person who asks may see none, a transparent picture.
        Raises BadRequest, Overloaded, ServerTrouble."""
        web_id, version, made = page.query_text("of"), "none", b""
        try:
            target = await self.profiles.photo(page, web_id)
            stored = None if target is None else await self._picture(page, target)
        except RequestRefused:
            stored = None
        if stored is not None:
            made = await self._small(page, stored, "square", pixels=str(FACE_PIXELS))
            version = stored.version if made else version
        is_own = page.person is not None and page.person.web_id == web_id
        response = conditional_response(
            made or _NO_FACE,
            "image/webp" if made else "image/svg+xml",
            method=page.request.method,
            etag=f'"{version}"',
            conditions=Conditions(if_none_match=page.request.fields.get(b"if-none-match")),
            headers=[_OWN_FACE_KEPT if is_own else _FACE_KEPT, _POLICY],
        )
        response.vary = VARY_BY_COOKIE
        return response

    async def _picture(self, page: PageRequest, target: ResourcePath) -> Metadata:
        """The picture at a path. Raises NotAuthenticated, AccessDenied, NotFound."""
        if is_container(target):
            raise NotFound("A folder has no thumbnail")
        outcome = await self.resources.handle(page.operation("HEAD", target))
        stored = outcome.metadata
        if outcome.result is not Result.REPRESENTED or stored is None or not has_thumbnail(stored):
            raise NotFound("This has no thumbnail")
        return stored

    async def _small(
        self, page: PageRequest, stored: Metadata, task: str, **arguments: str
    ) -> bytes:
        """A picture in small, made by a task; empty if it cannot be made."""
        kind = "".join(arguments.values())
        made = await self.store.get(stored.path, stored.version, kind)
        if made is not None:
            return made
        read_version = stored.version

        async def content() -> bytes:
            nonlocal read_version
            outcome = await self.resources.handle(page.operation("GET", stored.path))
            representation, metadata = outcome.representation, outcome.metadata
            if representation is None or metadata is None:
                raise NotFound
            read_version = metadata.version
            # It may have been replaced since.
            if not has_thumbnail(metadata) or not representation.verbatim:
                return b""
            body = representation.body
            if isinstance(body, bytes):
                return body
            return b"" if body is None else await whole_body(cast("OpenBody", body))

        made = await self.renderer.carry_out(task, arguments, content, requester=page.requester)
        await self.store.put(stored.path, read_version, made or b"", kind)
        return made or b""
