"""``/.pages/new/<container>``: new folders and documents, each from a form of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from podstead.rdf.graph import BlankNode, Dataset, Graph, Iri, Literal, Triple
from podstead.resources.service import ResourceService
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.response import Response
from podstead.web.routes import REST, route

_BOOKMARK: Final = "http://www.w3.org/2002/01/bookmark#"
_HTTP: Final = re.compile(r"https?://[^\s<>\"{}|\\^`/?#]+[^\s<>\"{}|\\^`]*", re.IGNORECASE)
_MAIL: Final = re.compile(r"[^\s<>\"{}|\\^`@:/?#%]+@[^\s<>\"{}|\\^`@:/?#%]+")
_TELEPHONE: Final = re.compile(r"\+?[0-9][0-9().\- ]*")

add_notices(
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


def _nothing(_sent: FormSubmission, _url: str) -> bytes:
    return b""


def _contact(sent: FormSubmission, url: str) -> bytes:
    contact = Iri(f"{url}#this")
    triples: list[Triple] = [
        (contact, Iri(vocab.RDF_TYPE), Iri(vocab.VCARD + "Individual")),
        (contact, Iri(vocab.VCARD + "fn"), Literal(sent.text("name").strip())),
    ]
    mail, telephone = sent.text("email").strip(), sent.text("telephone").strip()
    note = sent.text("note").strip()
    if mail and not _MAIL.fullmatch(mail):
        raise _Mistake("email", _("This is not an e-mail address."))
    if telephone and not _TELEPHONE.fullmatch(telephone):
        raise _Mistake("telephone", _("This is not a telephone number."))
    numbers = re.sub(r"[() .]", "", telephone)
    for value, name in (
        (f"mailto:{mail}" if mail else "", "hasEmail"),
        (f"tel:{numbers}" if numbers else "", "hasTelephone"),
    ):
        if value:
            node = BlankNode(name)
            triples += [
                (contact, Iri(vocab.VCARD + name), node),
                (node, Iri(vocab.VCARD + "value"), Iri(value)),
            ]
    if note:
        triples.append((contact, Iri(vocab.VCARD + "note"), Literal(note)))
    return _turtle(triples, url)


def _bookmark(sent: FormSubmission, url: str) -> bytes:
    address = sent.text("address").strip()
    if not _HTTP.fullmatch(address):
        raise _Mistake("address", _("This is not the address of a web page."))
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
        notice = self.site.cookies.set_notice(Notice(name, shown_name(path)))
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
