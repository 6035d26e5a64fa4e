"""What is the response to a GET of an RDF document that the server generates and does not store?

Descriptions of the server, its storages and its services are read-only and public, so there is no
access decision and no resource to look up. A graph goes in; its representation comes out, with an
entity tag for conditional requests (P-23, P-24).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType

import msgspec

from podstead.core.conditional import Conditions
from podstead.core.errors import NotAcceptable
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, RDF_TYPES, choose
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.graph import Dataset, Graph
from podstead.web.content_coding import if_none_match
from podstead.web.request import Request
from podstead.web.response import Response, conditional_response

_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """The content of a document, and the media types that it is available in.

    ``json_ld`` is the document in JSON-LD, if clients also read it as JSON; it has the same content
    as ``graph``. ``offered`` lists its media types, beginning with the default.
    """

    graph: Graph
    json_ld: Mapping[str, object] | None = None
    prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    offered: Sequence[str] = RDF_TYPES

    def choose(self, accept: str | None) -> str:
        """The media type that an Accept header prefers. Raises NotAcceptable."""
        media_type = choose(accept, self.offered)
        if media_type is None:
            raise NotAcceptable(f"This resource is available as {', '.join(self.offered)}")
        return media_type

    def content(self, media_type: str) -> bytes:
        """The document in one of its media types."""
        if media_type == JSON_LD and self.json_ld is not None:
            return msgspec.json.encode(self.json_ld)
        return serialize(Document(Dataset(self.graph), self.prefixes), media_type)


def generated_document(
    request: Request,
    agent: Identity | None,
    document: GeneratedDocument,
    *,
    allow: str = "OPTIONS, GET, HEAD",
) -> Response:
    """The response to a GET or HEAD of a document; ``allow`` lists the methods of its URL.

    The document must depend on the stored state and the configuration alone. There is no
    Last-Modified; the entity tag is a hash of the content. Raises NotAcceptable and
    PreconditionFailed.
    """
    fields = request.fields
    media_type = document.choose(fields.get(b"accept"))
    content = document.content(media_type)
    response = conditional_response(
        content,
        media_type,
        method=request.method,
        etag=f'"{blake2b(content, digest_size=_TAG_BYTES).hexdigest()}"',
        conditions=Conditions(
            if_match=fields.get(b"if-match"), if_none_match=if_none_match(fields)
        ),
        headers=[(b"cache-control", b"no-cache"), (b"allow", allow.encode("ascii"))],
    )
    response.of_stored_state = True
    response.valid_until_s = agent.holds_until_s if agent else None
    return response
