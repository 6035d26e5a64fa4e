"""Reads a folder of plain files, such as that of a WebDAV server.

A file is a document of its name, with the media type of its extension or, if that is unknown, of
its first bytes. Properties that a WebDAV server keeps beside its files are not read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from podstead.core.media_types import HTML
from podstead.features.importers.extensions import OCTET_STREAM, extension_of, type_by_extension
from podstead.features.importers.folders import Folder, FolderEntry, Unreadable
from podstead.features.importers.values import FoundPod, FoundResource, LeftOut
from podstead.features.importers.walking import SUFFIXES, resources_of, segment_of

RESERVED: Final = "Names that end in .acl or .meta are those of access rules and descriptions here"
_LOOKED_AT_BYTES: Final = 4096
_PROPERTIES: Final = ".DAV"
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_WITHOUT_POD: Final = FoundPod("", "", None, ())


class PlainFiles:
    """The files below one folder."""

    suffixes: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        """Raises Unreadable."""
        self._folder = Folder(path)
        self._folder.entries()

    async def resources(self) -> AsyncIterator[FoundResource | LeftOut]:
        """Every file and folder, folders before their contents."""
        for found in resources_of(self._folder, _WITHOUT_POD, self, but=frozenset()):
            yield found

    def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        """The content of a file."""
        return self._folder.pieces(resource.parts or ())

    # --- names and types ----------------------------------------------------------------------

    def segment(self, name: str) -> str:
        return segment_of(name)

    def without_extension(self, name: str) -> str:
        return name

    def document_type(self, entry: FolderEntry, _: str) -> str:
        by_name = type_by_extension(extension_of(entry.name))
        if by_name is not None:
            return by_name
        try:
            return type_of_beginning(self._folder.beginning(entry.parts, _LOOKED_AT_BYTES))
        except Unreadable:
            return OCTET_STREAM

    def auxiliary_type(self, entry: FolderEntry) -> str:
        return self.document_type(entry, "")

    def passed_over(self, entry: FolderEntry) -> str | None:
        if entry.name == _PROPERTIES:
            return "It has properties of WebDAV, which are not taken"
        return RESERVED if entry.name.endswith(SUFFIXES) else None


def type_of_beginning(beginning: bytes) -> str:
    """The media type of content that begins like this."""
    for start, media_type in _BEGINNINGS:
        if beginning.startswith(start):
            return media_type
    if beginning.lstrip()[:9].lower() in (b"<!doctype", b"<html>") or beginning.lstrip()[
        :6
    ].lower() in (b"<html>", b"<html "):
        return HTML
    if b"\0" in beginning:
        return OCTET_STREAM
    try:
        # The last character may be cut.
        beginning.decode() if len(beginning) < _LOOKED_AT_BYTES else beginning[:-4].decode(
            errors="strict"
        )
    except UnicodeDecodeError as error:
        if error.start < len(beginning) - 8:
            return OCTET_STREAM
    return "text/plain"
