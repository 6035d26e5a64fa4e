"""Walks the files of a server and turns them into resources, by that server's naming."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote_to_bytes

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ACL_SUFFIX, DESCRIPTION_SUFFIX, encode_segment, parse_path
from podstead.core.media_types import TURTLE
from podstead.features.importers.folders import (
    EntryKind,
    Folder,
    FolderEntry,
    Parts,
    Unreadable,
    readable_path,
)
from podstead.features.importers.values import FoundPod, FoundResource, LeftOut

SUFFIXES: Final = (ACL_SUFFIX, DESCRIPTION_SUFFIX)

Found = Iterator[FoundResource | LeftOut]


class Naming(Protocol):
    """How a server names its files. Methods raise BadRequest for a name that no URL has."""

    suffixes: Sequence[str]
    """The suffixes of the names of auxiliary resources."""

    def segment(self, name: str) -> str:
        """The path segment of a container or document by the name of its file, encoded."""

    def document_type(self, entry: FolderEntry, url: str) -> str:
        """The media type of the document with this URL."""

    def auxiliary_type(self, entry: FolderEntry, /) -> str:
        """The media type of an ACL or a description."""

    def without_extension(self, name: str) -> str:
        """The name of a file without the server's addition for the media type."""

    def passed_over(self, entry: FolderEntry, /) -> str | None:
        """Why an entry is not a resource: empty if nothing is lost, ``None`` if it is one."""


def resources_of(folder: Folder, pod: FoundPod, naming: Naming, *, but: frozenset[Parts]) -> Found:
    """Everything in a pod, except the folders ``but`` of other pods."""
    return _Walk(folder, pod, naming, but).container(pod.folder, "")


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through the folders of one pod."""

    folder: Folder
    pod: FoundPod
    naming: Naming
    but: frozenset[Parts]

    def container(self, parts: Parts, path: str) -> Found:
        """A container with everything below it."""
        try:
            entries = self.folder.entries(parts)
        except Unreadable as error:
            yield LeftOut(readable_path(parts), str(error))
            return
        yield FoundResource(path, self.pod.url + path, TURTLE)
        taken: dict[str, FolderEntry] = {}
        for entry in entries:
            if entry.parts not in self.but:
                yield from self._entry(entry, path, taken)

    def _entry(self, entry: FolderEntry, path: str, taken: dict[str, FolderEntry]) -> Found:
        place = readable_path(entry.parts)
        reason = _why_not(entry, self.naming)
        if reason is not None:
            if reason:
                yield LeftOut(place, reason)
            return
        try:
            if entry.kind is EntryKind.FOLDER:
                inner = f"{path}{self.naming.segment(entry.name)}/"
                yield from self.container(entry.parts, inner)
                return
            found = self._file(entry, path)
        except BadRequest as error:
            yield LeftOut(place, str(error))
            return
        if found.path in taken:
            other = taken[found.path].name
            yield LeftOut(place, f"It has the same URL as the file {other}")
            return
        taken[found.path] = entry
        yield found

    def _file(self, entry: FolderEntry, path: str) -> FoundResource:
        naming = self.naming
        suffix = next((each for each in naming.suffixes if entry.name.endswith(each)), None)
        if suffix is None:
            path += naming.segment(naming.without_extension(entry.name))
            media_type = naming.document_type(entry, self.pod.url + path)
        else:
            subject = entry.name.removesuffix(suffix)
            path += (naming.segment(subject) if subject else "") + suffix
            media_type = naming.auxiliary_type(entry)
        return FoundResource(path, self.pod.url + path, media_type, entry.parts, entry.modified_ms)


def _why_not(entry: FolderEntry, naming: Naming) -> str | None:
    if not entry.is_text:
        return "Its name is not UTF-8"
    reason = naming.passed_over(entry)
    if reason is not None:
        return reason
    if entry.kind is EntryKind.LINK:
        return "It is a symbolic link, which is not followed"
    if entry.kind is EntryKind.OTHER:
        return "It is neither a file nor a folder"
    return None


def segment_of(name: str, *, kept: re.Pattern[str] | None = None) -> str:
    """The canonical path segment for a name. Raises BadRequest for one that no URL has.

    ``kept`` matches the parts of the name that are already percent-encoded.
    """
    decoded, position = b"", 0
    for match in kept.finditer(name) if kept is not None else ():
        decoded += name[position : match.start()].encode() + unquote_to_bytes(match[0])
        position = match.end()
    segment = encode_segment(decoded + name[position:].encode())
    parse_path(f"/{segment}".encode())
    return segment
