"""The page about a document: its preview, other views of it, and its details."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from podstead.core import errors, identifiers, media_types
from podstead.resources.activity import ChangeAuthors, MemberAudiences
from podstead.resources.entity_tags import last_modified_ms, stored_tag
from podstead.resources.outcome import Outcome, Representation, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode
from podstead.web.browsers import see_other
from podstead.web.files.members import kind_name, reach_name, shown_agent
from podstead.web.files.text import MAX_TEXT_BYTES, DecodedText, decode_text
from podstead.web.pages.addresses import breadcrumb, files_url, raw_url, shown_name
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a document and its metadata at that moment."""

    stored: Metadata | None
    content_type: str
    decoded: DecodedText | None


@dataclass(frozen=True, slots=True)
class DocumentContents:
    """Reads the content of documents, as the person who asks."""

    resources: ResourceService

    async def text(
        self, page: PageRequest, target: identifiers.ResourcePath, accept: str | None = None
    ) -> ReadText:
        """The text of a document; ``decoded`` is ``None`` if it is not text. Raises RequestRefused
        and ServerTrouble."""
        outcome, content = await self.beginning(page, target, accept, MAX_TEXT_BYTES + 1)
        representation = _representation(outcome)
        charset = media_types.parse_media_type(representation.content_type).parameter("charset")
        decoded = decode_text(content, charset)
        return ReadText(outcome.metadata, representation.content_type, decoded)

    async def beginning(
        self,
        page: PageRequest,
        target: identifiers.ResourcePath,
        accept: str | None,
        limit_bytes: int,
    ) -> tuple[Outcome, bytes]:
        """The response to a GET, and the first bytes of its content. Raises RequestRefused and
        ServerTrouble."""
        outcome = await self.resources.handle(page.operation("GET", target, accept=accept))
        return outcome, await _beginning(_representation(outcome), limit_bytes)


def _representation(outcome: Outcome) -> Representation:
    if outcome.representation is None:
        raise errors.NotFound
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
"""The view of a document that its page begins with."""


class ShownDocument(NamedTuple):
    """A document whose page is shown."""

    target: identifiers.ResourcePath
    kind: Kind
    media_type: str
    name: str


class DocumentOffer(NamedTuple):
    """Another page about a document: its address, and what the button that leads there says."""

    address: str
    title: str


class DocumentOffers(Protocol):
    """Finds other pages about documents, such as one that shows a contact as what it is."""

    async def of(
        self, page: PageRequest, document: ShownDocument, stored: Metadata | None
    ) -> Sequence[DocumentOffer]:
        """Those about one document, as the person may see it. Raises ServerTrouble."""


class View(NamedTuple):
    """A template, and the values that it shows besides those of the page."""

    template: str
    values: Mapping[str, Any]


class ContentPreviews:
    """What pages show of stored content. All members have a default that shows nothing."""

    def views(self, kind: Kind) -> Mapping[str, str]:
        """Further views of a document by name, with their titles."""
        return {}

    async def view(self, page: PageRequest, document: ShownDocument, name: str) -> View | None:
        """The preview or one of these views; ``None`` if there is no preview. Raises
        RequestRefused and ServerTrouble."""
        return None

    def picture(self, metadata: Metadata) -> str | None:
        """The address of a small picture of a document, for lists."""
        return None

    async def thumbnail(self, page: PageRequest, target: identifiers.ResourcePath) -> Response:
        """A small picture of a document that has one by :meth:`picture`, for who asks. Raises
        NotAuthenticated, AccessDenied, NotFound, Overloaded, ServerTrouble."""
        raise errors.NotFound

    async def taken(self, pictures: Sequence[Metadata]) -> Mapping[identifiers.ResourcePath, int]:
        """When the pictures were taken, as their cameras say, in Unix milliseconds; those of which
        that is known."""
        del pictures
        return {}

    async def portrait(self, photo: bytes, page: PageRequest) -> bytes | None:
        """A photo of somebody as it is stored for a profile; ``None`` if it is no picture. Raises
        Overloaded."""
        del page
        return photo

    async def markdown(self, text: str, document: str, page: PageRequest) -> str | None:
        """Markdown as safe HTML, for a document at this address; ``None`` if it cannot be made.
        Raises Overloaded."""
        return None


EDIT: Final = "edit"


def _described(target: identifiers.ResourcePath) -> identifiers.ResourcePath | None:
    """The container whose description the target is, if any."""
    subject = identifiers.subject_of(target)
    of_container = identifiers.auxiliary_kind(
        target
    ) is identifiers.Auxiliary.DESCRIPTION and identifiers.is_container(subject)
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
    previews: ContentPreviews
    reach: MemberAudiences
    authors: ChangeAuthors
    offers: Sequence[DocumentOffers] = ()

    async def get(self, page: PageRequest, target: identifiers.ResourcePath) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        request = page.operation("HEAD", target)
        outcome = await self.resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            return see_other(files_url(outcome.location))
        return await self.show(page, target, request, outcome.metadata)

    async def show(
        self,
        page: PageRequest,
        target: identifiers.ResourcePath,
        request: ResourceRequest,
        stored: Metadata | None,
        *,
        status: int = 200,
        view: str | None = None,
        edited: Mapping[str, object] | None = None,
    ) -> Response:
        """The page in the view that the query names, or the given one. ``edited`` replaces what
        the view for editing shows."""
        media_type = (
            media_types.TURTLE if stored is None else media_types.essence(stored.content_type)
        )
        described = _described(target)
        name = shown_name(described or target)
        kind = kind_of(media_type, name)
        may_write = request.grant is not None and request.grant.allows(Mode.WRITE)
        views = {PREVIEW: N_("Preview"), **self.previews.views(kind)}
        if kind.is_text and may_write:
            views[EDIT] = N_("Edit")
        view = view or page.query_text("view")
        current = view if view in views else PREVIEW
        shown: View | None
        offered: list[DocumentOffer] = []
        if current == EDIT:
            read = await self.contents.text(page, target)
            shown = View("", {**editor_values(read), **(edited or {})})
        else:
            document = ShownDocument(target, kind, media_type, shown_name(target))
            shown = await self.previews.view(page, document, current)
            for each in self.offers:
                offered += await each.of(page, document, stored)
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
                    _(title),
                    "?" if each == PREVIEW else f"?view={each}",
                    each == current,
                )
                for each, title in views.items()
            ],
            preview=shown and shown.template,
            offered=offered,
            **await self._facts(page, stored),
            **({} if shown is None else shown.values),
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


def editor_values(read: ReadText) -> Mapping[str, Any]:
    """What the view for editing a text shows."""
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
