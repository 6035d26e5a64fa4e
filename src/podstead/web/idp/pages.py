"""Which URLs does the provider have for people? All of its pages and forms, in one list."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.idp.discovery import AUTHORIZATION_PATH, END_SESSION_PATH
from podstead.web.idp.account_pages import LOGOUT_PATH, AccountPages
from podstead.web.idp.authorization_endpoint import AuthorizationEndpoint
from podstead.web.idp.browser_sign_in import SECOND_FACTOR_PATH, SET_UP_PATH
from podstead.web.idp.certificate_pages import CERTIFICATES_PATH, CertificatePages
from podstead.web.idp.end_session_pages import CONFIRMATION_PATH, EndSessionPages
from podstead.web.idp.export_pages import EXPORT_PATH, ExportPages
from podstead.web.idp.interaction_pages import InteractionPages
from podstead.web.idp.issuer_pages import ISSUER_PATH, IssuerPages
from podstead.web.idp.login_page import TWO_FACTOR_PATH, LoginPage
from podstead.web.idp.new_terms_page import NewTermsPage
from podstead.web.idp.nostr_key_endpoints import (
    CHALLENGE_PATH,
    KEYS_PATH,
    SIGN_IN_PATH,
    NostrKeyEndpoints,
)
from podstead.web.idp.nostr_sign_in_endpoints import NostrSignInEndpoints
from podstead.web.idp.passkey_endpoints import PASSKEY_PATH, PasskeyEndpoints
from podstead.web.idp.passkey_pages import PASSKEYS_PATH, PasskeyPages
from podstead.web.idp.pod_token_pages import POD_TOKENS_PATH, PodTokenPages
from podstead.web.idp.profile_key_endpoints import PROFILE_KEYS_PATH, ProfileKeyEndpoints
from podstead.web.idp.recovery_page import RECOVERY_PATH, RecoveryPage
from podstead.web.idp.registration_pages import REGISTRATION_PATH, RegistrationPages
from podstead.web.idp.replies import INTERACTION_PATH
from podstead.web.idp.second_step_pages import SecondStepPages
from podstead.web.idp.self_service import (
    CREDENTIALS_PATH,
    EVENTS_PATH,
    GRANTS_PATH,
    SESSIONS_PATH,
    SelfService,
)
from podstead.web.idp.session_guard import ACCOUNT_PATH, LOGIN_PATH, Rule, SessionGuard
from podstead.web.idp.two_factor_pages import (
    CODES_PATH,
    PASSKEY_FACTOR_PATH,
    REMOVE_PATH,
    TwoFactorPages,
)
from podstead.web.pod_pages.addresses import NEW_TERMS
from podstead.web.routes import Route


@dataclass(frozen=True, slots=True)
class Pages:
    """Who answers."""

    authorization: AuthorizationEndpoint
    interactions: InteractionPages
    login: LoginPage
    registration: RegistrationPages
    account: AccountPages
    self_service: SelfService
    end_session: EndSessionPages


def page_routes(guard: SessionGuard, pages: Pages) -> tuple[Route, ...]:
    """The routes of all pages, each behind ``guard``."""
    route = guard.route
    interaction = f"{INTERACTION_PATH}/{{uid}}"
    authorization, interactions = pages.authorization, pages.interactions
    account, own = pages.account, pages.self_service
    return (
        route(
            AUTHORIZATION_PATH,
            rule=Rule.ANYWHERE,
            GET=authorization.get,
            POST=authorization.post,
        ),
        route(f"{AUTHORIZATION_PATH}/{{uid}}", GET=authorization.resume),
        route(interaction, GET=interactions.get, POST=interactions.login),
        route(f"{interaction}/login", POST=interactions.login),
        route(f"{interaction}/confirm", POST=interactions.confirm),
        route(f"{interaction}/abort", POST=interactions.abort),
        route(LOGIN_PATH, GET=pages.login.get, POST=pages.login.post),
        route(
            REGISTRATION_PATH,
            rule=Rule.OURS_OR_NO_COOKIE,
            GET=pages.registration.get,
            POST=pages.registration.post,
        ),
        route(
            END_SESSION_PATH,
            rule=Rule.ANYWHERE,
            GET=pages.end_session.get,
            POST=pages.end_session.post,
        ),
        route(CONFIRMATION_PATH, POST=pages.end_session.confirm),
        route(LOGOUT_PATH, POST=account.sign_out),
        route(ACCOUNT_PATH, GET=account.get),
        route(f"{ACCOUNT_PATH}/email", POST=account.change_email),
        route(f"{ACCOUNT_PATH}/mail", POST=account.change_mail),
        route(f"{ACCOUNT_PATH}/email/confirm", POST=account.confirm_email),
        route(f"{ACCOUNT_PATH}/password", POST=account.change_password),
        route(f"{ACCOUNT_PATH}/delete", GET=account.confirm_deletion, POST=account.delete),
        route(
            SESSIONS_PATH,
            is_page=False,
            GET=own.list_sessions,
            POST=account.sign_out_everywhere,
            DELETE=account.sign_out_everywhere,
        ),
        route(
            f"{SESSIONS_PATH}/{{id}}",
            is_page=False,
            GET=own.get_session,
            POST=own.end_session,
            DELETE=own.end_session,
        ),
        route(EVENTS_PATH, is_page=False, GET=own.list_events),
        route(GRANTS_PATH, is_page=False, GET=own.list_grants),
        route(
            f"{GRANTS_PATH}/{{id}}",
            is_page=False,
            GET=own.get_grant,
            POST=own.end_grant,
            DELETE=own.end_grant,
        ),
        route(
            CREDENTIALS_PATH,
            is_page=False,
            GET=own.list_credentials,
            POST=own.create_credential,
        ),
        route(
            f"{CREDENTIALS_PATH}/{{id}}",
            is_page=False,
            GET=own.get_credential,
            POST=own.end_credential,
            DELETE=own.end_credential,
        ),
    )


def terms_routes(guard: SessionGuard, terms: NewTermsPage) -> tuple[Route, ...]:
    """The route of the page that asks for the acceptance of new terms."""
    return (guard.route(NEW_TERMS, GET=terms.get, POST=terms.post),)


def second_factor_routes(
    guard: SessionGuard,
    second_step: SecondStepPages,
    two_factor: TwoFactorPages,
    recovery: RecoveryPage,
) -> tuple[Route, ...]:
    """The routes for what people need besides the password, and for a lost one."""
    route = guard.route
    return (
        route(SECOND_FACTOR_PATH, GET=second_step.get, POST=second_step.post),
        route(SET_UP_PATH, GET=second_step.set_up, POST=second_step.finish_set_up),
        route(TWO_FACTOR_PATH, GET=two_factor.get, POST=two_factor.add_app),
        route(REMOVE_PATH, POST=two_factor.remove_app),
        route(CODES_PATH, POST=two_factor.renew_codes),
        route(PASSKEY_FACTOR_PATH, POST=two_factor.require_passkey),
        route(RECOVERY_PATH, GET=recovery.get, POST=recovery.post),
    )


def export_routes(guard: SessionGuard, pages: ExportPages) -> tuple[Route, ...]:
    """The routes for downloading a pod."""
    route = guard.route
    return (
        route(EXPORT_PATH, POST=pages.allow),
        route(f"{EXPORT_PATH}/{{file}}", GET=pages.get),
    )


def issuer_route(guard: SessionGuard, pages: IssuerPages) -> Route:
    """The route for the statement that names this provider in the profile."""
    return guard.route(ISSUER_PATH, is_page=False, GET=pages.get, POST=pages.restore)


def pod_token_routes(guard: SessionGuard, pages: PodTokenPages) -> tuple[Route, ...]:
    """The routes for the pod tokens of a person."""
    route = guard.route
    return (
        route(POD_TOKENS_PATH, is_page=False, GET=pages.list),
        route(
            f"{POD_TOKENS_PATH}/{{id}}",
            is_page=False,
            GET=pages.get,
            POST=pages.revoke,
            DELETE=pages.revoke,
        ),
    )


def certificate_routes(guard: SessionGuard, pages: CertificatePages) -> tuple[Route, ...]:
    """The routes for client certificates, on servers that accept them (A-160)."""
    route = guard.route
    return (
        route(CERTIFICATES_PATH, is_page=False, GET=pages.list, POST=pages.create),
        route(
            f"{CERTIFICATES_PATH}/{{id}}",
            is_page=False,
            GET=pages.get,
            POST=pages.remove,
            DELETE=pages.remove,
        ),
    )


def passkey_routes(
    guard: SessionGuard, endpoints: PasskeyEndpoints, pages: PasskeyPages
) -> tuple[Route, ...]:
    """The routes for passkeys, on servers whose URL allows them (A-115)."""
    route = guard.route
    one = f"{PASSKEYS_PATH}/{{id}}"
    return (
        route(f"{PASSKEY_PATH}/register/options", POST=endpoints.creation_options),
        route(f"{PASSKEY_PATH}/register/verify", POST=endpoints.add),
        route(f"{PASSKEY_PATH}/login/options", POST=endpoints.request_options),
        route(f"{PASSKEY_PATH}/login/verify", POST=endpoints.sign_in),
        route(f"{INTERACTION_PATH}/{{uid}}/passkey-complete", GET=endpoints.complete),
        route(PASSKEYS_PATH, is_page=False, GET=pages.list),
        route(
            one,
            is_page=False,
            GET=pages.get,
            POST=pages.remove,
            PATCH=pages.rename,
            DELETE=pages.remove,
        ),
        route(f"{one}/name", POST=pages.rename),
    )


def nostr_key_routes(guard: SessionGuard, endpoints: NostrKeyEndpoints) -> tuple[Route, ...]:
    """The routes for Nostr keys, on servers that accept signed events."""
    route = guard.route
    return (
        route(CHALLENGE_PATH, POST=endpoints.challenge),
        route(KEYS_PATH, is_page=False, GET=endpoints.list, POST=endpoints.link),
        route(
            f"{KEYS_PATH}/{{key}}",
            is_page=False,
            GET=endpoints.get,
            POST=endpoints.unlink,
            DELETE=endpoints.unlink,
        ),
    )


def profile_key_routes(guard: SessionGuard, endpoints: ProfileKeyEndpoints) -> tuple[Route, ...]:
    """The routes for the Nostr keys that profiles name."""
    route = guard.route
    return (
        route(PROFILE_KEYS_PATH, is_page=False, GET=endpoints.list, POST=endpoints.allow),
        route(
            f"{PROFILE_KEYS_PATH}/{{key}}",
            is_page=False,
            GET=endpoints.get,
            POST=endpoints.end,
            DELETE=endpoints.end,
        ),
    )


def nostr_sign_in_routes(guard: SessionGuard, endpoints: NostrSignInEndpoints) -> tuple[Route, ...]:
    """The routes for signing in with a Nostr key."""
    route = guard.route
    interaction = f"{INTERACTION_PATH}/{{uid}}"
    return (
        route(SIGN_IN_PATH, POST=endpoints.sign_in),
        route(f"{interaction}/schnorr-login", POST=endpoints.sign_in_to_interaction),
        route(f"{interaction}/schnorr-complete", GET=endpoints.complete),
    )
