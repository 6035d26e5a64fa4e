"""How is an RDF document answered that the server makes of what it knows, and nobody stores?

Descriptions of the server and its storages are read-only and public, so there is no access to
decide and no resource to look up: a graph goes in, and out comes its representation with what a
client needs to ask again for nothing (P-23, P-24).
"""

from __future__ import annotations

from hashlib import blake2b

from podstead.core.agents import Agent
from podstead.core.conditional import Conditions, Verdict, evaluate_read
from podstead.core.conneg import choose
from podstead.core.errors import NotAcceptable
from podstead.core.media_types import RDF_TYPES
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import Graph
from podstead.web.asgi import Headers
from podstead.web.request import Request
from podstead.web.response import Response

_TAG_BYTES = 16


def made_document(request: Request, agent: Agent, graph: Graph) -> Response:
    """The answer to a GET or HEAD of a document that says ``graph``, Turtle unless asked otherwise.

    The graph must follow from what is stored and configured alone. There is no Last-Modified: the
    entity tag is made of the content. Raises NotAcceptable and PreconditionFailed.
    """
    fields = request.fields
    media_type = choose(fields.get(b"accept"), RDF_TYPES)
    if media_type is None:
        raise NotAcceptable(f"This can be had as {', '.join(RDF_TYPES)}")
    content = serialize(graph, media_type)
    etag = f'"{blake2b(content, digest_size=_TAG_BYTES).hexdigest()}"'
    headers: Headers = [
        (b"etag", etag.encode("ascii")),
        (b"cache-control", b"no-cache"),
        (b"allow", b"OPTIONS, GET, HEAD"),
    ]
    # Without a Last-Modified, conditions by time mean nothing (RFC 9110 section 13.1.3).
    conditions = Conditions(
        if_match=fields.get(b"if-match"), if_none_match=fields.get(b"if-none-match")
    )
    verdict = evaluate_read(conditions, etag=etag, modified_ms=0)
    response = Response(304, headers, of_stored_state=True)
    response.valid_until_s = agent.expires_at_s if agent else None
    if verdict is Verdict.PROCEED:
        response.status = 200
        response.headers += [
            (b"content-type", media_type.encode("ascii")),
            (b"content-length", str(len(content)).encode("ascii")),
        ]
        response.body = b"" if request.method == "HEAD" else content
    return response
