"""How do the provider's pages for people fit together?"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from podstead.app.accounts import AccountServices
from podstead.core.clock import Clock, Randomness
from podstead.idp.authorizations import Authorizations
from podstead.idp.clients import ClientDirectory
from podstead.idp.connections import Connections
from podstead.idp.keys import ProviderKeys
from podstead.idp.sessions import Sessions
from podstead.storage.protocol import Store
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.authorization_endpoint import AuthorizationEndpoint
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.cookies import Cookies
from podstead.web.idp.end_session_pages import EndSessionPages
from podstead.web.idp.interaction_pages import InteractionPages
from podstead.web.idp.login_page import LoginPage
from podstead.web.idp.pages import Pages, page_routes
from podstead.web.idp.registration_pages import RegistrationPages
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.self_service import SelfService
from podstead.web.idp.visits import Entrance
from podstead.web.registration import Registration
from podstead.web.routes import Route


@dataclass(frozen=True, slots=True)
class PageServices:
    """What the pages ask, besides accounts."""

    store: Store
    authorizations: Authorizations
    clients: ClientDirectory
    keys: ProviderKeys
    registration: Registration
    clock: Clock
    randomness: Randomness


def build_pages(
    base_url: str, *, accounts: AccountServices, services: PageServices
) -> tuple[Route, ...]:
    """Every address of the provider for people, of one worker."""
    store, clock, randomness = services.store, services.clock, services.randomness
    audit, authorizations = accounts.audit, services.authorizations
    url = urlsplit(base_url)
    cookies = Cookies(secure=url.scheme == "https")
    renderer = Renderer(url.netloc, randomness)
    sessions = Sessions(store=store, clock=clock, randomness=randomness)
    connections = Connections(store=store, clock=clock, randomness=randomness)
    sign_in = BrowserSignIn(
        passwords=accounts.sign_in, sessions=sessions, cookies=cookies, base_url=base_url
    )
    login = LoginPage(
        sign_in=sign_in, renderer=renderer, registration_open=services.registration.is_open
    )
    pages = Pages(
        authorization=AuthorizationEndpoint(
            authorizations=authorizations,
            login=login,
            renderer=renderer,
            counters=store,
            clock=clock,
        ),
        interactions=InteractionPages(
            authorizations=authorizations,
            sign_in=sign_in,
            renderer=renderer,
            audit=audit,
            base_url=base_url,
            registration_open=services.registration.is_open,
        ),
        login=login,
        registration=RegistrationPages(
            accounts=accounts.accounts,
            authorizations=authorizations,
            sign_in=sign_in,
            registration=services.registration,
            renderer=renderer,
            base_url=base_url,
        ),
        account=AccountPages(
            accounts=accounts.accounts,
            sessions=sessions,
            connections=connections,
            credentials=accounts.credentials,
            sign_in=sign_in,
            cookies=cookies,
            renderer=renderer,
            audit=audit,
            base_url=base_url,
        ),
        self_service=SelfService(
            sessions=sessions,
            connections=connections,
            credentials=accounts.credentials,
            cookies=cookies,
            renderer=renderer,
            audit=audit,
            base_url=base_url,
        ),
        end_session=EndSessionPages(
            issuer=base_url,
            keys=services.keys,
            clients=services.clients,
            sessions=sessions,
            connections=connections,
            cookies=cookies,
            renderer=renderer,
            audit=audit,
        ),
    )
    entrance = Entrance(
        origin=base_url,
        sessions=sessions,
        cookies=cookies,
        renderer=renderer,
        randomness=randomness,
    )
    return page_routes(entrance, pages)
