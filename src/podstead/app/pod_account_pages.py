"""How are the pages about the person built?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podstead.config import Settings
from podstead.rdf.parser import RdfParser
from podstead.resources.activity import PodActivity
from podstead.resources.service import ResourceService
from podstead.resources.sharing.shared import SharedLists
from podstead.resources.storage_usage import PodUsage
from podstead.storage.protocol import Store
from podstead.wac.gate import Gate
from podstead.web.pod_pages.account.activity_page import ActivityPage
from podstead.web.pod_pages.account.home_page import HomePage
from podstead.web.pod_pages.account.profile_page import ProfilePage
from podstead.web.pod_pages.account.profiles import Profiles
from podstead.web.pod_pages.account.routes import PersonPages, account_page_routes
from podstead.web.pod_pages.account.security_page import SecurityPage, ShownAccount
from podstead.web.pod_pages.account.storage_page import StoragePage
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.sharing.request_pages import RequestsPage
from podstead.web.routes import Route


@dataclass(frozen=True, slots=True)
class AccountPageParts:
    """What the pages about the person use of the rest of the server."""

    store: Store
    gate: Gate
    parse: RdfParser
    own_account: Callable[[PageRenderer], ShownAccount | None] | None
    """Creates what shows an account of the provider, if the provider is at this origin."""


def build_account_pages(
    settings: Settings,
    parts: AccountPageParts,
    *,
    resources: ResourceService,
    guard: PageGuard,
    renderer: PageRenderer,
    shared: SharedLists,
    usage: PodUsage,
    sessions: PodSessions,
    requests: RequestsPage,
) -> tuple[Route, ...]:
    """The routes of these pages."""
    activity = PodActivity(store=parts.store, gate=parts.gate)
    return account_page_routes(
        guard,
        PersonPages(
            home=HomePage(
                activity=activity,
                usage=usage,
                shared=shared,
                requests=requests.waiting,
                renderer=renderer,
                base_url=settings.base_url,
                issuer=settings.issuer if settings.idp else None,
            ),
            activity=ActivityPage(activity=activity, renderer=renderer, base_url=settings.base_url),
            storage=StoragePage(usage=usage, renderer=renderer),
            profile=ProfilePage(
                profiles=Profiles(
                    resources=resources, parse=parts.parse, base_url=settings.base_url
                ),
                renderer=renderer,
                guard=guard,
            ),
            security=SecurityPage(
                sessions=sessions,
                guard=guard,
                own_account=None if parts.own_account is None else parts.own_account(renderer),
                renderer=renderer,
            ),
        ),
    )
