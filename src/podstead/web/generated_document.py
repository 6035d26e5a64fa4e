"""How is an RDF document answered that the server makes of what it knows, and nobody stores?

Descriptions of the server, its storages and its services are read-only and public, so there is no
access to decide and no resource to look up: a graph goes in, and out comes its representation with
what a client needs to ask again for nothing (P-23, P-24).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType

import msgspec

from podstead.core.conditional import Conditions
from podstead.core.conneg import choose
from podstead.core.errors import NotAcceptable
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, RDF_TYPES
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.graph import Dataset, Graph
from podstead.web.request import Request
from podstead.web.response import Response, conditional_response

_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """A document by what it says, and how it says that.

    ``json_ld`` is its JSON-LD, for documents that are read as JSON as well; it says what ``graph``
    does. ``offered`` are its media types, the one it is answered in unless asked otherwise first.
    """

    graph: Graph
    json_ld: Mapping[str, object] | None = None
    prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    offered: Sequence[str] = RDF_TYPES

    def choose(self, accept: str | None) -> str:
        """The media type that an Accept header asks for. Raises NotAcceptable."""
        media_type = choose(accept, self.offered)
        if media_type is None:
            raise NotAcceptable(f"This resource is available as {', '.join(self.offered)}")
        return media_type

    def content(self, media_type: str) -> bytes:
        """The document in one of its forms."""
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
    """The answer to a GET or HEAD of a document; ``allow`` are the methods of its address.

    It must follow from what is stored and configured alone. There is no Last-Modified: the
    entity tag is made of the content. Raises NotAcceptable and PreconditionFailed.
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
            if_match=fields.get(b"if-match"), if_none_match=fields.get(b"if-none-match")
        ),
        headers=[(b"cache-control", b"no-cache"), (b"allow", allow.encode("ascii"))],
    )
    response.of_stored_state = True
    response.valid_until_s = agent.expires_at_s if agent else None
    return response
