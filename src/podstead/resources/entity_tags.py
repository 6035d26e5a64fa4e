"""Makes the entity tags of representations, ``"<version>-<form>"`` (P-24).

The form contains no hyphen, so the version part ends at the last one. The version part of a
container consists of its own version and that of its members (P-25): the tag changes with the
description and with everything that the listing shows.
"""

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
    """The strong entity tag of one representation, including the quotes.

    ``without_members`` selects the representation of a container without its members.
    """
    form = _FORMS.get(media_type, "b") + (".min" if without_members else "")
    return f'"{state_version(metadata)}-{form}"'


def stored_tag(metadata: Metadata) -> str:
    """The entity tag of the stored representation, or of a container's default representation."""
    if metadata.kind.is_container:
        return entity_tag(metadata, TURTLE)
    return entity_tag(metadata, essence(metadata.content_type))


def last_modified_ms(metadata: Metadata) -> int:
    """When the resource was last modified, in Unix milliseconds.

    For a container, the later of its own change and the last change of its membership (P-8).
    """
    return max(metadata.modified_ms, metadata.members_modified_ms or 0)
