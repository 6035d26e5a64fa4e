"""How are the parts of the identity provider built? Imported only if the provider is on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from podstead.app.accounts import AccountServices
from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.one_time_passwords import PyotpPasswords
from podstead.app.adapters.own_certificates import make_in_thread
from podstead.app.adapters.profile_patches import AccountProfiles
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.stored_audit import StoredAudit
from podstead.app.console import build_console
from podstead.app.idp_pages import PageServices, build_pages
from podstead.app.nostr_keys import NostrServices, build_nostr
from podstead.app.registration import terms_hash
from podstead.app.relying_party import own_client
from podstead.authn.event_uses import EventUses
from podstead.authn.identity_status import LocalWebIds
from podstead.authn.proofs import Proofs
from podstead.authn.relying_party.sign_ins import OwnClient
from podstead.authn.resource_tokens import ResourceTokens
from podstead.authn.web_id_documents import ProfileSources
from podstead.config import Settings
from podstead.core.errors import OutboundError, RequestRefused
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.core.media_types import JSON_LD, essence
from podstead.core.operation import InMemoryBody, Operation
from podstead.idp import discovery
from podstead.idp.administration.slow_requests import SlowRequests
from podstead.idp.audit import AuditEvent
from podstead.idp.authorizations import Authorizations
from podstead.idp.certificates import CertificateKeys
from podstead.idp.clients import ClientDirectory, ClientDocuments
from podstead.idp.last_sign_ins import LastSignIns
from podstead.idp.own_tokens import OwnTokens
from podstead.idp.passkeys.ceremonies import relying_party
from podstead.idp.profile_issuer import IssuerRestoration, ProfileIssuer
from podstead.idp.request_notices import MailedRequests
from podstead.idp.sessions import Sessions
from podstead.idp.token_service import TokenService
from podstead.idp.token_status import TokenStatus
from podstead.idp.two_factor.second_step import SecondStep
from podstead.idp.two_factor.service import TwoFactors
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.rdf.parser import RdfParser
from podstead.resources.exporting.contents import RepositoryBundler
from podstead.resources.outcome import Representation, ResourceRequest
from podstead.resources.service import ResourceService
from podstead.web.authority import is_loopback_url
from podstead.web.cors import Sharing
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.cookies import Cookies
from podstead.web.idp.credentials_endpoint import CREDENTIALS_PATH, CredentialsEndpoint
from podstead.web.idp.did_documents import DOCUMENT_PATH, DidDocumentEndpoint
from podstead.web.idp.page_people import PeopleByAccount
from podstead.web.idp.person_pages import OwnAccountPages
from podstead.web.idp.pods_with_accounts import PodsWithAccounts
from podstead.web.idp.protocol import ProtocolEndpoints
from podstead.web.idp.userinfo_endpoint import UserinfoEndpoint
from podstead.web.limits import InvalidCredentialLimit
from podstead.web.pod_pages.addresses import REQUESTS
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.registration import Registration
from podstead.web.routes import Access, Endpoint, Route

if TYPE_CHECKING:
    from podstead.app.mailing import MailSender

_MAX_CLIENT_DOCUMENT_BYTES = 64 * 1024


class Provider:
    """The identity provider of one worker."""

    def __init__(
        self,
        settings: Settings,
        *,
        accounts: AccountServices,
        audit: StoredAudit,
        foreign: DocumentFetcher,
        parse: RdfParser,
    ) -> None:
        store, clock = accounts.records.store, accounts.records.clock
        self.issuer = settings.issuer
        self.accounts = accounts
        self.audit = audit
        self.two_factors = TwoFactors(
            records=accounts.records,
            passwords=PyotpPasswords(),
            audit=accounts.audit,
            demanded=settings.require_two_factor,
        )
        self.second_step = SecondStep(
            records=accounts.records,
            accounts=accounts.accounts,
            two_factors=self.two_factors,
            attempts=accounts.attempts,
            known_browsers=accounts.known_browsers,
            audit=accounts.audit,
        )
        self.slow_requests = SlowRequests(accounts.records)
        self.pod_maker = PodsWithAccounts(accounts.accounts, issuer=self.issuer)
        self.keys = KeyFolder(key_storage(settings), clock)
        local = LocalWebIds(settings.base_url, accounts.accounts)
        self.profile_issuer = ProfileIssuer(
            self.issuer, ProfileSources(local, store, foreign, parse, clock)
        )
        self.own = OwnTokens(
            issuer=self.issuer,
            store=store,
            keys=self.keys,
            profile_issuer=self.profile_issuer,
            clock=clock,
        )
        self._settings = settings
        self.mail = _mail_sender(settings, accounts)
        self._account_pages: AccountPages | None = None

    def routes(
        self,
        *,
        proofs: Proofs,
        resource_tokens: ResourceTokens,
        resources: ResourceService,
        foreign: ClientDocuments,
        parse: RdfParser,
        registration: Registration,
        nostr: NostrServices | None,
        profiles: ProfileSources,
        bundles: RepositoryBundler | None,
    ) -> tuple[Route, ...]:
        """All routes of the provider; ``nostr`` is ``None`` if the server does not accept signed
        events, and ``bundles`` if it does not run git."""
        settings, records = self._settings, self.accounts.records
        store, clock = records.store, records.clock
        loopback = is_loopback_url(settings.base_url)
        clients = ClientDirectory(
            records=records,
            documents=ClientDocumentReader(
                settings.base_url, resources, foreign, own=own_client(settings.base_url)
            ),
            parse=parse,
            allow_http=loopback,
        )
        status = TokenStatus(
            own=self.own,
            records=records,
            allow_loopback=loopback,
        )
        userinfo = UserinfoEndpoint(
            issuer=self.issuer,
            status=status,
            proofs=proofs,
            resource_tokens=resource_tokens,
            invalid_credentials=InvalidCredentialLimit(
                counters=store, clock=clock, per_minute=settings.invalid_credentials_per_minute
            ),
        )
        protocol = ProtocolEndpoints(
            issuer=self.issuer,
            tokens=TokenService(
                issuer=self.issuer,
                records=records,
                clients=clients,
                keys=self.keys,
                audit=self.accounts.audit,
            ),
            status=status,
            clients=clients,
            keys=self.keys,
            proofs=proofs,
            counters=store,
            registrations_per_hour=settings.registrations_per_hour,
            registration_open=not registration.is_closed,
            clock=clock,
        )
        authorizations = Authorizations(
            issuer=self.issuer,
            records=records,
            clients=clients,
            keys=self.keys,
        )
        credentials = CredentialsEndpoint(
            issuer=self.issuer,
            sign_in=self.accounts.sign_in,
            keys=self.keys,
            proven_key=protocol.proven_key,
            randomness=records.randomness,
            last_sign_ins=LastSignIns(records),
            two_factors=self.two_factors,
        )
        own_profiles = AccountProfiles(base_url=settings.base_url, resources=resources)
        pages = build_pages(
            settings.issuer,
            pods_url=settings.base_url,
            accounts=self.accounts,
            services=PageServices(
                authorizations=authorizations,
                bundles=bundles,
                clients=clients,
                keys=self.keys,
                registration=registration,
                terms_text=settings.terms_text,
                sends_mail=settings.mail is not None,
                party=relying_party(
                    settings.issuer,
                    rp_id=settings.passkey_rp_id,
                    further_origins=settings.passkey_origins,
                ),
                nostr=nostr,
                two_factors=self.two_factors,
                second_step=self.second_step,
                passkey_requests_per_minute=settings.passkey_requests_per_minute,
                certificates=(
                    CertificateKeys(
                        sources=profiles,
                        profiles=own_profiles,
                        issue=make_in_thread,
                        records=records,
                        audit=self.accounts.audit,
                    )
                    if settings.webid_tls
                    else None
                ),
                profile_issuer=self.profile_issuer,
                restoration=IssuerRestoration(
                    issuer=self.issuer, profiles=own_profiles, audit=self.accounts.audit
                ),
            ),
        )
        self._account_pages = pages.account
        routes = (
            *protocol_routes(protocol, userinfo, credentials),
            *pages.routes,
            *build_console(
                settings,
                about=registration.about,
                accounts=self.accounts,
                people=self.people(),
                slow=self.slow_requests,
                two_factors=self.two_factors,
                second_step=self.second_step,
                own_account=self.own_account,
            ),
        )
        if nostr is None:
            return routes
        documents = DidDocumentEndpoint(links=nostr.links, accounts=self.accounts.accounts)
        return (*routes, _protocol_route(DOCUMENT_PATH, GET=documents.get, HEAD=documents.get))

    def note_refused_invitation(self) -> None:
        """Log that somebody sent a wrong code."""
        self.audit.note(AuditEvent.INVITATION_REFUSED)

    def request_notices(self) -> MailedRequests:
        """What tells owners by mail that somebody asks them for access."""
        records, accounts = self.accounts.records, self.accounts.accounts
        return MailedRequests(records, accounts, link=self._settings.base_url + REQUESTS)

    def people(self) -> PeopleByAccount:
        """The people who are signed in to their accounts, for pages at the provider's origin."""
        secure = self.issuer.startswith("https:")
        return PeopleByAccount(
            sessions=Sessions(self.accounts.records),
            cookies=Cookies(secure=secure),
            terms_hash=terms_hash(self._settings),
        )

    def own_account(self, renderer: PageRenderer) -> OwnAccountPages | None:
        """What the pages of pods show of a person's account; ``None`` before :meth:`routes`."""
        if self._account_pages is None:
            return None
        return OwnAccountPages(
            account=self._account_pages,
            sessions=Sessions(self.accounts.records),
            cookies=Cookies(secure=self.issuer.startswith("https:")),
            renderer=renderer,
        )

    def nostr(
        self,
        *,
        resources: ResourceService,
        parse: RdfParser,
        uses: EventUses,
    ) -> NostrServices:
        """The services for the Nostr keys of accounts."""
        return build_nostr(
            self._settings.base_url,
            accounts=self.accounts,
            resources=resources,
            parse=parse,
            uses=uses,
        )


def _mail_sender(settings: Settings, accounts: AccountServices) -> MailSender | None:
    if settings.mail is None:
        return None
    from podstead.app.mailing import build_mail_sender  # others need not load it

    return build_mail_sender(settings, settings.mail, accounts)


def protocol_routes(
    protocol: ProtocolEndpoints, userinfo: UserinfoEndpoint, credentials: CredentialsEndpoint
) -> tuple[Route, ...]:
    """The routes of requests that applications send without a user."""
    route = _protocol_route
    description = {"GET": protocol.describe, "HEAD": protocol.describe}
    return (
        _document_route(discovery.OPENID_PATH, **description),
        _document_route(discovery.OAUTH_PATH, **description),
        _document_route(discovery.JWKS_PATH, GET=protocol.key_set, HEAD=protocol.key_set),
        route(discovery.TOKEN_PATH, POST=protocol.token),
        route(discovery.INTROSPECTION_PATH, POST=protocol.introspect),
        route(discovery.REVOCATION_PATH, POST=protocol.revoke),
        route(discovery.USERINFO_PATH, GET=userinfo.get, POST=userinfo.get),
        route(discovery.REGISTRATION_PATH, POST=protocol.register),
        route(
            f"{discovery.REGISTRATION_PATH}/{{client_id}}",
            GET=protocol.registration,
            DELETE=protocol.registration,
        ),
        route(
            CREDENTIALS_PATH,
            GET=credentials.describe,
            HEAD=credentials.describe,
            POST=credentials.post,
        ),
    )


def _document_route(path: str, **endpoints: Endpoint) -> Route:
    """A document that is the same for everybody and depends on no cookie: a page may request it
    with credentials too, as rdflib does with every request (WHATWG Fetch section 3.2)."""
    return Route(ResourcePath(path), endpoints, Access.OWN, Sharing.REFLECTED)


def _protocol_route(path: str, **endpoints: Endpoint) -> Route:
    return Route(ResourcePath(path), endpoints, Access.OWN, Sharing.ANYONE)


class ClientDocumentReader:
    """Reads client ID documents: those of this server as the public, others through ``foreign``.

    This server sends no requests to itself over the network (A-190).
    """

    def __init__(
        self,
        base_url: str,
        resources: ResourceService,
        foreign: ClientDocuments,
        *,
        own: OwnClient,
    ) -> None:
        """``own`` describes this server itself as a client."""
        self._base_url = base_url
        self._resources = resources
        self._foreign = foreign
        self._own = own

    async def origin_of(self, url: str) -> str | None:
        """The origin that a document is fetched from; ``None`` for a document of this server.
        Raises OutboundError."""
        return None if self._is_own(url) else await self._foreign.origin_of(url)

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self._base_url}/")

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """Fetch the document at the URL. Raises OutboundError."""
        if not self._is_own(url):
            return await self._foreign.fetch(url, purpose)
        if url.startswith(self._own.documents):
            content = self._own.document(url.removeprefix(self._own.documents))
            return FetchedDocument(content, JSON_LD, url)
        try:
            path = parse_path(url[len(self._base_url) :].encode())
            operation = Operation("GET", path, InMemoryBody(), accept="*/*")  # as it is stored
            outcome = await self._resources.handle(ResourceRequest(operation, None))
        except (RequestRefused, UnicodeEncodeError) as error:
            raise OutboundError("The client's document cannot be read") from error
        if outcome.representation is None:
            raise OutboundError("The client's document cannot be read")
        representation = outcome.representation
        media_type = essence(representation.content_type)
        return FetchedDocument(await _content(representation), media_type, url)


async def _content(representation: Representation) -> bytes:
    body = representation.body
    if body is None or isinstance(body, bytes):
        content = body or b""
    else:
        content = b""
        async for piece in body if isinstance(body, AsyncIterator) else body.chunks():
            content += piece
            if len(content) > _MAX_CLIENT_DOCUMENT_BYTES:
                break
    if len(content) > _MAX_CLIENT_DOCUMENT_BYTES:
        raise OutboundError("The client's document is too large")
    return content
