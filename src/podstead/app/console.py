"""How is the operator's console built? It is a part of the identity provider."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from podstead.app.accounts import AccountServices
from podstead.app.console_health import ServerHealth
from podstead.app.console_settings import shown_settings
from podstead.config import Settings
from podstead.idp.administration.audit_log import AuditLog
from podstead.idp.administration.directory import Directory
from podstead.idp.administration.invitations import InvitationActions
from podstead.idp.administration.one_time_links import OneTimeLinks
from podstead.idp.administration.pods import PodActions
from podstead.idp.administration.slow_requests import SlowRequests
from podstead.idp.email_verification import EmailVerification
from podstead.idp.sessions import Sessions
from podstead.idp.two_factor.second_step import SecondStep
from podstead.idp.two_factor.service import TwoFactors
from podstead.storage.record_store import RecordStore
from podstead.web.about_operator import AboutOperator
from podstead.web.cookies import CookieJar
from podstead.web.idp.console.access import ConsoleGuard
from podstead.web.idp.console.account_page import AccountPage
from podstead.web.idp.console.accounts_page import AccountsPage
from podstead.web.idp.console.health_page import HealthPage
from podstead.web.idp.console.invitations_page import InvitationsPage
from podstead.web.idp.console.link_page import LinkPage
from podstead.web.idp.console.log_page import LogPage
from podstead.web.idp.console.routes import NAVIGATION, ConsolePages, console_routes
from podstead.web.idp.console.settings_page import SettingsPage
from podstead.web.idp.cookies import Cookies
from podstead.web.idp.mail_pages import ForgotPage, VerifyPage
from podstead.web.idp.session_guard import LOGIN_PATH
from podstead.web.limits import InvalidCredentialLimit
from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.account.security_page import SecurityPage, ShownAccount
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.people import People
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.sign_in.language import LanguageChoice
from podstead.web.pod_pages.sign_in.sign_in_page import SignInPage
from podstead.web.routes import Route


def build_console(
    settings: Settings,
    *,
    accounts: AccountServices,
    people: People,
    slow: SlowRequests,
    about: AboutOperator,
    two_factors: TwoFactors,
    second_step: SecondStep,
    own_account: Callable[[PageRenderer], ShownAccount | None],
) -> tuple[Route, ...]:
    """All routes of the console and of one-time links, at the origin of the provider."""
    issuer, records = settings.issuer, accounts.records
    url = urlsplit(issuer)
    secure = url.scheme == "https"
    cookies = CookieJar(secure=secure, path=addresses.PREFIX)
    renderer = PageRenderer(server_name=url.netloc, base_url=issuer)
    guard = PageGuard(origin=issuer, people=people, cookies=cookies, renderer=renderer)
    directory = Directory(records, accounts.accounts)
    log = AuditLog(records)
    routes = console_routes(
        ConsoleGuard(guard),
        guard,
        ConsolePages(
            accounts=AccountsPage(
                directory=directory,
                renderer=renderer,
                default_quota_bytes=settings.quota_bytes,
            ),
            account=AccountPage(
                directory=directory,
                administration=accounts.administration,
                pods=PodActions(records, accounts.audit),
                guard=guard,
                renderer=renderer,
                base_url=issuer,
                pods_url=settings.base_url,
                default_quota_bytes=settings.quota_bytes,
            ),
            log=LogPage(log=log, accounts=accounts.accounts, renderer=renderer),
            health=HealthPage(read=ServerHealth(settings, records, slow).read, renderer=renderer),
            settings=SettingsPage(groups=shown_settings(settings), renderer=renderer),
            invitations=InvitationsPage(
                invitations=InvitationActions(records, accounts.audit),
                registration=settings.registration,
                guard=guard,
                renderer=renderer,
                issuer=issuer,
            ),
            link=LinkPage(
                accounts=accounts.accounts,
                links=OneTimeLinks(records),
                sessions=Sessions(records),
                cookies=Cookies(secure=secure),
                audit=accounts.audit,
                renderer=renderer,
                two_factors=two_factors,
                second_step=second_step,
                randomness=records.randomness,
                pods_url=settings.base_url,
            ),
        ),
    )
    # These pages are for everybody, and have no navigation of the console.
    plain = PageRenderer(server_name=url.netloc, base_url=issuer)
    plain_guard = PageGuard(origin=issuer, people=people, cookies=cookies, renderer=plain)
    forgot = ForgotPage(
        records=records, sends_mail=settings.mail is not None, about=about, renderer=plain
    )
    verify = VerifyPage(verification=EmailVerification(records, accounts.audit), renderer=plain)
    routes += (
        plain_guard.route(addresses.FORGOT, GET=forgot.get, POST=forgot.post),
        plain_guard.route(f"{addresses.VERIFY}/{{secret}}", GET=verify.get, POST=verify.post),
    )
    own: set[str] = {route.path for route in routes}
    if settings.idp_base_url:
        routes += _beside_pods(
            settings, accounts, guard=guard, people=people, renderer=renderer, cookies=cookies
        )
        routes += _of_person(issuer, people, cookies, own_account, records)
    else:
        own |= {f"{addresses.FILES}/", addresses.HOME}
    renderer.link_to(own, NAVIGATION)
    plain.link_to(own, ())
    return routes


def _of_person(
    issuer: str,
    people: People,
    cookies: CookieJar,
    own_account: Callable[[PageRenderer], ShownAccount | None],
    records: RecordStore,
) -> tuple[Route, ...]:
    """The pages about a person's account, for a provider whose origin has no pages of pods."""
    renderer = PageRenderer(server_name=urlsplit(issuer).netloc, base_url=issuer)
    guard = PageGuard(origin=issuer, people=people, cookies=cookies, renderer=renderer)
    page = SecurityPage(
        own_account=own_account(renderer),
        sessions=PodSessions(records, cookies),
        guard=guard,
        renderer=renderer,
    )
    routes = (
        guard.route(addresses.SECURITY, GET=page.get),
        guard.route(addresses.BROWSERS, POST=page.sign_out_browser),
        guard.route(addresses.APPS, GET=page.apps),
        guard.route(addresses.WELCOME, GET=page.welcome),
    )
    renderer.link_to(route.path for route in routes)
    return routes


def _beside_pods(
    settings: Settings,
    accounts: AccountServices,
    *,
    guard: PageGuard,
    people: People,
    renderer: PageRenderer,
    cookies: CookieJar,
) -> tuple[Route, ...]:
    """What the header and the footer of pages lead to, for a provider whose origin has no pages of
    pods."""
    sign_in = SignInPage(
        by_token=None,
        account_sign_in=LOGIN_PATH,
        people=people,
        invalid_credentials=InvalidCredentialLimit(
            counters=accounts.records.store,
            clock=accounts.records.clock,
            per_minute=settings.invalid_credentials_per_minute,
        ),
        renderer=renderer,
        cookies=cookies,
    )
    return (
        guard.route(addresses.SIGN_IN, GET=sign_in.get),
        guard.route(addresses.SIGN_OUT, POST=sign_in.sign_out),
        guard.route(
            addresses.LANGUAGE,
            POST=LanguageChoice(secure=settings.issuer.startswith("https:")).post,
        ),
    )
