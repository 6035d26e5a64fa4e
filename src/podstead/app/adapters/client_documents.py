"""Client ID documents: those of this server are read as the public reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from podstead.authn.relying_party.sign_ins import OwnClient
from podstead.core.errors import OutboundError, RequestRefused
from podstead.core.identifiers import parse_path
from podstead.core.media_types import JSON_LD, essence
from podstead.core.operation import InMemoryBody, Operation
from podstead.idp.clients import ClientDocuments
from podstead.outbound.foreign_documents import FetchedDocument, Purpose
from podstead.resources.outcome import Representation, ResourceRequest
from podstead.resources.service import ResourceService

_MAX_CLIENT_DOCUMENT_BYTES = 64 * 1024


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
