"""What is the entity tag of a representation? ``"<version>-<form>"`` (P-24).

The form holds no hyphen, so a version part ends at the last one.

A container's version part joins its own version and its members' (P-25): the tag changes with its
description and with everything that its listing shows.
"""

from __future__ import annotations

from podstead.core.media_types import TURTLE, essence
from podstead.storage.records import Metadata

_FORMS = {
    "text/turtle": "ttl",
    "application/ld+json": "jld",
    "application/n-triples": "nt",
    "application/n-quads": "nq",
    "application/trig": "trig",
    "text/n3": "n3",
    "application/rdf+xml": "rdf",
}


def state_version(metadata: Metadata) -> str:
    """The version part of a resource's entity tags."""
    if metadata.members_version is None:
        return metadata.version
    return f"{metadata.version}.{metadata.members_version}"


def entity_tag(metadata: Metadata, media_type: str, *, without_members: bool = False) -> str:
    """The strong entity tag of one representation, with its quotes.

    ``without_members`` is that of a container as it would be if it were empty.
    """
    form = _FORMS.get(media_type, "b") + (".min" if without_members else "")
    return f'"{state_version(metadata)}-{form}"'


def stored_tag(metadata: Metadata) -> str:
    """The entity tag of the representation that is stored, or that a container has by default."""
    if metadata.kind.is_container:
        return entity_tag(metadata, TURTLE)
    return entity_tag(metadata, essence(metadata.content_type))


def last_modified_ms(metadata: Metadata) -> int:
    """When the resource changed, in Unix milliseconds: of a container, the later of its own
    change and the last change of its membership (P-8), as If-Modified-Since needs."""
    return max(metadata.modified_ms, metadata.members_modified_ms or 0)
