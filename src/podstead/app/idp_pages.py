"""How are the pages of the identity provider built?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from podstead.app.accounts import AccountServices
from podstead.app.adapters.webauthn import WebAuthnVerifier
from podstead.app.nostr_keys import NostrServices
from podstead.idp.authorizations import Authorizations
from podstead.idp.certificates import CertificateKeys
from podstead.idp.challenges import Challenges
from podstead.idp.clients import ClientDirectory
from podstead.idp.connected_clients import ConnectedClients
from podstead.idp.email_verification import EmailVerification
from podstead.idp.keys import ProviderKeys
from podstead.idp.mail_queue import MailQueue
from podstead.idp.passkeys.ceremonies import CHALLENGE_S, RelyingParty
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.passkeys.sign_in import PasskeySignIn
from podstead.idp.pod_exports import PodExports
from podstead.idp.pod_tokens import PodTokens
from podstead.idp.profile_issuer import IssuerRestoration, ProfileIssuer
from podstead.idp.records import PASSKEY_CHALLENGES, SecurityEvent
from podstead.idp.security_events import security_events
from podstead.idp.sessions import Sessions
from podstead.idp.two_factor.second_step import SecondStep
from podstead.idp.two_factor.service import TwoFactors
from podstead.resources.exporting.contents import RepositoryBundler
from podstead.resources.exporting.downloads import PodDownloads
from podstead.web.cookies import CookieJar
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.authorization_endpoint import AuthorizationEndpoint
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.certificate_pages import CertificatePages
from podstead.web.idp.cookies import Cookies
from podstead.web.idp.end_session_pages import EndSessionPages
from podstead.web.idp.export_pages import ExportPages
from podstead.web.idp.interaction_pages import InteractionPages
from podstead.web.idp.issuer_pages import IssuerPages
from podstead.web.idp.login_page import LoginPage
from podstead.web.idp.new_terms_page import NewTermsPage
from podstead.web.idp.nostr_key_endpoints import NostrKeyEndpoints
from podstead.web.idp.nostr_sign_in_endpoints import NostrSignInEndpoints
from podstead.web.idp.pages import (
    Pages,
    certificate_routes,
    export_routes,
    issuer_route,
    nostr_key_routes,
    nostr_sign_in_routes,
    page_routes,
    passkey_routes,
    pod_token_routes,
    profile_key_routes,
    second_factor_routes,
    terms_routes,
)
from podstead.web.idp.passkey_endpoints import PasskeyEndpoints
from podstead.web.idp.passkey_pages import PasskeyPages
from podstead.web.idp.pod_token_pages import PodTokenPages
from podstead.web.idp.profile_key_endpoints import ProfileKeyEndpoints
from podstead.web.idp.recovery_page import RecoveryPage
from podstead.web.idp.registration_pages import RegistrationPages
from podstead.web.idp.remaining_credentials import RemainingCredentials
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.request_limit import NOSTR_REQUESTS_PER_MINUTE, RequestLimit
from podstead.web.idp.second_step_pages import SecondStepPages
from podstead.web.idp.self_service import SelfService
from podstead.web.idp.session_guard import SessionGuard
from podstead.web.idp.two_factor_pages import TwoFactorPages
from podstead.web.idp.verified_sign_in import VerifiedSignIn
from podstead.web.pod_pages.addresses import PREFIX
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.registration import Registration
from podstead.web.routes import Route

logger = logging.getLogger("podstead.app")


@dataclass(frozen=True, slots=True)
class PageServices:
    """The services that the pages use, besides those for accounts."""

    authorizations: Authorizations
    clients: ClientDirectory
    keys: ProviderKeys
    registration: Registration
    terms_text: str
    sends_mail: bool
    party: RelyingParty | None
    """The relying party of passkeys; ``None`` if browsers do not support passkeys here (A-115)."""
    nostr: NostrServices | None
    passkey_requests_per_minute: int
    two_factors: TwoFactors
    second_step: SecondStep
    certificates: CertificateKeys | None
    profile_issuer: ProfileIssuer
    restoration: IssuerRestoration
    bundles: RepositoryBundler | None
    """Makes files of git repositories for exports, if the server runs git."""


@dataclass(frozen=True, slots=True)
class PasskeyServices:
    """The services for passkeys, if browsers support them here."""

    party: RelyingParty
    passkeys: Passkeys
    sign_in: PasskeySignIn


@dataclass(frozen=True, slots=True)
class ProviderPages:
    """The routes of the provider's pages, and what knows everything about an account."""

    routes: tuple[Route, ...]
    account: AccountPages


def build_pages(
    base_url: str, *, pods_url: str, accounts: AccountServices, services: PageServices
) -> ProviderPages:
    """All pages of one worker. They are at ``base_url``, and the pods at
    ``pods_url``."""
    records = accounts.records
    store, clock, randomness = records.store, records.clock, records.randomness
    audit, authorizations = accounts.audit, services.authorizations
    url = urlsplit(base_url)
    secure = url.scheme == "https"
    cookies = Cookies(secure=secure)
    renderer = Renderer(url.netloc, randomness)
    sessions = Sessions(records)
    connected_clients = ConnectedClients(records)
    sign_in = BrowserSignIn(
        passwords=accounts.sign_in,
        known_browsers=accounts.known_browsers,
        sessions=sessions,
        cookies=cookies,
        queue=MailQueue(records),
        base_url=base_url,
        two_factors=services.two_factors,
        second_step=services.second_step,
    )
    known, nostr = _build_passkeys(accounts, services), services.nostr
    login = LoginPage(
        sign_in=sign_in,
        renderer=renderer,
        registration_open=not services.registration.is_closed,
        passkeys=known is not None,
        nostr=nostr is not None,
    )
    profile_keys = None
    if nostr is not None:
        profile_keys = ProfileKeyEndpoints(
            stated=nostr.stated,
            links=nostr.links,
            allowed=nostr.allowed,
            sessions=sessions,
            cookies=cookies,
        )

    pod_tokens = PodTokens(records=records, audit=audit)
    remaining = RemainingCredentials(
        credentials=accounts.credentials,
        tokens=pod_tokens,
        passkeys=None if known is None else known.passkeys,
        links=None if nostr is None else nostr.links,
        profile_keys=profile_keys,
        certificates=services.certificates,
    )

    async def events_of(account_id: str) -> Sequence[SecurityEvent]:
        return await security_events(records, account_id)

    pages = Pages(
        authorization=AuthorizationEndpoint(
            authorizations=authorizations,
            login=login,
            renderer=renderer,
            counters=store,
            clock=clock,
            base_url=base_url,
            pods_url=pods_url,
        ),
        interactions=InteractionPages(
            authorizations=authorizations,
            sign_in=sign_in,
            renderer=renderer,
            audit=audit,
            base_url=base_url,
            pods_url=pods_url,
            registration_open=not services.registration.is_closed,
            passkeys=None if known is None else known.passkeys,
            nostr=nostr is not None,
        ),
        login=login,
        registration=RegistrationPages(
            accounts=accounts.accounts,
            authorizations=authorizations,
            sign_in=sign_in,
            registration=services.registration,
            proven_keys=None if nostr is None else nostr.proven,
            renderer=renderer,
            base_url=base_url,
            pods_url=pods_url,
        ),
        account=AccountPages(
            accounts=accounts.accounts,
            sessions=sessions,
            connected_clients=connected_clients,
            credentials=accounts.credentials,
            passkeys=None if known is None else known.passkeys,
            nostr_links=None if nostr is None else nostr.links,
            profile_keys=profile_keys,
            certificates=services.certificates,
            profile_issuer=services.profile_issuer,
            pod_tokens=pod_tokens,
            pod_sessions=PodSessions(records, CookieJar(secure=secure, path=PREFIX)),
            remaining=remaining,
            events=events_of,
            two_factors=services.two_factors,
            sign_in=sign_in,
            cookies=cookies,
            renderer=renderer,
            audit=audit,
            verification=EmailVerification(records, audit) if services.sends_mail else None,
            base_url=pods_url,
        ),
        self_service=SelfService(
            sessions=sessions,
            connected_clients=connected_clients,
            credentials=accounts.credentials,
            cookies=cookies,
            renderer=renderer,
            events=events_of,
            audit=audit,
            base_url=base_url,
            pods_url=pods_url,
        ),
        end_session=EndSessionPages(
            issuer=base_url,
            pods_url=pods_url,
            keys=services.keys,
            clients=services.clients,
            sessions=sessions,
            connected_clients=connected_clients,
            cookies=cookies,
            renderer=renderer,
            audit=audit,
        ),
    )
    guard = SessionGuard(
        origin=base_url,
        sessions=sessions,
        cookies=cookies,
        renderer=renderer,
        randomness=randomness,
        terms_hash=services.registration.terms_hash,
    )
    verified = VerifiedSignIn(accounts.accounts, authorizations, sign_in, clock)
    issuer_pages = IssuerPages(
        profile_issuer=services.profile_issuer,
        restoration=services.restoration,
        sessions=sessions,
        cookies=cookies,
    )
    routes = (
        *page_routes(guard, pages),
        *second_factor_routes(
            guard,
            SecondStepPages(
                second_step=services.second_step,
                two_factors=services.two_factors,
                authorizations=authorizations,
                sign_in=sign_in,
                cookies=cookies,
                renderer=renderer,
                passkeys=known is not None,
                base_url=base_url,
            ),
            TwoFactorPages(
                two_factors=services.two_factors,
                sessions=sessions,
                cookies=cookies,
                renderer=renderer,
            ),
            RecoveryPage(
                accounts=accounts.accounts,
                two_factors=services.two_factors,
                attempts=accounts.attempts,
                sign_in=sign_in,
                renderer=renderer,
            ),
        ),
        *terms_routes(
            guard,
            NewTermsPage(
                accounts=accounts.accounts,
                authorizations=authorizations,
                renderer=renderer,
                terms_hash=services.registration.terms_hash,
                terms_text=services.terms_text,
                about=services.registration.about,
            ),
        ),
        *pod_token_routes(guard, PodTokenPages(pod_tokens, cookies)),
        issuer_route(guard, issuer_pages),
        *export_routes(
            guard,
            ExportPages(
                exports=PodExports(accounts.records, audit),
                downloads=PodDownloads(
                    store=store,
                    base_url=pods_url,
                    issuer=base_url,
                    clock=clock,
                    bundles=services.bundles,
                ),
                sessions=sessions,
            ),
        ),
    )
    if nostr is not None and profile_keys is not None:
        nostr_limit = RequestLimit("nostr", store, clock, NOSTR_REQUESTS_PER_MINUTE)
        keys = NostrKeyEndpoints(
            links=nostr.links,
            stated=nostr.stated,
            events=nostr.events,
            challenges=nostr.challenges,
            sessions=sessions,
            cookies=cookies,
            limit=nostr_limit,
            base_url=base_url,
        )
        nostr_sign_in = NostrSignInEndpoints(
            events=nostr.events,
            nostr_sign_in=nostr.sign_in,
            proven=nostr.proven,
            authorizations=authorizations,
            sign_in=sign_in,
            verified=verified,
            limit=nostr_limit,
            registration_open=not services.registration.is_closed,
            base_url=base_url,
        )
        routes = (
            *routes,
            *nostr_key_routes(guard, keys),
            *nostr_sign_in_routes(guard, nostr_sign_in),
            *profile_key_routes(guard, profile_keys),
        )
    if services.certificates is not None:
        own_certificates = CertificatePages(
            certificates=services.certificates,
            sessions=sessions,
            cookies=cookies,
            renderer=renderer,
            randomness=randomness,
            base_url=base_url,
            pods_url=pods_url,
        )
        routes += certificate_routes(guard, own_certificates)
    if known is None:
        return ProviderPages(routes, pages.account)
    endpoints = PasskeyEndpoints(
        party=known.party,
        server_name=url.netloc,
        passkeys=known.passkeys,
        passkey_sign_in=known.sign_in,
        authorizations=authorizations,
        sessions=sessions,
        sign_in=sign_in,
        verified=verified,
        cookies=cookies,
        limit=RequestLimit("passkey", store, clock, services.passkey_requests_per_minute),
        base_url=base_url,
    )
    own = PasskeyPages(
        passkeys=known.passkeys,
        sessions=sessions,
        two_factors=services.two_factors,
        cookies=cookies,
    )
    routes = (*routes, *passkey_routes(guard, endpoints, own))
    return ProviderPages(routes, pages.account)


def _build_passkeys(accounts: AccountServices, services: PageServices) -> PasskeyServices | None:
    """``None`` if browsers do not support passkeys here (A-115)."""
    party = services.party
    if party is None:
        logger.info(
            "Pages offer no passkeys: browsers know them over https only, or at localhost, and "
            "never at an IP address. On this machine use http://localhost:PORT as the base URL."
        )
        return None
    records, audit, verifier = accounts.records, accounts.audit, WebAuthnVerifier(party)
    challenges = Challenges(PASSKEY_CHALLENGES, lifetime_s=CHALLENGE_S, records=records)
    return PasskeyServices(
        party,
        Passkeys(records=records, challenges=challenges, verifier=verifier, audit=audit),
        PasskeySignIn(records=records, challenges=challenges, verifier=verifier, audit=audit),
    )
