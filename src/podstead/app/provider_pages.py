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
from podstead.resources.exporting.archive import PodDownloads
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.authorization_endpoint import AuthorizationEndpoint
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.certificate_pages import CertificatePages
from podstead.web.idp.console.account_page import AccountPage, AccountsPage
from podstead.web.idp.console.health_page import HealthPage
from podstead.web.idp.console.invitations_page import InvitationsPage
from podstead.web.idp.console.link_page import LinkPage
from podstead.web.idp.console.log_page import LogPage
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
from podstead.web.idp.request_limit import NOSTR_REQUESTS_PER_MINUTE, RequestLimit
from podstead.web.idp.second_step_pages import SecondStepPages
from podstead.web.idp.self_service import SelfService
from podstead.web.idp.two_factor_pages import TwoFactorPages
from podstead.web.idp.verified_sign_in import VerifiedSignIn
from podstead.web.pages.addresses import LOGIN
from podstead.web.pages.cookies import Cookies
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.site import Site
from podstead.web.pod_pages.account.security_page import SecurityPage
from podstead.web.pod_pages.pod_sessions import PodSessions
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

    @cached_property
    def site(self) -> Site:
        """The site of the pods, unless the provider has an origin of its own."""
        if not self._settings.idp_base_url:
            return self._services.pages.site
        return Site(self._provider.issuer, self._provider.people, self._services.randomness)

    @property
    def _renderer(self) -> PageRenderer:
        return self.site.renderer

    @property
    def _page_cookies(self) -> Cookies:
        return self.site.cookies

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the pages, of the console, and of one-time links."""
        pages = (
            *self._sign_in_pages(),
            *self._account_pages(),
            *self._nostr_pages(),
            *self._certificate_pages(),
            *self._passkey_pages(),
        )
        routes = self.site.guard.routes(*pages, *self._console_pages(), *self._pages_without_pods())
        if self._settings.idp_base_url:
            self._renderer.link_to(route.path for route in routes)
        return routes

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
        provider = self._provider
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
                    bundler=self._services.bundler,
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

    def _console_pages(self) -> tuple[object, ...]:
        provider, accounts, settings = self._provider, self._accounts, self._settings
        issuer, records, audit = provider.issuer, provider.records, provider.audit
        guard, renderer = self.site.guard, self.site.renderer
        directory = Directory(records, accounts.accounts)
        health = ServerHealth(settings, records, provider.slow_requests)
        return (
            AccountsPage(
                directory=directory,
                renderer=renderer,
                default_quota_bytes=settings.quota_bytes,
            ),
            AccountPage(
                directory=directory,
                administration=accounts.administration,
                pods=PodActions(records, audit),
                guard=guard,
                renderer=renderer,
                base_url=issuer,
                pods_url=self._pods_url,
                default_quota_bytes=settings.quota_bytes,
            ),
            LogPage(log=AuditLog(records), accounts=accounts.accounts, renderer=renderer),
            HealthPage(read=health.read, renderer=renderer),
            SettingsPage(groups=shown_settings(settings), renderer=renderer),
            InvitationsPage(
                invitations=InvitationActions(records, audit),
                registration=settings.registration,
                guard=guard,
                renderer=renderer,
                issuer=issuer,
            ),
            LinkPage(
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
            ForgotPage(
                records=records,
                sends_mail=settings.mail is not None,
                about=self._registration.about,
                renderer=renderer,
            ),
            VerifyPage(verification=EmailVerification(records, audit), renderer=renderer),
        )

    def _pages_without_pods(self) -> tuple[object, ...]:
        """What the header and the footer of pages lead to, and the pages about a person's account,
        for a provider whose origin has no pages of pods."""
        if not self._settings.idp_base_url:
            return ()
        return (
            SignInPage(
                by_token=None,
                account_sign_in=LOGIN,
                people=self._provider.people,
                invalid_credentials=self._services.invalid_credentials,
                renderer=self._renderer,
                cookies=self._page_cookies,
            ),
            LanguageChoice(secure=self._page_cookies.secure),
            SecurityPage(
                own_account=self.own_account(self._renderer),
                sessions=PodSessions(self._provider.records, self._page_cookies),
                guard=self.site.guard,
                renderer=self._renderer,
            ),
        )
