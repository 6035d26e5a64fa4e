"""Reads an RDF document as an agent, through the service that answers GET."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from podstead.core.errors import NotFound, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import InMemoryBody, Operation
from podstead.rdf.codecs import Document
from podstead.resources.documents import Documents
from podstead.resources.outcome import Representation, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.open_body import whole_body
from podstead.storage.records import Version


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as an agent has read it."""

    document: Document
    content_type: str
    etag: str
    version: Version


async def read_rdf(
    resources: ResourceService, documents: Documents, agent: Identity | None, path: ResourcePath
) -> ReadDocument:
    """The document at a path, if the agent may read it.

    Raises what a GET raises, NotFound if something else is there, BadRequest if it is not RDF, and
    UnknownContext.
    """
    request = ResourceRequest(Operation("GET", path, InMemoryBody()), agent)
    outcome = await resources.handle(request)
    if outcome.result is not Result.REPRESENTED:
        raise NotFound
    metadata, etag = outcome.metadata, outcome.etag
    representation = outcome.representation
    if metadata is None or etag is None or representation is None:
        raise StorageError("The document has no content")
    content, content_type = await _content(representation), representation.content_type
    document = await documents.parse(content, content_type, path=path)
    return ReadDocument(document, content_type, etag, metadata.version)


async def _content(representation: Representation) -> bytes:
    body = representation.body
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, AsyncIterator):
        return b"".join([piece async for piece in body])
    return await whole_body(body)
