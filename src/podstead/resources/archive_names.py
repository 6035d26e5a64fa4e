"""Names the files of an archive so that any system can unpack it.

A name is one path segment: never absolute, never ``..``, without a drive letter, a separator or a
character that some system does not allow, and different from its siblings even if case is ignored.
Documents whose name says nothing about their media type get an extension.
"""

from __future__ import annotations

import mimetypes
import re
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

from podstead.core import media_types
from podstead.core.media_types import essence

MAX_NAME_BYTES: Final = 200
"""The longest name, in UTF-8. Common file systems allow 255 bytes; some add to them."""

_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*]')
# Windows reserves these names with any extension.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE)
_BIDIRECTIONAL = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_EXTENSIONS: Final = {
    media_types.TURTLE: ".ttl",
    media_types.JSON_LD: ".jsonld",
    media_types.N_TRIPLES: ".nt",
    media_types.N_QUADS: ".nq",
    media_types.TRIG: ".trig",
    media_types.N3: ".n3",
    media_types.RDF_XML: ".rdf",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/avif": ".avif",
}
_TYPES: Final = mimetypes.MimeTypes()
"""Python's own types, without those of the system."""
_OF_NO_TYPE: Final = frozenset({"application/octet-stream"})


def archive_name(segment: str, content_type: str | None) -> str:
    """The name of a resource by the last segment of its path, without the slash of a container.

    ``content_type`` is that of a document, ``None`` for a container.
    """
    decoded = unquote_to_bytes(segment).decode("utf-8", "replace")
    name = _BIDIRECTIONAL.sub("_", _FORBIDDEN.sub("_", unicodedata.normalize("NFC", decoded)))
    name = name.rstrip(". ") or "_"
    if name.startswith(" "):
        name = "_" + name.lstrip(" ")
    if _RESERVED.match(name):
        name = "_" + name
    extension = "" if content_type is None else _missing_extension(name, content_type)
    return _shortened(name, extension)


def _missing_extension(name: str, content_type: str) -> str:
    media_type = essence(content_type)
    known = _EXTENSIONS.get(media_type)
    if known is not None and name.lower().endswith(known):
        return ""
    guessed, _ = _TYPES.guess_type(f"x/{name}", strict=False)
    if guessed is not None or media_type in _OF_NO_TYPE:
        return ""
    return known or _TYPES.guess_extension(media_type, strict=False) or ""


def _shortened(name: str, extension: str) -> str:
    if len((name + extension).encode()) <= MAX_NAME_BYTES:
        return name + extension
    if not extension:
        stem, dot, last = name.rpartition(".")
        if dot and stem and len(last.encode()) <= 20:
            name, extension = stem, f".{last}"
    room = MAX_NAME_BYTES - len(extension.encode())
    return name.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + extension


class ArchiveFolder:
    """The names that are taken in one folder of an archive."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, name: str) -> str:
        """The name, with a number if a sibling has it already, ignoring case."""
        stem, dot, extension = name.rpartition(".")
        if not dot or not stem:
            stem, extension = name, ""
        proposed, number = name, 1
        while (key := _folded(proposed)) in self._taken:
            number += 1
            proposed = f"{stem} ({number}){dot if extension else ''}{extension}"
        self._taken.add(key)
        return proposed


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())
