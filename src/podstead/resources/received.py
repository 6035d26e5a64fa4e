"""How is the body of a write received?

The body is checked against its limits and staged in the store, which changes no resource yet. RDF
is received as a whole, because it will be parsed; other content is streamed into the store.
"""

from __future__ import annotations

from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest, BodyTooLarge, Conflict, UnsupportedMediaType
from podstead.core.identifiers import is_container
from podstead.core.media_types import essence, parse_media_type
from podstead.core.operation import Operation
from podstead.core.value import Value
from podstead.core.vocab import LDP_BASIC_CONTAINER, LDP_CONTAINER, LDP_NON_RDF_SOURCE
from podstead.resources.codes import ResourceCodes
from podstead.resources.documents import Documents, is_rdf
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Body, InlineBody

_CONTAINER_TYPES = frozenset({LDP_CONTAINER, LDP_BASIC_CONTAINER})


class UploadedOperation(Operation, frozen=True):
    """A PUT whose body is in the store already: ``draft`` is that of a finished upload."""

    draft: str = ""


class ReceivedBody(Value):
    """One received body.

    ``rdf`` holds the bytes of an RDF body and is ``None`` for other types. ``empty`` means that the
    request had no content at all, which differs from a document without triples.
    """

    content_type: str
    body: Body
    empty: bool
    rdf: bytes | None = None


def check_content_type(operation: Operation) -> None:
    """Refuse a write without a Content-Type (P-6), unless it creates a container and has no body
    (C-9).

    Depends on the request only. Raises BadRequest.
    """
    if operation.content_type is not None:
        parse_media_type(operation.content_type)
        return
    puts_container = operation.method == "PUT" and is_container(operation.target)
    if operation.body.announced or not (puts_container or requests_container(operation)):
        raise BadRequest("The Content-Type header is missing")


def requests_container(operation: Operation) -> bool:
    """Whether a Link header of the request gives a container type (C-8)."""
    return not _CONTAINER_TYPES.isdisjoint(operation.link_types)


def is_empty_container(operation: Operation, received: ReceivedBody) -> bool:
    """Whether a PUT only requests that a container exist, because it has no content."""
    return received.empty and is_container(operation.target)


def check_type_links(operation: Operation) -> None:
    """Refuse a PUT whose type link contradicts its URL (C-10, C-11). Raises Conflict."""
    if is_container(operation.target):
        if LDP_NON_RDF_SOURCE in operation.link_types:
            raise Conflict("A URL that ends in a slash identifies a container, which must be RDF")
    elif requests_container(operation):
        raise Conflict(ResourceCodes.SLASH_MISSING)


class BodyReceiver:
    """Receives and stages request bodies."""

    def __init__(self, *, store: ResourceStore, documents: Documents, max_body_bytes: int) -> None:
        self._store = store
        self._documents = documents
        self._max_body_bytes = max_body_bytes

    async def receive(self, operation: Operation, *, only_rdf: bool) -> ReceivedBody:
        """Receive the body of a write.

        ``only_rdf`` for targets that must be RDF (containers, ACLs, descriptions). Raises
        UnsupportedMediaType, BodyTooLarge, BodyTimeout, BadRequest.
        """
        content_type = operation.content_type or DEFAULT_DESCRIPTION_TYPE
        if is_container(operation.target) and only_rdf and not operation.body.announced:
            # Without content, the media type means nothing (P-7, C-8, C-9).
            return ReceivedBody(DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), empty=True, rdf=b"")
        if is_rdf(content_type):
            content = await operation.body.read(limit_bytes=self._documents.max_bytes)
            body = await self._store.stage_body(content)
            return ReceivedBody(content_type, body, empty=not content, rdf=content)
        if only_rdf:
            raise UnsupportedMediaType(ResourceCodes.RDF_REQUIRED, media_type=essence(content_type))
        if isinstance(operation, UploadedOperation):
            size_bytes = operation.body.size_bytes or 0
            body = await self._store.stage_upload(
                operation.draft, size_bytes, content_type=content_type
            )
        else:
            chunks = operation.body.chunks(limit_bytes=self._max_body_bytes)
            body = await self._store.stage_body(chunks, content_type=content_type)
        return ReceivedBody(content_type, body, empty=body.size_bytes == 0)

    def check_size(self, operation: Operation) -> None:
        """Refuse a body whose announced length exceeds its limit. Raises BodyTooLarge."""
        limit_bytes = self._max_body_bytes
        if is_rdf(operation.content_type or DEFAULT_DESCRIPTION_TYPE):
            limit_bytes = min(limit_bytes, self._documents.max_bytes)
        if (operation.body.size_bytes or 0) > limit_bytes:
            raise BodyTooLarge(CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)

    async def discard(self, received: ReceivedBody) -> None:
        """Discard the staged body of a refused write."""
        await self._store.discard(received.body)
