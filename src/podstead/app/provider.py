"""The objects of the identity provider of one worker. Imported only if the provider is on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters import audit, engine, own_resources, provider_keys, registration
from podstead.app.provider_pages import ProviderPages
from podstead.features import ended_with_sessions, features, only_offer
from podstead.idp.administration.audit_log import SlowRequests
from podstead.idp.audit import AuditEvent
from podstead.idp.authorizations import Authorizations
from podstead.idp.clients import ClientDirectory
from podstead.idp.credentials import PodTokens
from podstead.idp.grants import ConnectedClients
from podstead.idp.records import SecurityEvent
from podstead.idp.request_notices import AccessRequestMails
from podstead.idp.security_events import security_events
from podstead.idp.sessions import Sessions
from podstead.idp.sign_in import LastSignIns
from podstead.idp.sign_in_methods import SecondStep, SignInMethod
from podstead.idp.token_issuing import IssuerRestoration, OwnTokens, ProfileIssuer
from podstead.idp.token_service import TokenService, TokenStatus
from podstead.web.authority import is_loopback_url
from podstead.web.oidc.accounts import CredentialsEndpoint, PodsWithAccounts
from podstead.web.oidc.endpoints import ProtocolEndpoints, UserinfoEndpoint
from podstead.web.pages.addresses import REQUESTS
from podstead.web.pages.cookies import Cookies
from podstead.web.routes import Route, plain_routes
from podstead.web.sign_in.browser_sign_in import PeopleByAccount
from podstead.web.sign_in.people import PodSessions

if TYPE_CHECKING:
    from podstead.app.services import Services

logger = logging.getLogger("podstead.app")


class Provider:
    """The identity provider of one worker."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.settings = services.settings
        self.issuer = services.settings.issuer
        self.audit = audit.StoredAudit(services.records)
        self.accounts: AccountServices = build_accounts(
            services.settings,
            store=services.store,
            clock=services.clock,
            randomness=services.randomness,
            passwords=services.passwords,
            audit=self.audit,
            signing_keys=[bytes(key) for key in services.keys],
            sends_mail=self.sends_mail,
        )
        self.records = self.accounts.records

    def sends_mail(self) -> bool:
        """Whether messages are delivered."""
        return self.services.live.current.reaches_people

    # Sessions and credentials of people

    @cached_property
    def cookies(self) -> Cookies:
        return Cookies(secure=self.issuer.startswith("https:"))

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.records, ended_with_sessions())

    @cached_property
    def people(self) -> PeopleByAccount:
        """The people who are signed in to their accounts, for pages at the provider's origin."""
        return PeopleByAccount(
            sessions=self.sessions,
            pod_sessions=PodSessions(self.records, self.cookies),
            issuer=self.issuer,
            cookies=self.cookies,
            audit=self.audit,
            terms_hash=registration.terms_hash(self.settings),
        )

    @cached_property
    def sign_in_methods(self) -> Sequence[SignInMethod]:
        """Those besides the password."""
        return [method for each in features() for method in each.sign_in_methods()]

    @cached_property
    def second_step(self) -> SecondStep | None:
        """What accounts need after their passwords, if a feature asks for more."""
        return only_offer(each.second_step for each in self.services.features)

    @cached_property
    def own_profiles(self) -> own_resources.AccountProfiles:
        return own_resources.AccountProfiles(
            base_url=self.services.base_url, resources=self.services.resources
        )

    @cached_property
    def pod_tokens(self) -> PodTokens:
        return PodTokens(records=self.records, audit=self.audit)

    @cached_property
    def connected_clients(self) -> ConnectedClients:
        return ConnectedClients(self.records)

    async def events_of(self, account_id: str) -> Sequence[SecurityEvent]:
        """What has happened to an account. Raises StorageError."""
        return await security_events(self.records, account_id)

    # Tokens

    @cached_property
    def keys(self) -> provider_keys.KeyFolder:
        return provider_keys.KeyFolder(engine.key_storage(self.settings), self.services.clock)

    @cached_property
    def profile_issuer(self) -> ProfileIssuer:
        return ProfileIssuer(self.issuer, self.services.profiles)

    @cached_property
    def restoration(self) -> IssuerRestoration:
        return IssuerRestoration(issuer=self.issuer, profiles=self.own_profiles, audit=self.audit)

    @cached_property
    def own(self) -> OwnTokens:
        """Verifies the tokens of this provider."""
        return OwnTokens(
            issuer=self.issuer,
            store=self.services.store,
            keys=self.keys,
            profile_issuer=self.profile_issuer,
            clock=self.services.clock,
        )

    @cached_property
    def clients(self) -> ClientDirectory:
        return ClientDirectory(
            records=self.records,
            documents=own_resources.ClientDocumentReader(
                self.services.base_url,
                self.services.resources,
                self.services.foreign,
                own=self.services.own_client,
            ),
            parse=self.services.parse,
            allow_http=is_loopback_url(self.services.base_url),
        )

    @cached_property
    def authorizations(self) -> Authorizations:
        return Authorizations(
            issuer=self.issuer,
            records=self.records,
            clients=self.clients,
            keys=self.keys,
            extension=self.services.consent,
        )

    @cached_property
    def protocol(self) -> ProtocolEndpoints:
        return ProtocolEndpoints(
            issuer=self.issuer,
            tokens=TokenService(
                issuer=self.issuer,
                records=self.records,
                clients=self.clients,
                keys=self.keys,
                audit=self.audit,
                extension=self.services.consent,
            ),
            status=self.token_status,
            clients=self.clients,
            keys=self.keys,
            proofs=self.services.proofs,
            counters=self.services.store,
            registrations_per_hour=self.settings.registrations_per_hour,
            registration_open=lambda: not self.services.registration.is_closed,
            clock=self.services.clock,
            description=self.services.consent.metadata if self.services.consent else {},
        )

    @cached_property
    def token_status(self) -> TokenStatus:
        return TokenStatus(
            own=self.own,
            records=self.records,
            allow_loopback=is_loopback_url(self.services.base_url),
            extension=self.services.consent,
        )

    # Messages, and what operators see

    @cached_property
    def slow_requests(self) -> SlowRequests:
        return SlowRequests(self.records)

    @cached_property
    def request_notices(self) -> AccessRequestMails:
        """What tells owners that somebody asks them for access."""
        link = self.services.base_url + REQUESTS
        return AccessRequestMails(
            self.records, self.accounts.accounts, link=link, sends_mail=self.sends_mail
        )

    def note_refused_invitation(self) -> None:
        """Log that somebody sent a wrong code."""
        self.audit.note(AuditEvent.INVITATION_REFUSED)

    # HTTP

    @cached_property
    def pod_maker(self) -> PodsWithAccounts:
        return PodsWithAccounts(self.accounts.accounts, issuer=self.issuer)

    @cached_property
    def pages(self) -> ProviderPages:
        return ProviderPages(self)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the provider."""
        userinfo = UserinfoEndpoint(
            issuer=self.issuer,
            status=self.token_status,
            proofs=self.services.proofs,
            resource_tokens=self.services.resource_tokens,
            invalid_credentials=self.services.invalid_credentials,
        )
        credentials = CredentialsEndpoint(
            issuer=self.issuer,
            sign_in=self.accounts.sign_in,
            keys=self.keys,
            proven_key=self.protocol.proven_key,
            randomness=self.services.randomness,
            last_sign_ins=LastSignIns(self.records),
            second_step=self.second_step,
        )
        of_features = [route for each in self.services.features for route in each.provider_routes]
        return (
            *plain_routes(self.protocol, userinfo, credentials),
            *of_features,
            *self.pages.routes,
        )
