"""Reads plain files: those of a folder, or those of a WebDAV server as its clients see them.

A file is a document of its name, with the media type of its extension or, if that is unknown, of
its first bytes. Properties that a WebDAV server keeps beside its files are not read.

The folders of a WebDAV server are listed one by one (``PROPFIND`` with ``Depth: 1``; RFC 4918
section 9.1), and files are read as streams. Only members of the first URL are followed, with
requests to its origin and without redirects.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree as ET

from podstead.core.conditional import parse_http_date
from podstead.core.errors import BadRequest, RequestRefused
from podstead.core.identifiers import parse_path
from podstead.core.media_types import HTML, TURTLE, parse_media_type
from podstead.features.importers import folders
from podstead.features.importers.values import FoundPod, FoundResource, LeftOut
from podstead.outbound.errors import FetchFailed
from podstead.outbound.guard import Guard
from podstead.outbound.transport import Connector, RemoteResponse

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


class PlainFiles(folders.NamedFiles):
    """The files below one folder."""

    suffixes: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        """Raises Unreadable."""
        super().__init__(path)
        self._folder.entries()

    async def resources(self) -> AsyncIterator[FoundResource | LeftOut]:
        """Every file and folder, folders before their contents."""
        for found in folders.resources_of(self._folder, _WITHOUT_POD, self, but=frozenset()):
            yield found

    def document_type(self, entry: folders.FolderEntry, _: str) -> str:
        by_name = folders.type_by_extension(folders.extension_of(entry.name))
        if by_name is not None:
            return by_name
        try:
            return type_of_beginning(self._folder.beginning(entry.parts, _LOOKED_AT_BYTES))
        except folders.Unreadable:
            return folders.OCTET_STREAM

    def auxiliary_type(self, entry: folders.FolderEntry) -> str:
        return self.document_type(entry, "")

    def passed_over(self, entry: folders.FolderEntry) -> str | None:
        if entry.name == _PROPERTIES:
            return "It has properties of WebDAV, which are not taken"
        return RESERVED if entry.name.endswith(folders.SUFFIXES) else None


def type_of_beginning(beginning: bytes) -> str:
    """The media type of content that begins like this."""
    for start, media_type in _BEGINNINGS:
        if beginning.startswith(start):
            return media_type
    if beginning.lstrip()[:9].lower().startswith((b"<!doctype", b"<html>", b"<html ")):
        return HTML
    if b"\0" in beginning:
        return folders.OCTET_STREAM
    try:
        # The last character may be cut.
        (beginning if len(beginning) < _LOOKED_AT_BYTES else beginning[:-4]).decode()
    except UnicodeDecodeError as error:
        if error.start < len(beginning) - 8:
            return folders.OCTET_STREAM
    return "text/plain"


MAX_LISTING_BYTES: Final = 32 * 1024 * 1024
_CONNECT_TIMEOUT_S: Final = 30.0
_PIECE_TIMEOUT_S: Final = 120.0
_DAV: Final = "{DAV:}"
_ASKED: Final = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontenttype/>'
    b"<getlastmodified/></prop></propfind>"
)


class WebDavRefused(RequestRefused):
    """The server does not list the folder; the message gives the reason."""


class WebDavFolder:
    """A folder on a WebDAV server, and everything below it."""

    def __init__(
        self,
        url: str,
        guard: Guard,
        *,
        tls: ssl.SSLContext,
        user: str | None = None,
        password: str = "",
    ) -> None:
        self._url = url.removesuffix("/") + "/"
        self._guard = guard
        self._connector = Connector(guard, tls, _CONNECT_TIMEOUT_S)
        self._headers: dict[str, str] = {}
        if user is not None:
            credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {credentials}"

    async def resources(self) -> AsyncIterator[FoundResource | LeftOut]:
        """Every file and folder, folders before their contents. Raises WebDavRefused if the folder
        itself cannot be listed."""
        waiting = [self._url]
        seen = {self._url}
        while waiting:
            folder = waiting.pop()
            path = folder[len(self._url) :]
            try:
                members = await self._members(folder)
            except WebDavRefused as error:
                if folder == self._url:
                    raise
                yield LeftOut(path, str(error))
                continue
            yield FoundResource(path, folder, TURTLE)
            for member in members:
                if isinstance(member, LeftOut):
                    yield member
                elif member.url in seen or not member.url.startswith(folder):
                    continue
                elif not member.path.endswith("/"):
                    yield member
                elif member.path.count("/") > folders.MAX_LEVELS:
                    yield LeftOut(member.path, f"It is more than {folders.MAX_LEVELS} levels deep")
                else:
                    waiting.append(member.url)
                seen.add(member.url if isinstance(member, FoundResource) else "")

    async def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        """The content of a file. Iterating raises Unreadable."""
        try:
            async with self._asked("GET", resource.url) as response:
                if response.status != 200:
                    raise folders.Unreadable(f"The server answered with status {response.status}")
                chunks = aiter(response.chunks)
                while True:
                    async with asyncio.timeout(_PIECE_TIMEOUT_S):
                        piece = await anext(chunks, b"")
                    if not piece:
                        return
                    yield piece
        except FetchFailed as error:
            raise folders.Unreadable(str(error)) from error
        except TimeoutError as error:
            raise folders.Unreadable("The server stopped sending") from error

    async def _members(self, folder: str) -> list[FoundResource | LeftOut]:
        try:
            async with (
                asyncio.timeout(_PIECE_TIMEOUT_S),
                self._asked("PROPFIND", folder, _ASKED) as response,
            ):
                if response.status != 207:
                    raise WebDavRefused(f"The server answered with status {response.status}")
                content = bytearray()
                async for piece in response.chunks:
                    content += piece
                    if len(content) > MAX_LISTING_BYTES:
                        raise WebDavRefused("The list of its members is too large")
        except FetchFailed as error:
            raise WebDavRefused(str(error)) from error
        except TimeoutError as error:
            raise WebDavRefused("The server took too long") from error
        return [self._member(folder, each) for each in _responses(bytes(content))]

    def _member(self, folder: str, response: ET.Element) -> FoundResource | LeftOut:
        href = (response.findtext(f"{_DAV}href") or "").strip()
        url = urljoin(folder, href)
        properties = response.find(f"{_DAV}propstat/{_DAV}prop")
        is_folder = properties is not None and (
            properties.find(f"{_DAV}resourcetype/{_DAV}collection") is not None
        )
        try:
            start = parse_path(urlsplit(self._url).path.encode())
            path = parse_path(urlsplit(url).path.encode())
        except (BadRequest, ValueError):
            return LeftOut(href, "Its name is not that of a resource")
        if is_folder:
            path = parse_path(f"{path.rstrip('/')}/".encode())
        origin = urlsplit(self._url)
        url = f"{origin.scheme}://{origin.netloc}{path}"
        if urlsplit(urljoin(folder, href)).netloc != origin.netloc or not path.startswith(start):
            return LeftOut(href, "It is outside of the folder")
        inner = path[len(start) :]
        if inner.removesuffix("/").endswith(folders.SUFFIXES):
            return LeftOut(inner, RESERVED)
        return FoundResource(
            inner,
            url,
            TURTLE if is_folder else _type(properties, inner),
            modified_ms=None if is_folder else _modified_ms(properties),
            content=None if is_folder else b"",
        )

    @asynccontextmanager
    async def _asked(
        self, method: str, url: str, content: bytes | None = None
    ) -> AsyncIterator[RemoteResponse]:
        """The response to a request. Raises FetchFailed."""
        depth = {"Depth": "1", "Content-Type": "application/xml"} if content is not None else {}
        async with self._connector.exchange(
            await self._guard.vet(self._guard.admit(url)),
            {"Accept-Encoding": "identity", **depth, **self._headers},
            method=method,
            content=content,
        ) as response:
            yield response


def _responses(content: bytes) -> list[ET.Element]:
    """Raises WebDavRefused."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise WebDavRefused("The list of its members is not one of WebDAV")
    try:
        return ET.fromstring(content).findall(f"{_DAV}response")  # noqa: S314 - without a DTD
    except ET.ParseError as error:
        raise WebDavRefused("The list of its members is malformed") from error


def _type(properties: ET.Element | None, path: str) -> str:
    """The media type that the server states, unless it is meaningless."""
    stated = "" if properties is None else properties.findtext(f"{_DAV}getcontenttype") or ""
    try:
        media_type = str(parse_media_type(stated))
    except BadRequest:
        media_type = folders.OCTET_STREAM
    if media_type == folders.OCTET_STREAM:
        return folders.type_by_extension(folders.extension_of(path)) or folders.OCTET_STREAM
    return media_type


def _modified_ms(properties: ET.Element | None) -> int | None:
    stated = "" if properties is None else properties.findtext(f"{_DAV}getlastmodified") or ""
    modified_s = parse_http_date(stated)
    return None if modified_s is None else modified_s * 1000
