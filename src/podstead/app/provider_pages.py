"""The pages of the identity provider, and the operator's console."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podstead.app.monitoring.console import ServerHealth, shown_settings
from podstead.idp.administration.audit_log import AuditLog
from podstead.idp.administration.pods import Directory, PodActions
from podstead.idp.administration.service import InvitationActions, OneTimeLinks
from podstead.idp.email_verification import EmailVerification
from podstead.idp.mail_queue import MailQueue
from podstead.idp.sessions import PodExports
from podstead.resources.exporting.downloads import PodDownloads
from podstead.web.browsers import CookieJar
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.authorization_endpoint import AuthorizationEndpoint
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.certificate_pages import CertificatePages
from podstead.web.idp.console.access import ConsoleGuard
from podstead.web.idp.console.account_page import AccountPage, AccountsPage
from podstead.web.idp.console.health_page import HealthPage
from podstead.web.idp.console.invitations_page import InvitationsPage
from podstead.web.idp.console.link_page import LinkPage
from podstead.web.idp.console.log_page import LogPage
from podstead.web.idp.console.routes import NAVIGATION, ConsolePages, console_routes
from podstead.web.idp.console.settings_page import SettingsPage
from podstead.web.idp.end_session_pages import EndSessionPages
from podstead.web.idp.export_pages import ExportPages
from podstead.web.idp.interaction_pages import InteractionPages
from podstead.web.idp.issuer_pages import IssuerPages
from podstead.web.idp.login_page import LoginPage
from podstead.web.idp.mail_pages import ForgotPage, VerifyPage
from podstead.web.idp.new_terms_page import NewTermsPage
from podstead.web.idp.nostr_key_endpoints import NostrKeyEndpoints
from podstead.web.idp.nostr_sign_in_endpoints import NostrSignInEndpoints
from podstead.web.idp.passkey_endpoints import PasskeyEndpoints
from podstead.web.idp.passkey_pages import PasskeyPages
from podstead.web.idp.person_pages import OwnAccountPages
from podstead.web.idp.pod_token_pages import PodTokenPages
from podstead.web.idp.profile_key_endpoints import ProfileKeyEndpoints
from podstead.web.idp.recovery_page import RecoveryPage
from podstead.web.idp.registration_pages import RegistrationPages
from podstead.web.idp.remaining_credentials import RemainingCredentials
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.request_limit import NOSTR_REQUESTS_PER_MINUTE, RequestLimit
from podstead.web.idp.second_step_pages import SecondStepPages
from podstead.web.idp.self_service import SelfService
from podstead.web.idp.session_guard import LOGIN_PATH, SessionGuard
from podstead.web.idp.two_factor_pages import TwoFactorPages
from podstead.web.idp.verified_sign_in import VerifiedSignIn
from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.account.security_page import SecurityPage
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.sign_in.language import LanguageChoice
from podstead.web.pod_pages.sign_in.sign_in_page import SignInPage
from podstead.web.routes import Route

if TYPE_CHECKING:
    from podstead.app.provider import Provider


class ProviderPages:
    """The pages of one worker. They are at the issuer's origin."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._services = provider.services
        self._settings = provider.settings
        self._accounts = provider.accounts
        self._url = urlsplit(provider.issuer)
        self._pods_url = provider.services.base_url
        self._registration = provider.services.registration
        self._renderer = Renderer(self._url.netloc, provider.services.randomness)
        self._page_cookies = CookieJar(secure=self._url.scheme == "https", path=addresses.PREFIX)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the pages, of the console, and of one-time links."""
        guard = SessionGuard(
            origin=self._provider.issuer,
            sessions=self._provider.sessions,
            cookies=self._provider.cookies,
            renderer=self._renderer,
            randomness=self._services.randomness,
            terms_hash=self._registration.terms_hash,
        )
        pages = (
            *self._sign_in_pages(),
            *self._account_pages(),
            *self._nostr_pages(),
            *self._certificate_pages(),
            *self._passkey_pages(),
        )
        return (*guard.routes(*pages), *self._console_routes())

    @cached_property
    def _sign_in(self) -> BrowserSignIn:
        return BrowserSignIn(
            passwords=self._accounts.sign_in,
            known_browsers=self._accounts.known_browsers,
            sessions=self._provider.sessions,
            cookies=self._provider.cookies,
            queue=MailQueue(self._provider.records),
            base_url=self._provider.issuer,
            two_factors=self._provider.two_factors,
            second_step=self._provider.second_step,
        )

    @cached_property
    def _verified_sign_in(self) -> VerifiedSignIn:
        return VerifiedSignIn(
            self._accounts.accounts,
            self._provider.authorizations,
            self._sign_in,
            self._services.clock,
        )

    @cached_property
    def _profile_keys(self) -> ProfileKeyEndpoints | None:
        nostr = self._provider.nostr
        if nostr is None:
            return None
        return ProfileKeyEndpoints(
            stated=nostr.stated,
            links=nostr.links,
            allowed=nostr.allowed,
            sessions=self._provider.sessions,
            cookies=self._provider.cookies,
        )

    def _sign_in_pages(self) -> tuple[object, ...]:
        provider, issuer = self._provider, self._provider.issuer
        accounts, authorizations = self._accounts, provider.authorizations
        nostr, has_passkeys = provider.nostr, provider.passkeys is not None
        registration_open = not self._registration.is_closed
        login = LoginPage(
            sign_in=self._sign_in,
            renderer=self._renderer,
            registration_open=registration_open,
            passkeys=has_passkeys,
            nostr=nostr is not None,
        )
        return (
            login,
            AuthorizationEndpoint(
                authorizations=authorizations,
                login=login,
                renderer=self._renderer,
                counters=self._services.store,
                clock=self._services.clock,
                base_url=issuer,
                pods_url=self._pods_url,
            ),
            InteractionPages(
                authorizations=authorizations,
                sign_in=self._sign_in,
                renderer=self._renderer,
                audit=provider.audit,
                base_url=issuer,
                pods_url=self._pods_url,
                registration_open=registration_open,
                passkeys=provider.passkeys,
                nostr=nostr is not None,
            ),
            RegistrationPages(
                accounts=accounts.accounts,
                authorizations=authorizations,
                sign_in=self._sign_in,
                registration=self._registration,
                proven_keys=None if nostr is None else nostr.proven,
                renderer=self._renderer,
                base_url=issuer,
                pods_url=self._pods_url,
            ),
            SecondStepPages(
                second_step=provider.second_step,
                two_factors=provider.two_factors,
                authorizations=authorizations,
                sign_in=self._sign_in,
                cookies=provider.cookies,
                renderer=self._renderer,
                passkeys=has_passkeys,
                base_url=issuer,
            ),
            RecoveryPage(
                accounts=accounts.accounts,
                two_factors=provider.two_factors,
                attempts=accounts.attempts,
                sign_in=self._sign_in,
                renderer=self._renderer,
            ),
            NewTermsPage(
                accounts=accounts.accounts,
                authorizations=authorizations,
                renderer=self._renderer,
                terms_hash=self._registration.terms_hash,
                terms_text=self._settings.terms_text,
                about=self._registration.about,
            ),
            EndSessionPages(
                issuer=issuer,
                pods_url=self._pods_url,
                keys=provider.keys,
                clients=provider.clients,
                sessions=provider.sessions,
                connected_clients=provider.connected_clients,
                cookies=provider.cookies,
                renderer=self._renderer,
                audit=provider.audit,
            ),
        )

    @cached_property
    def account(self) -> AccountPages:
        provider, accounts, nostr = self._provider, self._accounts, self._provider.nostr
        nostr_links = None if nostr is None else nostr.links
        remaining = RemainingCredentials(
            credentials=accounts.credentials,
            tokens=provider.pod_tokens,
            passkeys=provider.passkeys,
            links=nostr_links,
            profile_keys=self._profile_keys,
            certificates=provider.certificates,
        )
        verification = None
        if self._settings.mail is not None:
            verification = EmailVerification(provider.records, provider.audit)
        return AccountPages(
            accounts=accounts.accounts,
            sessions=provider.sessions,
            connected_clients=provider.connected_clients,
            credentials=accounts.credentials,
            passkeys=provider.passkeys,
            nostr_links=nostr_links,
            profile_keys=self._profile_keys,
            certificates=provider.certificates,
            profile_issuer=provider.profile_issuer,
            pod_tokens=provider.pod_tokens,
            pod_sessions=PodSessions(provider.records, self._page_cookies),
            remaining=remaining,
            events=provider.events_of,
            two_factors=provider.two_factors,
            sign_in=self._sign_in,
            cookies=provider.cookies,
            renderer=self._renderer,
            audit=provider.audit,
            verification=verification,
            base_url=self._pods_url,
        )

    def _account_pages(self) -> tuple[object, ...]:
        provider, git = self._provider, self._services.git
        return (
            self.account,
            SelfService(
                sessions=provider.sessions,
                connected_clients=provider.connected_clients,
                credentials=self._accounts.credentials,
                cookies=provider.cookies,
                renderer=self._renderer,
                events=provider.events_of,
                audit=provider.audit,
                base_url=provider.issuer,
                pods_url=self._pods_url,
            ),
            TwoFactorPages(
                two_factors=provider.two_factors,
                sessions=provider.sessions,
                cookies=provider.cookies,
                renderer=self._renderer,
            ),
            PodTokenPages(provider.pod_tokens, provider.cookies),
            IssuerPages(
                profile_issuer=provider.profile_issuer,
                restoration=provider.restoration,
                sessions=provider.sessions,
                cookies=provider.cookies,
            ),
            ExportPages(
                exports=PodExports(provider.records, provider.audit),
                downloads=PodDownloads(
                    store=self._services.store,
                    base_url=self._pods_url,
                    issuer=provider.issuer,
                    clock=self._services.clock,
                    bundles=None if git is None else git.bundles,
                ),
                sessions=provider.sessions,
            ),
        )

    def _nostr_pages(self) -> tuple[object, ...]:
        provider, nostr = self._provider, self._provider.nostr
        if nostr is None:
            return ()
        limit = RequestLimit(
            "nostr", self._services.store, self._services.clock, NOSTR_REQUESTS_PER_MINUTE
        )
        return (
            NostrKeyEndpoints(
                links=nostr.links,
                stated=nostr.stated,
                events=nostr.events,
                challenges=nostr.challenges,
                sessions=provider.sessions,
                cookies=provider.cookies,
                limit=limit,
                base_url=provider.issuer,
            ),
            NostrSignInEndpoints(
                events=nostr.events,
                nostr_sign_in=nostr.sign_in,
                proven=nostr.proven,
                authorizations=provider.authorizations,
                sign_in=self._sign_in,
                verified=self._verified_sign_in,
                limit=limit,
                registration_open=not self._registration.is_closed,
                base_url=provider.issuer,
            ),
            self._profile_keys,
        )

    def _certificate_pages(self) -> tuple[object, ...]:
        provider = self._provider
        if provider.certificates is None:
            return ()
        pages = CertificatePages(
            certificates=provider.certificates,
            sessions=provider.sessions,
            cookies=provider.cookies,
            renderer=self._renderer,
            randomness=self._services.randomness,
            base_url=provider.issuer,
            pods_url=self._pods_url,
        )
        return (pages,)

    def _passkey_pages(self) -> tuple[object, ...]:
        provider = self._provider
        if provider.party is None or provider.passkeys is None or provider.passkey_sign_in is None:
            return ()
        return (
            PasskeyEndpoints(
                party=provider.party,
                server_name=self._url.netloc,
                passkeys=provider.passkeys,
                passkey_sign_in=provider.passkey_sign_in,
                authorizations=provider.authorizations,
                sessions=provider.sessions,
                sign_in=self._sign_in,
                verified=self._verified_sign_in,
                cookies=provider.cookies,
                limit=RequestLimit(
                    "passkey",
                    self._services.store,
                    self._services.clock,
                    self._settings.passkey_requests_per_minute,
                ),
                base_url=provider.issuer,
            ),
            PasskeyPages(
                passkeys=provider.passkeys,
                sessions=provider.sessions,
                two_factors=provider.two_factors,
                cookies=provider.cookies,
            ),
        )

    def own_account(self, renderer: PageRenderer) -> OwnAccountPages:
        """What the pages of pods show of a person's account."""
        return OwnAccountPages(
            account=self.account,
            sessions=self._provider.sessions,
            cookies=self._provider.cookies,
            renderer=renderer,
        )

    # The console, and pages for people without a session

    def _page_guard(self) -> tuple[PageGuard, PageRenderer]:
        issuer = self._provider.issuer
        renderer = PageRenderer(server_name=self._url.netloc, base_url=issuer)
        guard = PageGuard(
            origin=issuer,
            people=self._provider.people,
            cookies=self._page_cookies,
            renderer=renderer,
        )
        return guard, renderer

    def _console_routes(self) -> tuple[Route, ...]:
        provider, accounts, settings = self._provider, self._accounts, self._settings
        issuer, records, audit = provider.issuer, provider.records, provider.audit
        guard, renderer = self._page_guard()
        directory = Directory(records, accounts.accounts)
        health = ServerHealth(settings, records, provider.slow_requests)
        pages = ConsolePages(
            accounts=AccountsPage(
                directory=directory,
                renderer=renderer,
                default_quota_bytes=settings.quota_bytes,
            ),
            account=AccountPage(
                directory=directory,
                administration=accounts.administration,
                pods=PodActions(records, audit),
                guard=guard,
                renderer=renderer,
                base_url=issuer,
                pods_url=self._pods_url,
                default_quota_bytes=settings.quota_bytes,
            ),
            log=LogPage(log=AuditLog(records), accounts=accounts.accounts, renderer=renderer),
            health=HealthPage(read=health.read, renderer=renderer),
            settings=SettingsPage(groups=shown_settings(settings), renderer=renderer),
            invitations=InvitationsPage(
                invitations=InvitationActions(records, audit),
                registration=settings.registration,
                guard=guard,
                renderer=renderer,
                issuer=issuer,
            ),
            link=LinkPage(
                accounts=accounts.accounts,
                links=OneTimeLinks(records),
                sessions=provider.sessions,
                cookies=provider.cookies,
                audit=audit,
                renderer=renderer,
                two_factors=provider.two_factors,
                second_step=provider.second_step,
                randomness=self._services.randomness,
                pods_url=self._pods_url,
            ),
        )
        routes = console_routes(ConsoleGuard(guard), guard, pages)
        # These pages are for everybody, and have no navigation of the console.
        plain_guard, plain = self._page_guard()
        forgot = ForgotPage(
            records=records,
            sends_mail=settings.mail is not None,
            about=self._registration.about,
            renderer=plain,
        )
        verify = VerifyPage(verification=EmailVerification(records, audit), renderer=plain)
        routes += plain_guard.routes(forgot, verify)
        own: set[str] = {route.path for route in routes}
        if settings.idp_base_url:
            routes += (*self._routes_beside_pods(guard, renderer), *self._person_routes())
        else:
            own |= {f"{addresses.FILES}/", addresses.HOME}
        renderer.link_to(own, NAVIGATION)
        plain.link_to(own, ())
        return routes

    def _person_routes(self) -> tuple[Route, ...]:
        """The pages about a person's account, for a provider whose origin has no pages of pods."""
        guard, renderer = self._page_guard()
        page = SecurityPage(
            own_account=self.own_account(renderer),
            sessions=PodSessions(self._provider.records, self._page_cookies),
            guard=guard,
            renderer=renderer,
        )
        routes = guard.routes(page)
        renderer.link_to(route.path for route in routes)
        return routes

    def _routes_beside_pods(self, guard: PageGuard, renderer: PageRenderer) -> tuple[Route, ...]:
        """What the header and the footer of pages lead to, for a provider whose origin has no pages
        of pods."""
        sign_in = SignInPage(
            by_token=None,
            account_sign_in=LOGIN_PATH,
            people=self._provider.people,
            invalid_credentials=self._services.invalid_credentials,
            renderer=renderer,
            cookies=self._page_cookies,
        )
        return (
            guard.route(addresses.SIGN_IN, GET=sign_in.get),
            guard.route(addresses.SIGN_OUT, POST=sign_in.sign_out),
            *guard.routes(LanguageChoice(secure=self._page_cookies.secure)),
        )
