"""What do the IRIs in access rules name: a resource, an origin, or an agent?

IRIs from documents come in many spellings and are compared in their canonical one (W-11). Pure
string work; what cannot be understood names nothing.
"""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.core.iris import canonical_url

_NOSTR_DID = "did:nostr:"


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
