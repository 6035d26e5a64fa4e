"""``/.pages/events/<path>``: tells an open page that its resource has changed.

Server-Sent Events (WHATWG HTML, section 9.2) through the hub of all notifications, with the person
as the subscriber: the rules are checked for each event. An event says only that there was a change;
the page then asks for what it shows, as always.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import REST, route


class ChangeStreams(Protocol):
    """Streams of changes, as Server-Sent Events."""

    async def changes(
        self, request: Request, agent: Identity | None, topic: ResourcePath
    ) -> Response:
        """Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble."""


@dataclass(frozen=True, slots=True)
class PageEvents:
    """Sends events to pages."""

    streams: ChangeStreams

    @route(addresses.EVENTS + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble."""
        return await self.streams.changes(page.request, page.identity, page.target)
