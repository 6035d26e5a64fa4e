"""Which addresses do the pages about access have?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.shared.shared_page import SharedPage
from podstead.web.pod_pages.sharing.request_pages import AskPage, RequestsPage
from podstead.web.pod_pages.sharing.share_page import SharePage
from podstead.web.pod_pages.sharing.why_page import WhyPage
from podstead.web.routes import Route

_REST = "/{path...}"


@dataclass(frozen=True, slots=True)
class SharingPages:
    """Who answers."""

    share: SharePage
    why: WhyPage
    ask: AskPage
    requests: RequestsPage
    shared: SharedPage


def sharing_routes(guard: PageGuard, pages: SharingPages) -> tuple[Route, ...]:
    """The routes of these pages."""
    route = guard.route
    return (
        route(addresses.SHARE + _REST, GET=pages.share.get, POST=pages.share.post),
        route(addresses.WHY + _REST, GET=pages.why.get),
        route(addresses.ASK + _REST, GET=pages.ask.get, POST=pages.ask.post),
        route(addresses.SHARED, GET=pages.shared.get),
        route(addresses.REQUESTS, GET=pages.requests.get, POST=pages.requests.post),
    )
