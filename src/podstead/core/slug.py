"""Chooses the name that a Slug header proposes (RFC 5023, section 9.7; C-4, C-5).

A Slug is a hint: characters that a name cannot contain are replaced, and a Slug that yields no name
is ignored, so that the caller chooses one. Only three things are refused: the name of an auxiliary
resource, a NUL, and a name that is too long (C-5). The caller checks whether the name is free.
"""

from __future__ import annotations

import re

from podstead.core.errors import AccessDenied, BadRequest
from podstead.core.identifiers import Auxiliary, encode_segment

MAX_NAME_BYTES = 255
"""The maximum length in bytes of UTF-8 before percent-encoding, as in most file systems."""

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_STRIPPED = "/ \t\r\n\f\v"
# P-50 allows no control characters in a path; a slash would start another segment.
_NOT_IN_A_NAME = re.compile(r"[/\x00-\x1f\x7f-\x9f]+")
_REPLACEMENT = "-"


def proposed_name(slug_header: bytes | None, *, wants_container: bool) -> str | None:
    """The percent-encoded path segment that the header proposes; a container's ends in ``/``.

    ``None`` if it proposes nothing usable. Raises AccessDenied for a name that ends like an
    auxiliary resource's, and BadRequest for one with a NUL or of more than MAX_NAME_BYTES of UTF-8.
    """
    name = _readable_name(slug_header or b"")
    if name in ("", ".", ".."):
        return None
    encoded = name.encode("utf-8")
    if len(encoded) > MAX_NAME_BYTES:
        raise BadRequest(f"The Slug is longer than {MAX_NAME_BYTES} bytes")
    # Also for containers: without its slash, `x.acl/` would be the ACL of `x`.
    if any(name.endswith(kind.value) for kind in Auxiliary):
        raise AccessDenied("The Slug names an auxiliary resource")
    return encode_segment(encoded) + ("/" if wants_container else "")


def _readable_name(slug_header: bytes) -> str:
    text = _decode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), slug_header))
    if "\x00" in text:
        raise BadRequest("The Slug contains a NUL")
    return _NOT_IN_A_NAME.sub(_REPLACEMENT, text.strip(_STRIPPED))


def _decode(raw: bytes) -> str:
    """Decode as UTF-8, otherwise as Latin-1, which old clients use in header fields."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
