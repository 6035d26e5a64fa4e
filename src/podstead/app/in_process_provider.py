"""Requests of this server to its own provider, if that has an origin of its own.

The server sends no requests to itself over the network (A-190). What the pages need of the provider
is asked of its endpoints directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from podstead.authn.relying_party.sign_ins import Answered
from podstead.core.errors import OutboundError
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import JSON
from podstead.core.operation import InMemoryBody
from podstead.core.request_context import requester_address
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.web.asgi import HeaderFields
from podstead.web.request import Request
from podstead.web.routes import Route


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
        return FetchedDocument(answered.content, JSON, url)

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> Answered:
        """The response to a POST. Raises OutboundError and what the endpoint raises."""
        return await self._ask("POST", url, content, headers)

    async def _ask(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> Answered:
        path = ResourcePath(url.removeprefix(self._issuer))
        route = self._routes.get(path)
        endpoint = None if route is None else route.endpoints.get(method)
        if endpoint is None:
            raise OutboundError("The provider has no such address")
        request = Request(
            method=method,
            path=path,
            fields=HeaderFields(
                (name.lower().encode("ascii"), value.encode("ascii"))
                for name, value in headers.items()
            ),
            body=InMemoryBody(content),
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
        return Answered(response.status, body if isinstance(body, bytes) else b"", fields)
