"""The page about a container: what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import essence
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode
from podstead.web.pod_pages.addresses import files_url
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import Response

PAGE_MEMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member as the list shows it."""

    name: str
    address: str
    media_type: str
    is_container: bool
    size_bytes: int
    modified_ms: int


class ContainerPage:
    """Lists the members of a container."""

    def __init__(self, *, resources: ResourceService, renderer: PageRenderer) -> None:
        self._resources = resources
        self._renderer = renderer

    async def get(self, page: PageRequest, target: ResourcePath) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        request = page.operation("GET", target)
        after = page.query_text("after")
        listed = await self._resources.members(
            request, after=ResourcePath(target + after) if after else None, limit=PAGE_MEMBERS + 1
        )
        rows = [_row(member) for member in listed.members[:PAGE_MEMBERS]]
        last = listed.members[PAGE_MEMBERS - 1].path if len(listed.members) > PAGE_MEMBERS else None
        return self._renderer.page(
            page,
            "files/container.html",
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            rows=_folders_first(rows),
            more_after=None if last is None else last.removeprefix(target),
            may_append=request.grant is not None and request.grant.allows(Mode.APPEND),
            may_control=request.grant is not None and request.grant.allows(Mode.CONTROL),
        )


def _row(member: Metadata) -> MemberRow:
    return MemberRow(
        name=shown_name(member.path),
        address=files_url(member.path),
        media_type=essence(member.content_type),
        is_container=member.kind.is_container,
        size_bytes=member.size_bytes,
        modified_ms=last_modified_ms(member),
    )


def _folders_first(rows: Sequence[MemberRow]) -> list[MemberRow]:
    return sorted(rows, key=lambda row: (not row.is_container, row.name.casefold()))
