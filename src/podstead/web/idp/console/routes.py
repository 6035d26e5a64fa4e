"""All pages of the console, in one list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.web.idp.console import addresses
from podstead.web.idp.console.access import ConsoleGuard
from podstead.web.idp.console.account_page import AccountPage, AccountsPage
from podstead.web.idp.console.health_page import HealthPage
from podstead.web.idp.console.invitations_page import InvitationsPage
from podstead.web.idp.console.link_page import LinkPage
from podstead.web.idp.console.log_page import LogPage
from podstead.web.idp.console.settings_page import SettingsPage
from podstead.web.pod_pages.addresses import CONSOLE, FILES, LINK
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.texts import N_
from podstead.web.routes import Route

NAVIGATION: Final = (
    (addresses.ACCOUNTS, "people", N_("Accounts")),
    (addresses.INVITATIONS, "share", N_("Invitations")),
    (addresses.LOG, "activity", N_("Log")),
    (addresses.HEALTH, "pod", N_("Health")),
    (addresses.SETTINGS, "apps", N_("Settings")),
    (f"{FILES}/", "folder", N_("Your files")),
)


@dataclass(frozen=True, slots=True)
class ConsolePages:
    """Who answers."""

    accounts: AccountsPage
    account: AccountPage
    log: LogPage
    health: HealthPage
    settings: SettingsPage
    link: LinkPage
    invitations: InvitationsPage


def console_routes(
    console: ConsoleGuard, guard: PageGuard, pages: ConsolePages
) -> tuple[Route, ...]:
    """The routes of the console, each for operators only, and of one-time links."""
    route = console.route
    return (
        route(CONSOLE, GET=pages.accounts.home),
        route(addresses.HEALTH, GET=pages.health.get),
        route(addresses.SETTINGS, GET=pages.settings.get),
        route(addresses.ACCOUNTS, GET=pages.accounts.get),
        route(addresses.ACCOUNT, GET=pages.account.get),
        route(addresses.QUOTA, POST=pages.account.set_quota),
        route(addresses.ACTION, GET=pages.account.confirm, POST=pages.account.act),
        route(addresses.LOG, GET=pages.log.get),
        route(addresses.INVITATIONS, GET=pages.invitations.get, POST=pages.invitations.create),
        route(addresses.REVOKE, POST=pages.invitations.revoke),
        guard.route(f"{LINK}/{{secret}}", GET=pages.link.get, POST=pages.link.post),
    )
