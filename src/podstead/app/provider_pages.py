"""The pages of the identity provider, and the operator's console."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from podstead.app.adapters.keys import token_policy
from podstead.app.live_settings import SettingChanges
from podstead.app.monitoring.console import ServerHealth, shown_settings
from podstead.features import only_offer
from podstead.idp.administration.audit_log import AuditLog
from podstead.idp.administration.pods import Directory, PodActions
from podstead.idp.administration.service import InvitationActions, OneTimeLinks
from podstead.idp.email_verification import EmailVerification
from podstead.idp.mail_queue import MailQueue
from podstead.idp.sessions import PodExports
from podstead.resources.activity import PodActivity
from podstead.resources.exporting.archive import PodDownloads
from podstead.resources.sharing.shared import SharedLists
from podstead.web.account import account_pages, collections, security_page
from podstead.web.account.first_steps import FirstSteps
from podstead.web.console.accounts import AccountPage, AccountsPage
from podstead.web.console.server import HealthPage, InvitationsPage, LogPage
from podstead.web.console.settings import SettingsPage
from podstead.web.pages.site import Site
from podstead.web.routes import Route
from podstead.web.sign_in import authorization, browser_sign_in, end_session, links, pages
from podstead.web.sign_in.login import LoginPage
from podstead.web.sign_in.people import PodSessions
from podstead.web.sign_in.registration import NewTermsPage, RegistrationPages, RegistrationPart

if TYPE_CHECKING:
    from podstead.app.provider import Provider


class ProviderPages:
    """The pages of one worker. They are at the issuer's origin."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._services = provider.services
        self._settings = provider.settings
        self._accounts = provider.accounts

    @cached_property
    def site(self) -> Site:
        """The site of the pods, unless the provider has an origin of its own."""
        services = self._services
        if not self._settings.idp_base_url:
            return services.pages.site
        return Site(
            self._provider.issuer,
            pods_url=services.base_url,
            people=self._provider.people,
            registration=services.registration,
            randomness=services.randomness,
        )

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the pages, of the console, and of one-time links."""
        routes = self.site.guard.routes(
            *self._sign_in_pages(),
            *self._account_pages(),
            *(page for each in self._services.features for page in each.provider_pages),
            *self._console_pages(),
            *self._pages_without_pods(),
        )
        if self._settings.idp_base_url:
            self.site.renderer.link_to(route.path for route in routes)
        return routes

    @cached_property
    def sign_in(self) -> browser_sign_in.BrowserSignIn:
        provider, accounts = self._provider, self._accounts
        return browser_sign_in.BrowserSignIn(
            self.site,
            accounts.sign_in,
            accounts.known_browsers,
            provider.sessions,
            MailQueue(provider.records),
            provider.second_step,
            self._services.notifier,
        )

    @cached_property
    def verified_sign_in(self) -> authorization.VerifiedSignIn:
        accounts, authorizations = self._accounts.accounts, self._provider.authorizations
        return authorization.VerifiedSignIn(
            accounts, authorizations, self.sign_in, self._services.clock
        )

    def _sign_in_pages(self) -> tuple[object, ...]:
        site, provider, sign_in = self.site, self._provider, self.sign_in
        accounts = self._accounts.accounts
        authorizations = provider.authorizations
        login = LoginPage(site, sign_in, self.forms, has_other_ways=not self._settings.idp_base_url)
        return (
            login,
            authorization.AuthorizationEndpoint(
                site, authorizations, login, self._services.store, self._services.clock
            ),
            authorization.InteractionPages(
                site,
                authorizations,
                sign_in,
                provider.audit,
                self.forms,
                self._services.notifier,
                self._services.consent,
            ),
            RegistrationPages(
                site,
                accounts,
                authorizations,
                sign_in,
                self._registration_part,
            ),
            NewTermsPage(site, accounts, authorizations, self._settings.terms_text),
            end_session.EndSessionPages(
                site,
                provider.keys,
                provider.clients,
                provider.sessions,
                PodSessions(provider.records, site.cookies),
                provider.connected_clients,
                provider.audit,
            ),
        )

    @cached_property
    def forms(self) -> Sequence[browser_sign_in.SignInForm]:
        """Ways to sign in besides the password."""
        return [form for each in self._services.features for form in each.sign_in_forms]

    @cached_property
    def _registration_part(self) -> RegistrationPart | None:
        return only_offer(each.registration_part for each in self._services.features)

    @cached_property
    def _recoveries(self) -> Sequence[browser_sign_in.PasswordRecovery]:
        found = [each.password_recovery for each in self._services.features]
        return [each for each in found if each is not None]

    @cached_property
    def _verification(self) -> EmailVerification:
        return EmailVerification(self._provider.records, self._provider.audit)

    @cached_property
    def _collections(self) -> Sequence[collections.Collection[Any]]:
        """What belongs to an account and is listed and removed."""
        site, provider, audit = self.site, self._provider, self._provider.audit
        return (
            *(found for each in self._services.features for found in each.account_collections),
            collections.CredentialCollection(
                site, self._accounts.credentials, self._services.consent
            ),
            collections.PodTokenCollection(
                site,
                provider.pod_tokens,
                provider.records,
                token_policy(self._settings),
                self._services.consent,
            ),
            collections.GrantCollection(site, provider.connected_clients, audit),
            collections.SessionCollection(
                site, provider.sessions, PodSessions(provider.records, site.cookies), audit
            ),
        )

    @cached_property
    def account(self) -> account_pages.AccountPages:
        provider = self._provider
        return account_pages.AccountPages(
            self.site,
            self._collections,
            [section for each in self._services.features for section in each.security_sections],
            self._accounts.accounts,
            provider.sessions,
            provider.profile_issuer,
            PodSessions(provider.records, self.site.cookies),
            provider.events_of,
            self._recoveries,
            self.sign_in,
            provider.audit,
            self._verification,
            provider.sends_mail,
        )

    def _account_pages(self) -> tuple[object, ...]:
        site, provider = self.site, self._provider
        return (
            self.account,
            *self._collections,
            account_pages.IssuerPages(site, provider.profile_issuer, provider.restoration),
            account_pages.ExportPages(
                PodExports(provider.records, provider.audit),
                PodDownloads(
                    store=self._services.store,
                    base_url=site.pods_url,
                    issuer=provider.issuer,
                    bundler=self._services.bundler,
                ),
            ),
        )

    def limit(self, name: str, per_minute: int) -> browser_sign_in.RequestLimit:
        """The limit of the requests of an address for one purpose."""
        return browser_sign_in.RequestLimit(
            name, self._services.store, self._services.clock, per_minute
        )

    @cached_property
    def own_account(self) -> account_pages.OwnAccountPages:
        """What the pages show of a person's account."""
        return account_pages.OwnAccountPages(
            self.site,
            self.account,
            self.first_steps,
            self._services.consent,
            self._settings.simple_tokens,
        )

    @cached_property
    def first_steps(self) -> FirstSteps:
        """What people do first with a new account."""
        services, provider = self._services, self._provider
        return FirstSteps(
            provider.records,
            PodActivity(store=services.store, gate=services.gate),
            SharedLists(services.resource_context, services.owners),
            provider.sign_in_methods,
            self._recoveries,
            provider.sends_mail,
        )

    def _console_pages(self) -> tuple[object, ...]:
        """The console, and pages for people without a session."""
        site, provider, settings = self.site, self._provider, self._settings
        accounts, records, audit = self._accounts.accounts, provider.records, provider.audit
        directory = Directory(records, accounts)
        live, quota_bytes = self._services.live, self._services.quota_bytes
        health = ServerHealth(
            live.now,
            records,
            provider.slow_requests,
            self._services.live_updates.handlers,
            self._services.feature_health,
        )
        return (
            AccountsPage(site, directory, quota_bytes, health.concerns),
            AccountPage(
                site,
                directory,
                self._accounts.administration,
                PodActions(records, audit),
                quota_bytes,
            ),
            LogPage(site, AuditLog(records), accounts),
            HealthPage(site, health.read),
            SettingsPage(
                site,
                lambda: shown_settings(live),
                SettingChanges(settings, records, audit),
                live.look,
                AuditLog(records),
                {
                    name: form
                    for each in self._services.features
                    for name, form in each.setting_forms.items()
                },
            ),
            InvitationsPage(site, InvitationActions(records, audit), provider.sends_mail),
            links.LinkPage(
                site,
                accounts,
                OneTimeLinks(records),
                provider.sessions,
                audit,
                provider.second_step,
            ),
            links.ForgotPage(site, records, provider.sends_mail, self._recoveries),
            links.VerifyPage(site, self._verification),
        )

    def _pages_without_pods(self) -> tuple[object, ...]:
        """What the header and the footer of pages lead to, and the pages about a person's account,
        for a provider whose origin has no pages of pods."""
        if not self._settings.idp_base_url:
            return ()
        sessions = PodSessions(self._provider.records, self.site.cookies)
        return (
            pages.SignInPage(
                self.site,
                None,
                self._services.invalid_credentials,
                have_accounts=True,
                has_other_ways=False,
            ),
            pages.LanguageChoice(self.site),
            security_page.SecurityPage(
                self.site,
                self.own_account,
                sessions,
                apps_sections=self._services.apps_sections,
            ),
        )
