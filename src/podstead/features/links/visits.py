"""The pages that a sharing link opens, which need neither an account nor scripts.

``/.links/open/<secret>`` leads on at once: the secret goes into a cookie for this link, and all
other addresses have the public ID only. Logs leave out what is behind ``/.links/open``, and no
response of this server lets a browser send a Referer.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from podstead.core import errors
from podstead.core.conditional import Conditions
from podstead.core.identifiers import ResourcePath, ancestors, is_container, parent_container
from podstead.core.media_types import TURTLE, essence
from podstead.core.operation import InMemoryBody
from podstead.features.links import sharing_links
from podstead.idp.passwords import PasswordCheck, PasswordHasher, normalized_password
from podstead.rdf.errors import MalformedRdf
from podstead.resources.archives import Archives
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.web.body import RecheckedBody
from podstead.web.codes import WebCodes
from podstead.web.files import documents
from podstead.web.files.content import RawContent
from podstead.web.files.editing import MAX_EDITED_BYTES, as_written, problem_at
from podstead.web.files.members import MAX_SORTED, Member, MemberLists, Sorting, kind_name
from podstead.web.files.organize import send_archive
from podstead.web.files.uploads import member, type_of
from podstead.web.forms import FormPart, read_parts
from podstead.web.limits import address_key
from podstead.web.pages.addresses import shown_name
from podstead.web.pages.cookies import Cookies, FlashMessage, Tone, add_flash_messages
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest, Person, SignedInBy
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.routes import REST, is_of_service, rest_of_path, route

OPEN: Final = "/.links/open"
AT: Final = "/.links/at"
ROWS: Final = 500
"""How many members one page of a folder lists."""
GUESSES: Final = 10
GUESSES_PERIOD_S: Final = 900
"""How many passwords, right or wrong, one address may try for one link in this time."""
OPENINGS_PER_MINUTE: Final = 60
"""How often one address may open one link."""
_PENDING: Final = "secret."
"""What the cookie begins with before there is a visit; the secret follows."""
_ZIP, _THUMBNAIL = "zip", "thumbnail"
_VIEW, _RAW, _OPEN, _ADD, _SAVE, _REPLACE = "view", "raw", "open", "add", "save", "replace"
_GONE: Final = (errors.NotAuthenticated, errors.AccessDenied, errors.NotFound)

add_flash_messages(
    Tone.DONE,
    file_replaced=N_("%(subject)s was replaced."),
)


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """What an address below ``/.links/at`` is about: a link, what to do, and where in it."""

    link_id: str
    action: str
    rest: str

    @classmethod
    def of(cls, path: ResourcePath) -> "LinkAddress":
        """Raises NotFound."""
        parts = rest_of_path(path).split("/", 3)
        if not path.startswith(f"{AT}/") or len(parts) < 3 or not parts[1]:
            raise errors.NotFound(WebCodes.NO_SUCH_PAGE)
        return cls(parts[1], parts[2], parts[3] if len(parts) > 3 else "")

    def url(self, action: str, rest: str | None = None) -> str:
        """The address for an action here, or elsewhere in what is shared."""
        return f"{AT}/{self.link_id}/{action}/{self.rest if rest is None else rest}"

    def target(self, link: sharing_links.OpenLink) -> ResourcePath:
        """The resource. Raises NotFound for one that the link is not for."""
        target = ResourcePath(link.path + self.rest)
        if self.rest and not (is_container(link.path) and link.covers(target)):
            raise errors.NotFound
        return target


class _Row(NamedTuple):
    """One of what a folder has; ``picture`` is the address of a thumbnail."""

    name: str
    url: str
    kind: Kind
    picture: str | None
    is_folder: bool
    size_bytes: int
    changed_ms: int


class LinkVisitors:
    """Finds the link that a request comes from, as :class:`People` finds persons."""

    def __init__(self, links: sharing_links.SharingLinks, *, secure: bool) -> None:
        self._links = links
        self._secure = secure

    def cookie(self, request: Request, link_id: str) -> str:
        """The value of the cookie of a link; empty if there is none."""
        return self._cookies(link_id).value(request, _cookie_name(link_id)) or ""

    def set_cookie(self, link_id: str, value: str) -> HeaderField:
        """Let the browser send the value with requests to the pages of this link only."""
        return self._cookies(link_id).set(_cookie_name(link_id), value, sharing_links.VISIT_S)

    async def person(self, request: Request) -> Person | None:
        """The agent of the link; ``None`` if the link has not been opened, or cannot be used any
        more. Raises StorageError."""
        try:
            link_id = LinkAddress.of(request.path).link_id
        except errors.NotFound:
            return None
        visit = self.cookie(request, link_id)
        if not visit or not self._links.is_visit(link_id, visit):
            return None
        found = await self._links.find(link_id)
        if found is None:
            return None
        return Person(
            identity=self._links.identity_of(found),
            name=found.link.name,
            csrf_token=sharing_links.link_id_of(f"form {visit}"),
            signed_in_by=SignedInBy.ELSEWHERE,
        )

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:  # noqa: ARG002
        """Nothing: a link is not signed in to."""
        return ()

    def _cookies(self, link_id: str) -> Cookies:
        return Cookies(self._secure, f"{AT}/{link_id}/")


def _cookie_name(link_id: str) -> str:
    return f"podstead-link-{link_id}"


@dataclass(frozen=True, slots=True)
class LinkPages:
    """What a link opens. All that is read and written passes the gate as the agent of the link."""

    site: Site
    links: sharing_links.SharingLinks
    visitors: LinkVisitors
    resources: ResourceService
    lists: MemberLists
    contents: documents.DocumentContents
    previews: documents.ContentPreviews
    raw: RawContent
    archives: Archives
    passwords: PasswordHasher

    @route(OPEN + "/{secret}", "GET")
    async def opened(self, page: PageRequest) -> Response:
        """Leads to the page of the link, with the cookie. Raises RateLimited, StorageError."""
        secret = page.segment
        link_id = sharing_links.link_id_of(secret)
        address = LinkAddress(link_id, _VIEW, "").url(_VIEW)
        found = await self.links.find(link_id)
        if found is None or page.request.method == "HEAD":
            return self.site.see_other(address)
        if found.needs_form:
            cookie = self.visitors.set_cookie(link_id, _PENDING + secret)
            return self.site.see_other(address, None, cookie)
        return await self._visit(page, found)

    @route(AT + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        place = LinkAddress.of(page.request.path)
        link = _link_of(page)
        if link is None:
            return await self._start(page, place)
        try:
            target = place.target(link)
            if place.action == _VIEW:
                return await self._shown(page, place, link, target)
            if place.action == _RAW and link.kind != sharing_links.ADD:
                return await self.raw.send(page, target, leads_on=False)
            if place.action == _THUMBNAIL and link.kind != sharing_links.ADD:
                return await self.previews.thumbnail(page, target)
            if place.action == _ZIP and link.kind != sharing_links.ADD and is_container(target):
                return await send_archive(self.archives, page, page.operation("GET", target))
            raise errors.NotFound
        except errors.RequestRefused as error:
            return self._refused(page, error)

    @route(AT + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        place = LinkAddress.of(page.request.path)
        link = _link_of(page)
        if link is None:
            return await self._start(page, place)
        page.request = replace(page.request, body=self._rechecked(page))
        try:
            target = place.target(link)
            if place.action == _ADD and is_container(target):
                return await self._added(page, place, link, target)
            if place.action == _SAVE and link.kind == sharing_links.EDIT:
                return await self._saved(page, place, link, target)
            if place.action == _REPLACE and link.kind == sharing_links.EDIT:
                return await self._replaced(page, place, target)
            raise errors.NotFound
        except errors.RequestRefused as error:
            return self._refused(page, error)

    # Opening

    async def _start(self, page: PageRequest, place: LinkAddress) -> Response:
        """The form before a link is opened, or its answer."""
        value = self.visitors.cookie(page.request, place.link_id)
        is_known = value.startswith(_PENDING) and (
            sharing_links.link_id_of(value.removeprefix(_PENDING)) == place.link_id
        )
        found = await self.links.find(place.link_id) if is_known else None
        if found is None:
            return self._problem(page)
        if page.request.method != "POST" or place.action != _OPEN:
            return self._form(page, found)
        password = (await page.form()).text("password")
        if found.link.password_hash is not None and not await self._is_right(
            page, found, found.link.password_hash, password
        ):
            return self._form(page, found, _("This is not the password."))
        try:
            return await self._visit(page, found)
        except sharing_links.UsedUp:
            return self._problem(page)

    async def _is_right(
        self, page: PageRequest, found: sharing_links.OpenLink, password_hash: str, password: str
    ) -> bool:
        """Raises RateLimited for an address that has tried too often at this link."""
        network = address_key(page.request.client_address)
        # Counted first, so that guesses that are sent at once get no more answers than others.
        key = f"sharing-link-password:{found.link_id}:{network}"
        await self._take(key, GUESSES, GUESSES_PERIOD_S)
        normal = normalized_password(password)
        if normal is None:
            return False
        checked = await self.passwords.verify(password_hash, normal, network=network)
        return checked is not PasswordCheck.WRONG

    async def _visit(self, page: PageRequest, found: sharing_links.OpenLink) -> Response:
        """Begin a visit. Raises UsedUp, RateLimited."""
        network = address_key(page.request.client_address)
        await self._take(f"sharing-link:{found.link_id}:{network}", OPENINGS_PER_MINUTE, 60)
        await self.links.count_use(found)
        cookie = self.visitors.set_cookie(found.link_id, self.links.new_visit(found.link_id))
        return self.site.see_other(LinkAddress(found.link_id, _VIEW, "").url(_VIEW), None, cookie)

    async def _take(self, key: str, capacity: int, period_s: int) -> None:
        wait_s = await self.links.records.take(key, capacity=capacity, period_s=period_s)
        if wait_s is not None:
            raise errors.RateLimited(retry_after_s=wait_s)

    def _form(
        self, page: PageRequest, found: sharing_links.OpenLink, error: str | None = None
    ) -> Response:
        return self.site.page(
            page,
            "links/start.html",
            status=200 if error is None else 403,
            offers_sign_in=False,
            action=LinkAddress(found.link_id, _OPEN, "").url(_OPEN),
            has_password=found.link.password_hash is not None,
            error=error,
        )

    def _problem(self, page: PageRequest, error: errors.RequestRefused | None = None) -> Response:
        """The link is not known, has ended, or is not for this. Why is not told."""
        return self.site.page(
            page,
            "links/problem.html",
            status=404 if error is None or isinstance(error, errors.NotFound) else 403,
            offers_sign_in=False,
            is_link=error is None or isinstance(error, errors.NotAuthenticated),
        )

    def _refused(self, page: PageRequest, error: errors.RequestRefused) -> Response:
        """Raises all but what a page of the link says."""
        if isinstance(error, _GONE):
            return self._problem(page, error)
        page.person = None  # other pages about refusals name the person who is signed in
        if isinstance(error, errors.QuotaExceeded):
            raise errors.Conflict(_("There is no room left")) from error
        raise error

    def _rechecked(self, page: PageRequest) -> RecheckedBody:
        request = page.request

        async def check_again() -> None:
            if await self.visitors.person(request) is None:
                raise errors.NotAuthenticated

        return RecheckedBody(request.body, check_again=check_again, clock=self.links.records.clock)

    # Showing

    async def _shown(
        self,
        page: PageRequest,
        place: LinkAddress,
        link: sharing_links.OpenLink,
        target: ResourcePath,
        *,
        status: int = 200,
        edited: Mapping[str, object] | None = None,
        added: Sequence[tuple[str, str]] | None = None,
    ) -> Response:
        values = {
            "target": target,
            "name": shown_name(target),
            "crumbs": _crumbs(place, link, target),
            "place": place,
            "owner": shown_name(ResourcePath(link.owner)),
            "owner_web_id": f"{self.site.base_url}{link.owner}#me",
            "ends_ms": None if link.ends_s is None else link.ends_s * 1000,
            "may_add": is_container(target)
            and link.kind in (sharing_links.ADD, sharing_links.EDIT),
            "added": added,
        }
        if is_container(target):
            listed = (
                await self._members(page, place, link, target)
                if link.kind != sharing_links.ADD
                else None
            )
            return self._page(page, "links/folder.html", status, listed=listed, **values)
        head = page.operation("HEAD", target)
        stored = (await self.resources.handle(head)).metadata
        media_type = TURTLE if stored is None else essence(stored.content_type)
        kind = kind_of(media_type, shown_name(target))
        may_edit = link.kind == sharing_links.EDIT
        is_editing = may_edit and kind.is_text and (page.query_text("view") == "edit" or edited)
        shown: documents.View | None
        if is_editing:
            read = await self.contents.text(page, target)
            shown = documents.View("", {**documents.editor_values(read), **(edited or {})})
        else:
            document = documents.ShownDocument(target, kind, media_type, shown_name(target))
            shown = await self.previews.view(page, document, documents.PREVIEW)
        return self._page(
            page,
            "links/document.html",
            status,
            **values,
            **_facts(stored, kind),
            kind=kind,
            raw=place.url(_RAW),
            save_url=place.url(_SAVE),
            replace_url=place.url(_REPLACE),
            view="edit" if is_editing else documents.PREVIEW,
            may_edit=may_edit,
            may_edit_text=may_edit and kind.is_text,
            beside=await self._beside(page, place, link, target)
            if kind is Kind.IMAGE and target != link.path
            else (None, None),
            preview=shown and shown.template,
            **({} if shown is None else shown.values),
        )

    def _page(self, page: PageRequest, template: str, status: int, **values: Any) -> Response:  # noqa: ANN401 - of templates
        return self.site.page(page, template, status=status, offers_sign_in=False, **values)

    async def _members(
        self,
        page: PageRequest,
        place: LinkAddress,
        link: sharing_links.OpenLink,
        target: ResourcePath,
    ) -> Mapping[str, object]:
        members, _request = await self.lists.read(page, target)
        start = page.query_text("from")
        first = min(int(start), MAX_SORTED) if start.isdecimal() and len(start) < 7 else 0
        every = members.sorted(Sorting()) if members.is_complete else members.all
        rows = [self._row(place, link, each) for each in every[first : first + ROWS]]
        pictures = sum(each.picture is not None for each in rows)
        more = f"?from={first + ROWS}" if first + ROWS < len(every) else None
        return {
            "rows": rows,
            "more": more,
            "in_tiles": pictures > sum(not each.is_folder for each in rows) / 2,
        }

    def _row(self, place: LinkAddress, link: sharing_links.OpenLink, member: Member) -> _Row:
        metadata, rest = member.metadata, member.path.removeprefix(link.path)
        picture = None if member.is_container else self.previews.picture(metadata)
        return _Row(
            member.name,
            place.url(_VIEW, rest),
            _kind_of(member),
            None if picture is None else f"{place.url(_THUMBNAIL, rest)}?v={metadata.version}",
            member.is_container,
            metadata.size_bytes,
            last_modified_ms(metadata),
        )

    async def _beside(
        self,
        page: PageRequest,
        place: LinkAddress,
        link: sharing_links.OpenLink,
        target: ResourcePath,
    ) -> Sequence[str | None]:
        """The addresses of the pictures before and after one in its folder. Raises
        ServerTrouble."""
        try:
            members, _request = await self.lists.read(page, parent_container(target) or target)
        except _GONE:  # the folder can have rules of its own
            return (None, None)
        every = members.sorted(Sorting()) if members.is_complete else members.all
        paths = [each.path for each in every if _kind_of(each) is Kind.IMAGE]
        if target not in paths:
            return (None, None)
        at = paths.index(target)
        beside = paths[at - 1] if at else None, paths[at + 1] if at + 1 < len(paths) else None
        return [each and place.url(_VIEW, each.removeprefix(link.path)) for each in beside]

    # Changing

    async def _added(
        self,
        page: PageRequest,
        place: LinkAddress,
        link: sharing_links.OpenLink,
        target: ResourcePath,
    ) -> Response:
        """Store the files of a form. A name that is taken gets a random beginning, so that nobody
        learns from it what is there. Each file is told what became of it."""
        ended: list[tuple[str, str]] = []
        async for part in _files(page):
            try:
                await self._post(page, target, part)
            except errors.NotAuthenticated:
                raise
            except errors.RequestRefused as error:
                no_room = isinstance(error, errors.QuotaExceeded)  # its text tells the quota
                text = _("There is no room left") if no_room else refusal_text(error)
                ended.append((part.filename or "", text))
            else:
                ended.append((part.filename or "", ""))
        return await self._shown(page, place, link, target, added=ended)

    async def _post(self, page: PageRequest, target: ResourcePath, part: FormPart) -> None:
        name = part.filename or ""
        # Of a whole folder, browsers send paths.
        path = member(target, name.rpartition("/")[2])
        if is_of_service(path):
            raise errors.Conflict(WebCodes.NAME_OF_SERVER)
        slug = path.removeprefix(target).encode()
        request = page.operation(
            "POST", target, body=part, content_type=type_of(path, part.content_type)
        )
        request.operation = replace(request.operation, slug=slug)
        await self.resources.handle(request)

    async def _saved(
        self,
        page: PageRequest,
        place: LinkAddress,
        link: sharing_links.OpenLink,
        target: ResourcePath,
    ) -> Response:
        """Store an edited text."""
        sent = await page.form(max_bytes=MAX_EDITED_BYTES)
        text = as_written(sent.text("text"), newline=sent.text("newline"))
        try:
            await self._put(page, target, InMemoryBody(text.encode()), sent.text("tag"))
        except errors.PreconditionFailed:
            edited: dict[str, object] = {"text": text, "editable": True, "is_outdated": True}
            return await self._shown(page, place, link, target, status=409, edited=edited)
        except MalformedRdf as error:
            edited = {
                "text": text,
                "tag": sent.text("tag"),
                "editable": True,
                "problem": problem_at(error, text),
            }
            return await self._shown(page, place, link, target, status=422, edited=edited)
        notice = FlashMessage("document-saved", shown_name(target))
        return self.site.see_other(place.url(_VIEW), notice)

    async def _replaced(
        self, page: PageRequest, place: LinkAddress, target: ResourcePath
    ) -> Response:
        """Store a file in place of the document."""
        async for part in _files(page):
            await self._put(page, target, part, "*", type_of(target, part.content_type))
            notice = FlashMessage("file-replaced", shown_name(target))
            return self.site.see_other(place.url(_VIEW), notice)
        return self.site.see_other(place.url(_VIEW), FlashMessage("nothing-uploaded"))

    async def _put(
        self,
        page: PageRequest,
        target: ResourcePath,
        body: InMemoryBody | FormPart,
        tag: str,
        content_type: str | None = None,
    ) -> None:
        if is_container(target) or not tag:
            raise errors.NotFound
        if content_type is None:
            stored = (await self.resources.handle(page.operation("HEAD", target))).metadata
            content_type = TURTLE if stored is None else stored.content_type
        request = page.operation("PUT", target, body=body, content_type=content_type)
        request.operation = replace(request.operation, conditions=Conditions(if_match=tag))
        await self.resources.handle(request)


async def _files(page: PageRequest) -> AsyncIterator[FormPart]:
    """The files of a form, whose token comes first."""
    is_checked = False
    async for part in read_parts(page.request):
        if part.filename is None:
            if part.name == "csrf_token":
                page.check_token(await part.text())
                is_checked = True
            continue
        if not is_checked:
            page.check_token(None)
        if part.filename:
            yield part


def _link_of(page: PageRequest) -> sharing_links.OpenLink | None:
    """The link that a page was requested with."""
    limit = None if page.person is None else page.person.identity.limit
    return limit if isinstance(limit, sharing_links.OpenLink) else None


def _crumbs(
    place: LinkAddress, link: sharing_links.OpenLink, target: ResourcePath
) -> Sequence[tuple[str, str]]:
    """The names and addresses of the folders from that of the link to the resource."""
    above = [each for each in reversed(ancestors(target)) if each.startswith(link.path)]
    return [
        (shown_name(each), place.url(_VIEW, each.removeprefix(link.path)))
        for each in above
        if is_container(link.path)
    ]


def _kind_of(member: Member) -> Kind:
    if member.is_container:
        return Kind.FOLDER
    return kind_of(essence(member.metadata.content_type), member.name)


def _facts(stored: Metadata | None, kind: Kind) -> Mapping[str, object]:
    return {
        "kind_name": kind_name(kind),
        "size_bytes": 0 if stored is None else stored.size_bytes,
        "modified_ms": None if stored is None else last_modified_ms(stored),
    }
