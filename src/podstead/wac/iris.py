"""What do the IRIs in access rules name: a resource, an origin, or an agent?

IRIs from documents come in many spellings and are compared in their canonical one (W-11). Pure
string work; what cannot be understood names nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path

_HTTP_IRI = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@]+)(?P<path>/[^?#]*)?\Z", re.IGNORECASE
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_NOSTR_DID = "did:nostr:"


@lru_cache(maxsize=4096)
def canonical_url(iri: str) -> str | None:
    """The one spelling of an ``http(s)`` IRI: scheme and host in lower case, no default port, the
    path as :func:`podstead.core.identifiers.parse_path` makes it.

    ``None`` for other schemes, and for IRIs with a query, fragment or user name: those name no
    resource that rules could be about.
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


def origin_of(iri: str) -> str | None:
    """A web origin as browsers serialise it (RFC 6454 section 6.2); ``None`` if the IRI is more or
    other than that, the opaque origin ``null`` included."""
    url = canonical_url(iri)
    if url is None or url.count("/") != 3 or not url.endswith("/"):
        return None
    return url[:-1]


def local_path(iri: str, base_url: str) -> ResourcePath | None:
    """The canonical path of a resource of this server, whose own origin ``base_url`` is; ``None``
    if the IRI names none."""
    url, own = canonical_url(iri), canonical_url(base_url)
    if url is None or own is None or not url.startswith(own):
        return None
    return ResourcePath(url[len(own) - 1 :])


def agent_name(iri: str) -> str:
    """The spelling under which an agent's IRI compares: as it is, but for the hexadecimal key of
    a ``did:nostr``, whose case means nothing (A-150)."""
    return iri.lower() if iri.startswith(_NOSTR_DID) else iri
