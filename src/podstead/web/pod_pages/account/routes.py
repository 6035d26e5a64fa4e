"""Which addresses do the pages about the person have?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.account.activity_page import ActivityPage
from podstead.web.pod_pages.account.home_page import HomePage
from podstead.web.pod_pages.account.profile_page import ProfilePage
from podstead.web.pod_pages.account.security_page import SecurityPage
from podstead.web.pod_pages.account.storage_page import StoragePage
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.routes import Route


@dataclass(frozen=True, slots=True)
class PersonPages:
    """Who answers."""

    home: HomePage
    activity: ActivityPage
    storage: StoragePage
    profile: ProfilePage
    security: SecurityPage


def account_page_routes(guard: PageGuard, pages: PersonPages) -> tuple[Route, ...]:
    """The routes of these pages, each behind ``guard``."""
    route = guard.route
    return (
        route(addresses.HOME, GET=pages.home.get),
        route(addresses.ACTIVITY, GET=pages.activity.get),
        route(addresses.STORAGE, GET=pages.storage.get),
        route(addresses.PROFILE, GET=pages.profile.get, POST=pages.profile.post),
        route(addresses.SECURITY, GET=pages.security.get),
        route(addresses.BROWSERS, POST=pages.security.sign_out_browser),
        route(addresses.APPS, GET=pages.security.apps),
        route(addresses.WELCOME, GET=pages.security.welcome),
        route(f"{addresses.PROFILE}/picture", POST=pages.profile.post_picture),
    )
