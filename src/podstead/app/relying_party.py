"""How is signing in at providers elsewhere built?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from podstead.app.authentication import CredentialVerification
from podstead.app.in_process_provider import InProcessProvider
from podstead.authn.identity_status import LocalWebIds
from podstead.authn.relying_party.id_tokens import IdTokens
from podstead.authn.relying_party.providers import Providers
from podstead.authn.relying_party.sign_ins import Answered, ExternalSignIns, OwnClient
from podstead.config import Settings
from podstead.outbound.foreign_documents import DocumentFetcher
from podstead.storage.record_store import RecordStore
from podstead.web.authority import is_loopback_url
from podstead.web.cookies import CookieJar
from podstead.web.pod_pages.addresses import CALLBACK, CLIENT_DOCUMENTS
from podstead.web.pod_pages.people import People
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.sign_in.external_provider_page import (
    ClientDocument,
    ExternalProviderPage,
)
from podstead.web.pod_pages.sign_in.external_sessions import PeopleByExternalSession
from podstead.web.routes import Route


class ProviderResponse(Protocol):
    """The response to a request to another server."""

    @property
    def status(self) -> int: ...
    @property
    def content(self) -> bytes: ...
    @property
    def fields(self) -> Mapping[str, str]: ...


class OtherServers(DocumentFetcher, Protocol):
    """Sends requests to other servers."""

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> ProviderResponse:
        """The response to a POST. Raises OutboundError."""


@dataclass(frozen=True, slots=True)
class _Asks:
    """Sends requests to providers."""

    others: OtherServers
    own: InProcessProvider | None

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> Answered:
        if self.own is not None and self.own.holds(url):
            return await self.own.ask(url, content, headers)
        response = await self.others.ask(url, content, headers)
        return Answered(response.status, response.content, response.fields)


def own_client(base_url: str) -> OwnClient:
    """What this server is to providers."""
    return OwnClient(
        name=f"Podstead ({urlsplit(base_url).netloc})",
        uri=f"{base_url}/",
        callback=base_url + CALLBACK,
        documents=base_url + CLIENT_DOCUMENTS,
        # Nobody else can read a document of this machine.
        has_reachable_documents=not is_loopback_url(base_url),
    )


class ExternalSignIn:
    """What signing in elsewhere consists of, for one worker."""

    def __init__(
        self,
        settings: Settings,
        *,
        verification: CredentialVerification,
        others: OtherServers,
        provider_routes: Sequence[Route],
        records: RecordStore,
    ) -> None:
        """``provider_routes`` are those of this server's provider, if it has one."""
        own = None
        if settings.idp_base_url:
            own = InProcessProvider(settings.issuer, provider_routes, others)
        base_url = settings.base_url
        self._records = records
        self._local: LocalWebIds = verification.profiles.local
        self._id_tokens = IdTokens(
            issuers=verification.issuers,
            web_ids=verification.web_ids,
            own=verification.own,
            rules=verification.token_rules,
            clock=records.clock,
        )
        client = own_client(base_url)
        self._visits = ExternalSignIns(
            client=client,
            providers=Providers(
                documents=own or others,
                web_ids=verification.web_ids,
                lookups=verification.lookups,
                rules=verification.token_rules,
            ),
            asks=_Asks(others, own),
            id_tokens=self._id_tokens,
            records=records,
        )
        self.document = ClientDocument(client)

    def people(self, cookies: CookieJar) -> PeopleByExternalSession:
        """The people who are signed in by other providers."""
        return PeopleByExternalSession(
            records=self._records, id_tokens=self._id_tokens, local=self._local, cookies=cookies
        )

    def page(
        self,
        *,
        people: PeopleByExternalSession,
        everybody: People,
        renderer: PageRenderer,
        cookies: CookieJar,
    ) -> ExternalProviderPage:
        """The page on which people sign in."""
        return ExternalProviderPage(
            visits=self._visits,
            people=people,
            everybody=everybody,
            renderer=renderer,
            cookies=cookies,
            randomness=self._records.randomness,
        )
