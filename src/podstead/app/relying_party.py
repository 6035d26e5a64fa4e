"""Signing in at providers elsewhere: this server as a relying party."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.authn.relying_party.providers import Providers
from podstead.authn.relying_party.sign_ins import ExternalSignIns, OwnClient, ProviderResponse
from podstead.core import errors, identifiers, media_types, operation
from podstead.core.request_context import requester_address
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.web import asgi, authority
from podstead.web.pages.addresses import CALLBACK, CLIENT_DOCUMENTS
from podstead.web.request import Request
from podstead.web.routes import Route

if TYPE_CHECKING:
    from podstead.app.services import Services


class InProcessProvider:
    """Asks the endpoints of the provider."""

    def __init__(self, issuer: str, routes: Sequence[Route], others: DocumentFetcher) -> None:
        """``others`` fetches what is not the provider's."""
        self._issuer = issuer
        self._host = urlsplit(issuer).netloc
        self._routes = {route.path: route for route in routes}
        self._others = others

    def holds(self, url: str) -> bool:
        """Whether a URL is the provider's."""
        return url.startswith(f"{self._issuer}/")

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """The document at the URL. Raises OutboundError."""
        if not self.holds(url):
            return await self._others.fetch(url, purpose)
        answered = await self._ask("GET", url, b"", {})
        return FetchedDocument(answered.content, media_types.JSON, url)

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> ProviderResponse:
        """The response to a POST. Raises OutboundError and what the endpoint raises."""
        return await self._ask("POST", url, content, headers)

    async def _ask(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> ProviderResponse:
        path = identifiers.ResourcePath(url.removeprefix(self._issuer))
        route = self._routes.get(path)
        endpoint = None if route is None else route.endpoints.get(method)
        if endpoint is None:
            raise errors.OutboundError("The provider has no such address")
        request = Request(
            method=method,
            path=path,
            fields=asgi.HeaderFields(
                (name.lower().encode("ascii"), value.encode("ascii"))
                for name, value in headers.items()
            ),
            body=operation.InMemoryBody(content),
            client_address=requester_address() or "",
            host=self._host,
            raw_path=path.encode("ascii"),
            query=b"",
        )
        response = await endpoint(request, None)
        fields = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        }
        body = response.body
        return ProviderResponse(response.status, body if isinstance(body, bytes) else b"", fields)


@dataclass(frozen=True, slots=True)
class _ProviderRequests:
    """Sends requests to providers."""

    others: ForeignDocuments
    own: InProcessProvider | None

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> ProviderResponse:
        if self.own is not None and self.own.holds(url):
            return await self.own.ask(url, content, headers)
        response = await self.others.ask(url, content, headers, Purpose.PROVIDER)
        return ProviderResponse(response.status, response.content, response.fields)


def own_client(base_url: str) -> OwnClient:
    """What this server is to providers."""
    return OwnClient(
        name=f"Podstead ({urlsplit(base_url).netloc})",
        uri=f"{base_url}/",
        callback=base_url + CALLBACK,
        documents=base_url + CLIENT_DOCUMENTS,
        # Nobody else can read a document of this machine.
        has_reachable_documents=not authority.is_loopback_url(base_url),
    )


def external_sign_ins(services: Services) -> ExternalSignIns:
    """What signing in elsewhere consists of."""
    own = None
    if services.settings.idp_base_url and services.provider is not None:
        routes = services.provider.routes
        own = InProcessProvider(services.settings.issuer, routes, services.foreign)
    return ExternalSignIns(
        client=services.own_client,
        providers=Providers(
            documents=own or services.foreign,
            web_ids=services.web_ids,
            lookups=services.lookups,
            rules=services.token_rules,
        ),
        asks=_ProviderRequests(services.foreign, own),
        id_tokens=services.id_tokens,
        records=services.records,
    )
