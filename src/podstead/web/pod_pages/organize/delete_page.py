"""``/.pages/delete/<path>``: what goes, and the question whether it should."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ResourcePath, is_container
from podstead.web.browsers import json_response
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.organize.selection import (
    NothingSelected,
    Organizer,
    Selection,
    problem_text,
    read_persons_selection,
)
from podstead.web.response import Response
from podstead.web.routes import REST, route

add_notices(
    Tone.DONE,
    deleted=N_("%(subject)s was deleted."),
    deleted_several=N_("What you selected was deleted."),
)


@dataclass(frozen=True, slots=True)
class DeletePage:
    """Asks before it deletes."""

    site: Site
    organizer: Organizer

    @route(addresses.DELETE + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        try:
            selection = await read_persons_selection(page)
        except NothingSelected:
            return self._back(page.target, Notice("nothing-selected"))
        return await self._question(page, selection, [])

    @route(addresses.DELETE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, BadRequest."""
        try:
            selection = await read_persons_selection(page)
        except NothingSelected:
            return self._back(page.target, Notice("nothing-selected"))
        if not selection.text("confirm"):
            return await self._question(page, selection, [])
        done: list[str] = []
        failed: list[tuple[str, str]] = []
        for item in selection.items:
            request = page.operation("DELETE", item.path)
            request.operation = replace(request.operation, whole_tree=is_container(item.path))
            try:
                await self.organizer.resources.handle(request)
            except RequestRefused as error:
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
            Notice("deleted", selection.items[0].name) if only_one else Notice("deleted-several")
        )
        return self._back(selection.folder, notice)

    def _back(self, folder: ResourcePath, notice: Notice) -> Response:
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
            failed=[(shown_name(ResourcePath(path)), message) for path, message in failed],
            folder=selection.folder,
            shown_name=shown_name,
        )
