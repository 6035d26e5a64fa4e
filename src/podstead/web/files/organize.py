"""``/.pages/rename``, ``/.pages/delete`` and ``/.pages/zip``: changes of the names of files and
folders, and what becomes of them. The resources that such a page is about are selected in a
container.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from podstead.core import errors, header_fields, identifiers
from podstead.resources.archives import Archives
from podstead.resources.incoming_links import IncomingLinks, LinkingDocument
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.web.browsers import VARY_BY_COOKIE, json_response
from podstead.web.codes import WebCodes
from podstead.web.errors import status_of
from podstead.web.forms import FORM_TYPE, Fields, only, read_form
from podstead.web.pages import addresses, rendering
from podstead.web.pages.addresses import breadcrumb, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import NO_STORE, Response, content_response
from podstead.web.routes import REST, route

MAX_SELECTED: Final = 1000
MAX_SEARCHED: Final = 200
"""How many documents are searched for links before a page is shown."""

_MAX_ITEMS_WITH_LINKS: Final = 10

add_flash_messages(Tone.PROBLEM, nothing_selected=N_("Select something first."))


class NothingSelected(errors.BadRequest):
    """A list was sent without a tick."""


@dataclass(frozen=True, slots=True)
class Item:
    """A resource that something is done with."""

    path: identifiers.ResourcePath
    name: str
    is_container: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """The resources, and the fields that were sent with them.

    ``names`` are the fields that select members of the container ``place``; without any, the
    selection is ``place`` itself.
    """

    place: identifiers.ResourcePath
    items: tuple[Item, ...]
    names: tuple[str, ...]
    fields: Fields

    @property
    def folder(self) -> identifiers.ResourcePath:
        """The container that the selected resources are in."""
        return (
            self.place
            if self.names
            else identifiers.parent_container(self.place) or identifiers.ROOT
        )

    @property
    def only(self) -> Item:
        """The resource, if it is only one. Raises BadRequest."""
        if len(self.items) != 1:
            raise errors.BadRequest(WebCodes.SELECT_ONE)
        return self.items[0]

    def text(self, name: str) -> str:
        """A field, empty if it is missing. Raises BadRequest."""
        return only(self.fields, name) or ""


async def read_persons_selection(page: PageRequest) -> Selection:
    """As :func:`read_selection`, for pages that take work which strangers must not cause. Raises
    NotAuthenticated as well."""
    page.signed_in()
    return await read_selection(page)


async def read_selection(page: PageRequest) -> Selection:
    """What a page is about; the token of a form is checked.

    Raises NothingSelected, BadRequest, NotFound, WrongFormToken.
    """
    fields: Fields = page.query
    if page.request.method == "POST":
        fields = await _read_fields(page)
    place = page.target
    names = tuple(dict.fromkeys(fields.get("name", ())))
    if "selection" in fields and not names:
        raise NothingSelected(WebCodes.NOTHING_SELECTED)
    if names and not identifiers.is_container(place):
        raise errors.BadRequest(WebCodes.SELECTION_NEEDS_FOLDER)
    paths = [_member(place, name) for name in names] or [place]
    items = tuple(Item(path, shown_name(path), identifiers.is_container(path)) for path in paths)
    return Selection(place, items, names, fields)


async def _read_fields(page: PageRequest) -> Fields:
    content_type = (page.request.fields.get(b"content-type") or "").partition(";")[0]
    if content_type.strip().lower() == FORM_TYPE:
        fields = await read_form(page.request, max_fields=MAX_SELECTED + 20)
        page.check_token(only(fields, "csrf_token"))
        return fields
    sent = (await page.form()).fields
    return {
        name: [each for each in value if isinstance(each, str)]
        if isinstance(value, list)
        else [str(value)]
        for name, value in sent.items()
        if value not in (None, "", False)
    }


def _member(place: identifiers.ResourcePath, name: str) -> identifiers.ResourcePath:
    try:
        path = identifiers.parse_path((place + name).encode("ascii"))
    except UnicodeEncodeError as error:
        raise errors.BadRequest("The name of a selected member must be percent-encoded") from error
    if path == place or identifiers.parent_container(path) != place:
        raise errors.BadRequest(WebCodes.SELECTION_ELSEWHERE)
    return path


def member_path(
    folder: identifiers.ResourcePath, name: str, *, container: bool
) -> identifiers.ResourcePath:
    """The path of a member that a person has named. Raises BadRequest for a name that cannot be
    one."""
    encoded = name.strip().encode("utf-8", "replace")
    if not encoded or encoded in (b".", b".."):
        raise errors.BadRequest(_("Type a name."))
    if b"/" in encoded or any(byte < 0x20 or byte == 0x7F for byte in encoded):
        raise errors.BadRequest(_("A name cannot contain a slash or a line break."))
    if len(encoded) > header_fields.MAX_NAME_BYTES:
        raise errors.BadRequest(_("This name is too long."))
    segment = identifiers.encode_segment(encoded) + ("/" if container else "")
    return identifiers.parse_path((folder + segment).encode("ascii"))


def problem_text(error: errors.RequestRefused) -> str:
    """Why something was not done, in the language of the page."""
    match error:
        case errors.PreconditionFailed():
            return _("There is already something with this name.")
        case errors.AccessDenied() | errors.NotAuthenticated() if type(error) in (
            errors.AccessDenied,
            errors.NotAuthenticated,
        ):
            return _("You do not have the access that this needs.")
        case errors.NotFound():
            return _("It does not exist any more.")
        case errors.QuotaExceeded():
            return _("There is not enough room in the storage.")
        case _:
            return rendering.refusal_text(error)


@dataclass(frozen=True, slots=True)
class LinkingDocuments:
    """The documents that link to the selected resources; ``complete`` if all were searched."""

    documents: tuple[LinkingDocument, ...]
    complete: bool
    after: str = ""


@dataclass(frozen=True, slots=True)
class SelectionTotals:
    """How much the selected resources contain."""

    files: int
    folders: int
    size_bytes: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Organizer:
    """What the pages have in common."""

    resources: ResourceService
    links: IncomingLinks

    async def links_to(self, page: PageRequest, selection: Selection) -> LinkingDocuments:
        """The documents that link to the selected resources, as far as they were searched.

        Only owners continue a search: it continues after a document that others might not even
        know of.
        """
        found: dict[identifiers.ResourcePath, LinkingDocument] = {}
        after = None
        pods = page.person.pods if page.person else ()
        may_continue = len(selection.items) == 1 and selection.place.startswith(tuple(pods))
        if may_continue and (text := selection.text("links_after")):
            after = identifiers.parse_path(text.encode("ascii", "replace"))
        complete = len(selection.items) <= _MAX_ITEMS_WITH_LINKS
        taken = {item.path for item in selection.items}
        for item in selection.items[:_MAX_ITEMS_WITH_LINKS]:
            links = await self.links.find(
                page.identity, None, item.path, after=after, max_documents=MAX_SEARCHED
            )
            found |= {each.path: each for each in links.documents if each.path not in taken}
            complete = complete and links.after is None
            after = links.after if may_continue else None
        return LinkingDocuments(tuple(found.values()), complete, after or "")

    async def contents_of(self, page: PageRequest, selection: Selection) -> SelectionTotals:
        """How much the selected resources contain. Raises RequestRefused."""
        files = folders = size_bytes = 0
        complete = True
        for item in selection.items:
            found = await self.resources.contents(page.operation("GET", item.path))
            files, folders = files + found.documents, folders + found.containers
            size_bytes += found.size_bytes
            complete = complete and found.complete
        return SelectionTotals(files, folders, size_bytes, complete)


def name_of(path: identifiers.ResourcePath) -> str:
    """The field ``name`` that selects a member."""
    return identifiers.segment_name(path)


add_flash_messages(Tone.DONE, renamed=N_("It is now called %(subject)s."))


@dataclass(frozen=True, slots=True)
class RenamePage:
    """A form with the present name."""

    site: Site
    organizer: Organizer

    @route(addresses.RENAME + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        selection = await read_persons_selection(page)
        await self.organizer.resources.contents(page.operation("GET", selection.only.path))
        return await self._form(page, selection, selection.only.name)

    @route(addresses.RENAME + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        selection = await read_persons_selection(page)
        source, name = selection.only.path, selection.text("new_name").strip()
        folder = identifiers.parent_container(source)
        try:
            if folder is None or identifiers.storage_root(source) == source:
                raise errors.Conflict(_("A storage cannot be renamed."))
            destination = member_path(folder, name, container=identifiers.is_container(source))
            if destination != source:
                request = page.operation("MOVE", source)
                request.operation = replace(
                    request.operation, destination=destination, overwrite=False
                )
                await self.organizer.resources.handle(request)
        except errors.RequestRefused as error:
            if not page.wants_page:
                raise
            status, _reason = status_of(error)
            return await self._form(page, selection, name, error=problem_text(error), status=status)
        if not page.wants_page:
            return json_response(200, {"path": destination})
        return self.site.see_other(files_url(folder), FlashMessage("renamed", name))

    async def _form(
        self,
        page: PageRequest,
        selection: Selection,
        name: str,
        *,
        error: str | None = None,
        status: int = 200,
    ) -> Response:
        target = selection.only.path
        return self.site.page(
            page,
            "organize/rename.html",
            status=status,
            target=target,
            breadcrumb=breadcrumb(target),
            old_name=shown_name(target),
            name=name,
            error=error,
            folder=selection.folder,
            links=await self.organizer.links_to(page, selection),
            selection=selection,
            shown_name=shown_name,
        )


add_flash_messages(
    Tone.DONE,
    deleted=N_("%(subject)s was deleted."),
    deleted_several=N_("What you selected was deleted."),
)


@dataclass(frozen=True, slots=True)
class DeletePage:
    """Asks before it deletes. ``kept_days`` says for how many days what is deleted at a path can be
    restored."""

    site: Site
    organizer: Organizer
    kept_days: Callable[[identifiers.ResourcePath], int]

    @route(addresses.DELETE + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        try:
            selection = await read_persons_selection(page)
        except NothingSelected:
            return self._back(page.target, FlashMessage("nothing-selected"))
        return await self._question(page, selection, [])

    @route(addresses.DELETE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        try:
            selection = await read_persons_selection(page)
        except NothingSelected:
            return self._back(page.target, FlashMessage("nothing-selected"))
        if not selection.text("confirm"):
            return await self._question(page, selection, [])
        done: list[str] = []
        failed: list[tuple[str, str]] = []
        for item in selection.items:
            request = page.operation("DELETE", item.path)
            request.operation = replace(
                request.operation, whole_tree=identifiers.is_container(item.path)
            )
            try:
                await self.organizer.resources.handle(request)
            except errors.RequestRefused as error:
                failed.append((item.path, problem_text(error)))
            else:
                done.append(item.path)
        if not page.wants_page:
            return json_response(
                409 if failed else 200,
                {"done": done, "failed": [{"path": p, "message": m} for p, m in failed]},
            )
        if failed:
            return await self._question(page, selection, failed)
        only_one = len(selection.items) == 1
        notice = (
            FlashMessage("deleted", selection.items[0].name)
            if only_one
            else FlashMessage("deleted-several")
        )
        return self._back(selection.folder, notice)

    def _back(self, folder: identifiers.ResourcePath, notice: FlashMessage) -> Response:
        return self.site.see_other(files_url(folder), notice)

    async def _question(
        self, page: PageRequest, selection: Selection, failed: list[tuple[str, str]]
    ) -> Response:
        left = {path for path, _ in failed}
        if failed:
            items = tuple(item for item in selection.items if item.path in left)
            selection = Selection(selection.place, items, selection.names, selection.fields)
        return self.site.page(
            page,
            "organize/delete.html",
            status=409 if failed else 200,
            target=selection.place,
            breadcrumb=breadcrumb(selection.folder),
            selection=selection,
            contents=await self.organizer.contents_of(page, selection),
            links=await self.organizer.links_to(page, selection),
            failed=[
                (shown_name(identifiers.ResourcePath(path)), message) for path, message in failed
            ],
            kept_days=self.kept_days(selection.place),
            folder=selection.folder,
            shown_name=shown_name,
        )


@dataclass(frozen=True, slots=True)
class ArchiveDownload:
    """Sends archives."""

    archives: Archives

    @route(addresses.ZIP + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        return await self._send(page)

    @route(addresses.ZIP + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """As :meth:`get`, for more selected members than an address has room for. Raises
        WrongFormToken as well."""
        return await self._send(page)

    async def _send(self, page: PageRequest) -> Response:
        selection = await read_selection(page)
        request = page.operation("GET", selection.place)
        only = {item.path for item in selection.items} if selection.names else ()
        return await send_archive(self.archives, page, request, only)


async def send_archive(
    archives: Archives,
    page: PageRequest,
    request: ResourceRequest,
    only: Collection[identifiers.ResourcePath] = (),
) -> Response:
    """The archive of a container, or of some of its members; raises as :meth:`Archives.open`."""
    archive = await archives.open(request, only=only, requester=page.requester)
    name = archive.name.encode("ascii", "replace").decode().replace("?", "_")
    disposition = (
        f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(archive.name, safe='')}"
    )
    return content_response(
        archive.chunks,
        "application/zip",
        method=page.request.method,
        headers=[
            (b"content-disposition", disposition.encode("ascii")),
            (b"content-security-policy", b"sandbox; default-src 'none'"),
            NO_STORE,
        ],
        vary=VARY_BY_COOKIE,
    )
