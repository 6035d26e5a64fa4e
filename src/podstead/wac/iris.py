"""Interprets the IRIs in access rules as resources, origins or agents.

One IRI can be spelled in many ways, so IRIs are compared in their canonical form (W-11). Pure. An
IRI that cannot be parsed names nothing.
"""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath, canonical_url

_NOSTR_DID = "did:nostr:"


def origin_of(iri: str) -> str | None:
    """A web origin as browsers serialize it (RFC 6454 section 6.2); ``None`` if the IRI is anything
    else, such as the opaque origin ``null``."""
    url = canonical_url(iri)
    if url is None or url.count("/") != 3 or not url.endswith("/"):
        return None
    return url[:-1]


def local_path(iri: str, base_url: str) -> ResourcePath | None:
    """The canonical path of the resource that the IRI names on this server, whose origin is
    ``base_url``; ``None`` if it names none."""
    url, own = canonical_url(iri), canonical_url(base_url)
    if url is None or own is None or not url.startswith(own):
        return None
    return ResourcePath(url[len(own) - 1 :])


def agent_name(iri: str) -> str:
    """The form in which an agent's IRI is compared: unchanged, except that the hexadecimal key of a
    ``did:nostr`` is case-insensitive (A-150)."""
    return iri.lower() if iri.startswith(_NOSTR_DID) else iri
