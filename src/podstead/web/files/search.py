"""``/.pages/search``: finds files and folders by their names, below one folder.

Every container on the way passes the gate, so nobody finds what they could not see by opening the
folders one after another. The search is bounded and says when it has not looked everywhere.
Whoever sends many searches at once waits for their own. A feature that searches contents answers in
place of all that.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from podstead.core.errors import BadRequest, NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container, parse_path
from podstead.core.media_types import essence
from podstead.resources import costly_work, entity_tags, service
from podstead.storage.records import Metadata
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import breadcrumb, files_url, shown_name
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import is_reserved, route

MAX_RESULTS: Final = 200
MAX_CONTAINERS: Final = 400
MAX_MEMBERS: Final = 20_000
_READ_AT_ONCE: Final = 1_000
_MAX_CHARACTERS: Final = 200


SearchResults = Callable[[PageRequest, ResourcePath | None, str], Awaitable[Response]]
"""Answers a search below a container, or everywhere, for a text, which may be empty, as a page."""


@dataclass(frozen=True, slots=True)
class Found:
    """A resource whose name matches."""

    name: str
    address: str
    where: str
    kind: Kind
    modified_ms: int
    size_bytes: int | None


@dataclass(slots=True)
class Search:
    """Answers searches."""

    site: Site
    resources: service.ResourceService
    results: SearchResults | None = None
    _turns: costly_work.AgentSemaphores = field(
        init=False, default_factory=costly_work.AgentSemaphores
    )

    @route(addresses.SEARCH, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form and what was found. Raises NotAuthenticated, AccessDenied, NotFound,
        BadRequest."""
        text = page.query_text("q").strip()[:_MAX_CHARACTERS]
        top = _named_top(page)
        if self.results is not None:
            return await self.results(page, top, text)
        top = top or _own_top(page)
        found: list[Found] = []
        is_complete = True
        if text:
            async with self._turns.by(page.requester):
                found, is_complete = await self._found(page, top, text)
        return self.site.page(
            page,
            "files/search.html",
            q=text,
            top=top,
            top_name=shown_name(top),
            breadcrumb=breadcrumb(top),
            found=found,
            is_complete=is_complete,
        )

    async def _found(
        self, page: PageRequest, top: ResourcePath, text: str
    ) -> tuple[list[Found], bool]:
        """What matches, the nearest first, and whether everything was looked at."""
        wanted = text.casefold()
        found: list[Found] = []
        waiting = deque([top])
        seen_containers = seen_members = 0
        while waiting:
            if seen_containers >= MAX_CONTAINERS or seen_members >= MAX_MEMBERS:
                return found, False
            container = waiting.popleft()
            seen_containers += 1
            async for member in self._members(page, container, is_top=container == top):
                seen_members += 1
                if member.kind.is_container:
                    waiting.append(member.path)
                name = shown_name(member.path)
                if wanted in name.casefold():
                    found.append(_result(member, name, top))
                if len(found) >= MAX_RESULTS or seen_members >= MAX_MEMBERS:
                    return found, False
            await asyncio.sleep(0)  # lets other requests go on
        return found, True

    async def _members(
        self, page: PageRequest, container: ResourcePath, *, is_top: bool
    ) -> AsyncIterator[Metadata]:
        """The members of a container; none if the person may not read it, unless it is the top."""
        after: ResourcePath | None = None
        while True:
            request = page.operation("GET", container)
            try:
                listed = await self.resources.members(request, after=after, limit=_READ_AT_ONCE)
            except RequestRefused:
                if is_top:
                    raise
                return  # may not be read, or has been deleted since
            for member in listed.members:
                yield member
            if len(listed.members) < _READ_AT_ONCE:
                return
            after = listed.members[-1].path
            await asyncio.sleep(0)  # lets other requests go on


def _result(member: Metadata, name: str, top: ResourcePath) -> Found:
    way = [crumb.name for crumb in breadcrumb(member.path)[:-1]]
    is_folder = member.kind.is_container
    return Found(
        name=name,
        address=files_url(member.path),
        where=" / ".join(way[len(breadcrumb(top)) - 1 :]),
        kind=Kind.FOLDER if is_folder else kind_of(essence(member.content_type), name),
        modified_ms=entity_tags.last_modified_ms(member),
        size_bytes=None if is_folder else member.size_bytes,
    )


def _own_top(page: PageRequest) -> ResourcePath:
    """The person's pod."""
    pods = page.signed_in().pods
    if not pods:
        raise NotFound(WebCodes.NO_POD)
    return pods[0]


def _named_top(page: PageRequest) -> ResourcePath | None:
    """The folder to search in, if one is named."""
    named = page.query_text("in")
    if not named:
        page.signed_in()
        return None
    try:
        path = parse_path(named.encode("ascii"))
    except UnicodeEncodeError as error:
        raise BadRequest(WebCodes.SEARCH_FOLDER_MALFORMED) from error
    if not is_container(path) or is_reserved(path):
        raise NotFound
    return path
