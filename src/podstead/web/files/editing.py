"""``/.pages/new/<container>`` creates folders and documents, and ``/.pages/save/<path>`` stores
edited text.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from podstead.core import vocab
from podstead.core.conditional import Conditions
from podstead.core.errors import BadRequest, NotFound, PreconditionFailed, RequestRefused
from podstead.core.identifiers import ResourcePath, encode_segment, is_container, parse_path
from podstead.core.media_types import TURTLE
from podstead.core.operation import InMemoryBody
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import BlankNode, Dataset, Graph, Iri, Literal, Triple
from podstead.resources.entity_tags import stored_tag
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.files.documents import EDIT, DocumentContents, DocumentPage
from podstead.web.forms import FormSubmission
from podstead.web.pages import addresses
from podstead.web.pages.addresses import breadcrumb, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, route

_BOOKMARK: Final = "http://www.w3.org/2002/01/bookmark#"
WEB_ADDRESS: Final = re.compile(r"https?://[^\s<>\"{}|\\^`/?#]+[^\s<>\"{}|\\^`]*", re.IGNORECASE)
MAIL_ADDRESS: Final = re.compile(r"[^\s<>\"{}|\\^`@:/?#%]+@[^\s<>\"{}|\\^`@:/?#%]+")
TELEPHONE_NUMBER: Final = re.compile(r"\+?[0-9][0-9().\- ]*")

add_flash_messages(
    Tone.DONE,
    folder_created=N_("The folder %(subject)s was created."),
    document_created=N_("%(subject)s was created."),
)


class _Mistake(BadRequest):
    """A field that must be corrected; the text is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class _Form:
    """One kind of new resource: its title, its fields, and what it consists of."""

    title: str
    fields: tuple[str, ...]
    suffix: str
    content_type: str
    content: Callable[[FormSubmission, str], bytes]
    is_edited: bool = False
    """Whether the person goes on by writing the content."""


def is_iri(text: str) -> bool:
    """Whether a typed address can stand in linked data."""
    try:
        Iri(text)
    except ValueError:
        return False
    return True


class Mistyped(ValueError):
    """What was typed is not what it should be; ``str()`` is a sentence for the person."""


def mail_address(typed: str) -> str:
    """An address that can stand in linked data. Raises Mistyped."""
    if not (MAIL_ADDRESS.fullmatch(typed) and is_iri(f"mailto:{typed}")):
        raise Mistyped(_("This is not an e-mail address."))
    return typed


def telephone_number(typed: str) -> str:
    """A number without what only makes it easier to read. Raises Mistyped."""
    if not TELEPHONE_NUMBER.fullmatch(typed):
        raise Mistyped(_("This is not a telephone number."))
    return re.sub(r"[() .]", "", typed)


def web_address(typed: str) -> str:
    """The address of a page that can stand in linked data. Raises Mistyped."""
    if not (WEB_ADDRESS.fullmatch(typed) and is_iri(typed)):
        raise Mistyped(_("This is not the address of a web page."))
    return typed


def _checked(sent: FormSubmission, field: str, check: Callable[[str], str]) -> str:
    """Raises _Mistake."""
    try:
        return check(sent.text(field).strip())
    except Mistyped as mistyped:
        raise _Mistake(field, str(mistyped)) from mistyped


def _nothing(_sent: FormSubmission, _url: str) -> bytes:
    return b""


def _contact(sent: FormSubmission, url: str) -> bytes:
    contact = Iri(f"{url}#this")
    triples: list[Triple] = [
        (contact, Iri(vocab.RDF_TYPE), Iri(vocab.VCARD + "Individual")),
        (contact, Iri(vocab.VCARD + "fn"), Literal(sent.text("name").strip())),
    ]
    note = sent.text("note").strip()
    for field, check, scheme, name in (
        ("email", mail_address, "mailto:", "hasEmail"),
        ("telephone", telephone_number, "tel:", "hasTelephone"),
    ):
        if sent.text(field).strip():
            node = BlankNode(name)
            triples += [
                (contact, Iri(vocab.VCARD + name), node),
                (node, Iri(vocab.VCARD + "value"), Iri(scheme + _checked(sent, field, check))),
            ]
    if note:
        triples.append((contact, Iri(vocab.VCARD + "note"), Literal(note)))
    return _turtle(triples, url)


def _bookmark(sent: FormSubmission, url: str) -> bytes:
    address = _checked(sent, "address", web_address)
    bookmark = Iri(f"{url}#this")
    return _turtle(
        [
            (bookmark, Iri(vocab.RDF_TYPE), Iri(_BOOKMARK + "Bookmark")),
            (bookmark, Iri(vocab.DCTERMS_TITLE), Literal(sent.text("name").strip())),
            (bookmark, Iri(_BOOKMARK + "recalls"), Iri(address)),
        ],
        url,
    )


def _turtle(triples: list[Triple], url: str) -> bytes:
    prefixes = {"vcard": vocab.VCARD, "bookmark": _BOOKMARK, "dcterms": vocab.DCTERMS}
    return serialize(Document(Dataset(Graph(triples)), prefixes), TURTLE, base_iri=url)


_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        "folder": _Form(N_("New folder"), (), "/", TURTLE, _nothing),
        "text": _Form(N_("New text"), (), ".txt", "text/plain", _nothing, is_edited=True),
        "markdown": _Form(
            N_("New Markdown document"), (), ".md", "text/markdown", _nothing, is_edited=True
        ),
        "linked-data": _Form(
            N_("New linked-data document"), (), ".ttl", TURTLE, _nothing, is_edited=True
        ),
        "contact": _Form(
            N_("New contact"), ("email", "telephone", "note"), ".ttl", TURTLE, _contact
        ),
        "bookmark": _Form(N_("New bookmark"), ("address",), ".ttl", TURTLE, _bookmark),
    }
)


@dataclass(frozen=True, slots=True)
class Creation:
    """Creates resources in a container."""

    site: Site
    resources: ResourceService

    @route(addresses.NEW + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form. Raises NotAuthenticated, AccessDenied, NotFound."""
        target = _container(page)
        await self.resources.handle(page.operation("HEAD", target))
        return self._form(page, target, page.query_text("kind"), FormSubmission({}), None)

    @route(addresses.NEW + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Create it. Raises NotAuthenticated, AccessDenied, NotFound, and what refuses a write."""
        sent = await page.form()
        target = _container(page)
        kind = sent.text("kind")
        form = _known(kind)
        try:
            path = _path(target, sent.text("name").strip(), form.suffix)
            content = form.content(sent, self.site.base_url + path)
        except _Mistake as mistake:
            return self._form(page, target, kind, sent, mistake)
        request = page.operation(
            "PUT", path, body=InMemoryBody(content), content_type=form.content_type
        )
        request.operation = replace(request.operation, conditions=Conditions(if_none_match="*"))
        try:
            await self.resources.handle(request)
        except PreconditionFailed:
            taken = _Mistake("name", _("Something with this name is here already."))
            return self._form(page, target, kind, sent, taken)
        if form.is_edited:
            return see_other(f"{files_url(path)}?view=edit")
        name = "folder-created" if is_container(path) else "document-created"
        where = target if is_container(path) else path
        notice = self.site.cookies.set_flash_message(FlashMessage(name, shown_name(path)))
        return see_other(files_url(where), notice)

    def _form(
        self,
        page: PageRequest,
        target: ResourcePath,
        kind: str,
        sent: FormSubmission,
        mistake: _Mistake | None,
    ) -> Response:
        form = _known(kind)
        return self.site.page(
            page,
            "files/new.html",
            status=200 if mistake is None else 422,
            target=target,
            breadcrumb=breadcrumb(target),
            kind=kind,
            title=_(form.title),
            fields=form.fields,
            suffix=form.suffix.removesuffix("/"),
            values={name: sent.text(name) for name in ("name", *form.fields)},
            mistakes={} if mistake is None else {mistake.field: str(mistake)},
        )


def _known(kind: str) -> _Form:
    form = _FORMS.get(kind)
    if form is None:
        raise NotFound(WebCodes.NO_SUCH_FORM)
    return form


def _container(page: PageRequest) -> ResourcePath:
    target = page.target
    if not is_container(target):
        raise NotFound(WebCodes.NEW_NEEDS_FOLDER)
    return target


def _path(container: ResourcePath, name: str, suffix: str) -> ResourcePath:
    """The path of a new member. Raises _Mistake for a name that cannot be one."""
    if not name:
        raise _Mistake("name", _("A name is needed."))
    if "/" in name or name.startswith("."):
        raise _Mistake("name", _("A name has no slash and does not begin with a dot."))
    if suffix != "/" and not name.casefold().endswith(suffix):
        name += suffix
    segment = encode_segment(name.encode(errors="replace"))
    try:
        return parse_path(f"{container}{segment}{'/' if suffix == '/' else ''}".encode())
    except RequestRefused as error:
        raise _Mistake("name", _("This name cannot be used.")) from error


MAX_EDITED_BYTES: Final = 4 * 1024 * 1024
"""A form with a text of the largest size that is shown, each byte of which may be escaped."""
_MAX_COMPARED_LINES: Final = 1_500
_EXCERPT_LINES: Final = 2

add_flash_messages(Tone.DONE, document_saved=N_("%(subject)s was saved."))


@dataclass(frozen=True, slots=True)
class TextProblem:
    """Why a text was not saved, and where in it the reason is."""

    reason: str
    line: int | None
    column: int | None
    excerpt: tuple["ExcerptLine", ...]


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """A line near the place, cut in two at it if it is the one."""

    number: int
    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line of two versions beside each other; ``None`` where one has none."""

    left: str | None
    right: str | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Saving:
    """Saves edited texts."""

    site: Site
    resources: ResourceService
    documents: DocumentPage
    contents: DocumentContents

    @route(addresses.SAVE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form(max_bytes=MAX_EDITED_BYTES)
        target = page.target
        tag = sent.text("tag")
        text = as_written(sent.text("text"), newline=sent.text("newline"))
        head = page.operation("HEAD", target)
        stored = (await self.resources.handle(head)).metadata
        request = page.operation(
            "PUT",
            target,
            body=InMemoryBody(text.encode()),
            content_type=TURTLE if stored is None else stored.content_type,
        )
        conditions = Conditions(if_match=tag) if tag else Conditions(if_none_match="*")
        request.operation = replace(request.operation, conditions=conditions)
        try:
            await self.resources.handle(request)
        except PreconditionFailed:
            return await self._conflict(page, target, text)
        except MalformedRdf as error:
            problem = problem_at(error, text)
            edited = {"text": text, "tag": tag, "problem": problem, "editable": True}
            return await self.documents.show(
                page, target, head, stored, status=422, view=EDIT, edited=edited
            )
        notice = FlashMessage("document-saved", shown_name(target))
        return self.site.see_other(files_url(target), notice)

    async def _conflict(self, page: PageRequest, target: ResourcePath, mine: str) -> Response:
        """Both versions, of which the person chooses one or makes a third."""
        read = await self.contents.text(page, target)
        theirs = "" if read.decoded is None else read.decoded.text
        return self.site.page(
            page,
            "files/conflict.html",
            status=409,
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            mine=mine,
            theirs=theirs,
            # Comparing lines that alternate takes more than a second.
            lines=await asyncio.to_thread(compared, theirs, mine),
            newline="crlf" if "\r\n" in mine else "lf",
            tag=_tag(read.stored),
        )


def _tag(stored: Metadata | None) -> str:
    return "" if stored is None else stored_tag(stored)


def as_written(text: str, *, newline: str) -> str:
    """The text with the line ends of the document: browsers send all of them as CR LF."""
    lines = text.replace("\r\n", "\n")
    return lines.replace("\n", "\r\n") if newline == "crlf" else lines


def problem_at(error: MalformedRdf, text: str) -> TextProblem:
    """The problem with the lines around its place."""
    if error.line is None:
        return TextProblem(error.reason, None, None, ())
    lines = text.splitlines() or [""]
    at = min(max(error.line, 1), len(lines))
    excerpt = []
    for number in range(max(1, at - _EXCERPT_LINES), min(len(lines), at + _EXCERPT_LINES) + 1):
        line = lines[number - 1][:1_000]
        if number == at and error.column is not None:
            cut = min(max(error.column - 1, 0), len(line))
            excerpt.append(ExcerptLine(number, line[:cut], line[cut:]))
        else:
            excerpt.append(ExcerptLine(number, line, "" if number == at else None))
    return TextProblem(error.reason, error.line, error.column, tuple(excerpt))


def compared(left: str, right: str) -> list[ComparedLine] | None:
    """Two texts line by line; ``None`` if they are too long to be compared."""
    one, other = left.splitlines(), right.splitlines()
    if max(len(one), len(other)) > _MAX_COMPARED_LINES:
        return None
    rows: list[ComparedLine] = []
    for kind, start, end, from_other, to_other in SequenceMatcher(None, one, other).get_opcodes():
        rows += [
            ComparedLine(
                one[start + index] if start + index < end else None,
                other[from_other + index] if from_other + index < to_other else None,
                kind != "equal",
            )
            for index in range(max(end - start, to_other - from_other))
        ]
    return rows
