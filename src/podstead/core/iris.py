"""Canonicalizes the HTTP IRIs of resources (P-50, W-11)."""

from __future__ import annotations

import re

from podstead.core.errors import BadRequest
from podstead.core.identifiers import parse_path
from podstead.core.memoization import memoize_short_keys

_HTTP_IRI = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@]+)(?P<path>/[^?#]*)?\Z", re.IGNORECASE
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@memoize_short_keys
def canonical_url(iri: str) -> str | None:
    """The canonical form of an ``http(s)`` IRI: scheme and host in lower case, no default port, the
    path as :func:`podstead.core.identifiers.parse_path` returns it.

    ``None`` for other schemes, and for IRIs with a query, fragment or user name, which do not
    identify a resource that access rules could apply to.
    """
    match = _HTTP_IRI.match(iri)
    if match is None:
        return None
    try:
        path = parse_path((match["path"] or "/").encode())
    except (BadRequest, UnicodeEncodeError):
        return None
    scheme, authority = match["scheme"].lower(), match["authority"].lower()
    return f"{scheme}://{authority.removesuffix(_DEFAULT_PORTS[scheme])}{path}"
