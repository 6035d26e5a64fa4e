"""``/.pages/rename/<path>``: another name for a file or folder."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from podstead.core.errors import Conflict, RequestRefused
from podstead.core.identifiers import is_container, parent_container, storage_root
from podstead.web.browsers import json_response
from podstead.web.errors import status_of
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.organize.selection import (
    Organizer,
    Selection,
    member_path,
    problem_text,
    read_persons_selection,
)
from podstead.web.response import Response
from podstead.web.routes import REST, route

add_notices(Tone.DONE, renamed=N_("It is now called %(subject)s."))


@dataclass(frozen=True, slots=True)
class RenamePage:
    """A form with the present name."""

    site: Site
    organizer: Organizer

    @route(addresses.RENAME + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        selection = await read_persons_selection(page)
        await self.organizer.resources.contents(page.operation("GET", selection.only.path))
        return await self._form(page, selection, selection.only.name)

    @route(addresses.RENAME + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, BadRequest."""
        selection = await read_persons_selection(page)
        source, name = selection.only.path, selection.text("new_name").strip()
        folder = parent_container(source)
        try:
            if folder is None or storage_root(source) == source:
                raise Conflict(_("A storage cannot be renamed."))
            destination = member_path(folder, name, container=is_container(source))
            if destination != source:
                request = page.operation("MOVE", source)
                request.operation = replace(
                    request.operation, destination=destination, overwrite=False
                )
                await self.organizer.resources.handle(request)
        except RequestRefused as error:
            if not page.wants_page:
                raise
            status, _reason = status_of(error)
            return await self._form(page, selection, name, error=problem_text(error), status=status)
        if not page.wants_page:
            return json_response(200, {"path": destination})
        return self.site.see_other(files_url(folder), Notice("renamed", name))

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
