"""``/.pages/move/<path>`` and ``/.pages/copy/<path>``: a folder to move or copy to."""

from dataclasses import dataclass
from itertools import count
from typing import Final

from msgspec.structs import replace

from podstead.core import errors, identifiers
from podstead.wac.modes import Mode
from podstead.web.browsers import json_response
from podstead.web.files import organize
from podstead.web.pages.addresses import (
    COPY,
    FILES,
    MOVE,
    Crumb,
    breadcrumb,
    files_url,
    is_for_apps,
    shown_name,
)
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.resource_endpoint import destination_path
from podstead.web.response import Response
from podstead.web.routes import REST, route

MAX_SHOWN_FOLDERS: Final = 500
_MEMBERS_AT_ONCE: Final = 500
_MAX_MEMBERS_READ: Final = 20_000
_MAX_NUMBER: Final = 100

add_flash_messages(
    Tone.DONE,
    moved=N_("%(subject)s was moved here."),
    moved_several=N_("What you selected was moved here."),
    copied=N_("%(subject)s was copied here."),
    copied_several=N_("What you selected was copied here."),
)


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folder that is shown as a destination."""

    path: identifiers.ResourcePath
    breadcrumb: list[Crumb]
    folders: list[organize.Item]
    used_by_apps: list[organize.Item]
    """Folders of a storage that people rarely open."""
    more: bool
    may_add: bool


def _moves(page: PageRequest) -> bool:
    return page.request.path.startswith(f"{MOVE}/")


@dataclass(frozen=True, slots=True)
class TransferPage:
    """Shows folders, one after another, until the person chooses one."""

    site: Site
    organizer: organize.Organizer

    @route(MOVE + REST, "GET", "POST")
    @route(COPY + REST, "GET", "POST")
    async def respond(self, page: PageRequest) -> Response:
        try:
            selection = await organize.read_persons_selection(page)
        except organize.NothingSelected:
            return self.site.see_other(files_url(page.target), FlashMessage("nothing-selected"))
        try:
            to = self._chosen(page, selection)
        except errors.RequestRefused as error:
            if not page.wants_page:
                raise
            return await self._choice(
                page, selection, selection.folder, organize.problem_text(error)
            )
        if page.request.method == "POST" and selection.text("go"):
            return await self._carry_out(page, selection, to)
        return await self._choice(page, selection, to)

    def _chosen(self, page: PageRequest, selection: organize.Selection) -> identifiers.ResourcePath:
        """The folder that the person looks at or has chosen. Raises BadRequest and others."""
        typed = selection.text("address").strip() if selection.text("show") else ""
        text = typed or selection.text("open") or selection.text("to")
        if not text:
            return selection.folder
        # Addresses are copied from anywhere, also from the pages.
        text = text.removeprefix(self.site.base_url).removeprefix(FILES)
        path = destination_path(text, base_url=self.site.base_url, host=page.request.host)
        if not identifiers.is_container(path):
            path = identifiers.parse_path(f"{path}/".encode("ascii"))
        return path

    # --- doing it -------------------------------------------------------------------------

    async def _carry_out(
        self, page: PageRequest, selection: organize.Selection, to: identifiers.ResourcePath
    ) -> Response:
        keeps_both = selection.text("conflict") != "skip"
        done: list[str] = []
        failed: list[tuple[organize.Item, str]] = []
        for item in selection.items:
            try:
                done.append(await self._transfer(page, item.path, to, keeps_both=keeps_both))
            except errors.RequestRefused as error:
                failed.append((item, organize.problem_text(error)))
        if not page.wants_page:
            failures = [{"path": item.path, "message": message} for item, message in failed]
            return json_response(409 if failed else 200, {"done": done, "failed": failures})
        if failed:
            left = tuple(item for item, _ in failed)
            rest = organize.Selection(selection.place, left, selection.names, selection.fields)
            problem = "\n".join(f"{item.name}: {message}" for item, message in failed)
            return await self._choice(page, rest, to, problem, status=409)
        name = "moved" if _moves(page) else "copied"
        if len(selection.items) == 1:
            notice = FlashMessage(name, selection.items[0].name)
        else:
            notice = FlashMessage(f"{name}-several")
        return self.site.see_other(files_url(to), notice)

    async def _transfer(
        self,
        page: PageRequest,
        source: identifiers.ResourcePath,
        to: identifiers.ResourcePath,
        *,
        keeps_both: bool,
    ) -> identifiers.ResourcePath:
        """Copy or move one resource; its new path. Raises RequestRefused."""
        for number in count(1):
            destination = identifiers.ResourcePath(
                to + _numbered(identifiers.segment_name(source), number)
            )
            if destination == source:
                if not _moves(page) and keeps_both:
                    continue
                raise errors.ForbiddenDestination(_("It is in this folder already."))
            request = page.operation("MOVE" if _moves(page) else "COPY", source)
            request.operation = replace(request.operation, destination=destination, overwrite=False)
            try:
                await self.organizer.resources.handle(request)
            except errors.PreconditionFailed:
                if not keeps_both or number >= _MAX_NUMBER:
                    raise
            else:
                return destination
        raise AssertionError

    # --- choosing -------------------------------------------------------------------------

    async def _choice(
        self,
        page: PageRequest,
        selection: organize.Selection,
        to: identifiers.ResourcePath,
        problem: str | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        contents = await self.organizer.contents_of(page, selection)
        folder = None
        try:
            folder = await self._folder(page, to, selection)
        except (
            errors.AccessDenied,
            errors.NotAuthenticated,
            errors.NotFound,
            errors.BadRequest,
        ) as error:
            problem = problem or organize.problem_text(error)
        moves = _moves(page)
        return self.site.page(
            page,
            "organize/transfer.html",
            status=status or (409 if problem else 200),
            target=selection.place,
            breadcrumb=breadcrumb(selection.folder),
            selection=selection,
            moves=moves,
            contents=contents,
            folder=folder,
            from_folder=selection.folder,
            pods=page.person.pods if page.person else (),
            problem=problem,
            action=page.request.path,
            links=await self.organizer.links_to(page, selection) if moves else None,
            shown_name=shown_name,
        )

    async def _folder(
        self, page: PageRequest, path: identifiers.ResourcePath, selection: organize.Selection
    ) -> _Folder:
        request = page.operation("GET", path)
        sort_key = name_sort_key()
        taken = {item.path for item in selection.items}
        folders: list[organize.Item] = []
        after, read, more = None, 0, True
        while more and len(folders) <= MAX_SHOWN_FOLDERS and read < _MAX_MEMBERS_READ:
            listed = await self.organizer.resources.members(
                request, after=after, limit=_MEMBERS_AT_ONCE
            )
            folders += (
                organize.Item(member.path, shown_name(member.path), is_container=True)
                for member in listed.members
                if member.kind.is_container and member.path not in taken
            )
            read += len(listed.members)
            more = len(listed.members) == _MEMBERS_AT_ONCE
            after = listed.members[-1].path if listed.members else None
        grant = request.grant
        shown = sorted(folders[:MAX_SHOWN_FOLDERS], key=lambda item: sort_key(item.name))
        used_by_apps: list[organize.Item] = []
        if identifiers.storage_root(path) == path:
            used_by_apps = [each for each in shown if is_for_apps(each.path)]
            shown = [each for each in shown if not is_for_apps(each.path)]
        return _Folder(
            path,
            breadcrumb(path),
            shown,
            used_by_apps,
            more or len(folders) > MAX_SHOWN_FOLDERS,
            may_add=grant is not None and (grant.allows(Mode.APPEND)),
        )


def _numbered(name: str, number: int) -> str:
    """A member's name with a number before its extension, for the second and further ones."""
    if number == 1:
        return name
    slash = "/" if name.endswith("/") else ""
    stem, dot, extension = name.removesuffix("/").rpartition(".")
    if not dot or not stem or slash:
        stem, dot, extension = name.removesuffix("/"), "", ""
    return f"{stem}{identifiers.encode_segment(f' ({number})'.encode())}{dot}{extension}{slash}"
