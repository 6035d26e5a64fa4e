"""Reads the archive of a pod (:mod:`podstead.resources.exporting.archive`).

An archive may come from anywhere. Where a resource goes is decided by its URL in the manifest,
which must be canonical and below that of the pod; names in the archive lead to nothing but entries
of the archive, and nothing is unpacked to the file system. No entry yields more bytes than the
manifest says, so the space that an archive takes is known before anything is stored. A file that is
missing, or differs from its hash in the manifest, is not imported. The manifest is read entity by
entity, once for each purpose, so only the directory of the ZIP file takes memory that grows with
the pod.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, Final, TextIO
from urllib.parse import unquote

import msgspec

from podstead.core import errors
from podstead.core.identifiers import DESCRIPTION_SUFFIX, ResourcePath, is_container, parse_path
from podstead.resources.exporting.crate import MANIFEST
from podstead.resources.importing.values import ImportedResource, NotTaken

MAX_MANIFEST_BYTES: Final = 1 << 30
"""Enough for three million resources."""
_PIECE_BYTES: Final = 256 * 1024
_LOCAL_HEADER_BYTES: Final = 30
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 1


class NotAPodArchive(errors.RequestRefused):
    """The file is not the archive of a pod, or must not be read."""


class _Reference(msgspec.Struct):
    id: str = msgspec.field(default="", name="@id")


class _Entity(msgspec.Struct):
    """The fields of an entity of the manifest that are read."""

    id: str = msgspec.field(default="", name="@id")
    type: str | list[str] = msgspec.field(default="", name="@type")
    url: str = ""
    identifier: str = ""
    encoding_format: str = msgspec.field(default="", name="encodingFormat")
    content_size: str = msgspec.field(default="", name="contentSize")
    sha256: str = ""
    code_repository: str = msgspec.field(default="", name="codeRepository")
    created: str = msgspec.field(default="", name="dateCreated")
    modified: str = msgspec.field(default="", name="dateModified")
    creator: _Reference | None = None
    provider: _Reference | None = None
    main_entity: _Reference | None = msgspec.field(default=None, name="mainEntity")

    def is_a(self, kind: str) -> bool:
        return kind == self.type or (isinstance(self.type, list) and kind in self.type)


class ArchivedPod(msgspec.Struct, frozen=True):
    """The pod that an archive was made of."""

    name: str
    url: str
    owner: str
    issuer: str
    created_ms: int


class ArchivedRepository(msgspec.Struct, frozen=True):
    """The bundle of a repository, and the container that gets it."""

    container: ResourcePath
    open: Callable[[], AsyncIterator[bytes]]


class _Survey(msgspec.Struct):
    """How many resources there are, the URLs of containers with descriptions, and the files with
    repositories."""

    count: int = 0
    described: set[str] = msgspec.field(default_factory=set)
    repositories: list[_Entity] = msgspec.field(default_factory=list)


class PodArchiveFile:
    """An open archive."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        """Raises NotAPodArchive."""
        self._zip = file
        self._infos = _checked(file)
        self._folder = _crate_folder(self._infos)
        self.source_id = f"archive:{self._manifest_hash()}"
        self.pod = self._pod()
        self.problems: list[NotTaken] = []
        """Entries of the manifest that cannot be resources of the pod."""

    @property
    def size_bytes(self) -> int:
        """The bytes of all files together."""
        return sum(info.file_size for info in self._infos.values())

    @property
    def count(self) -> int:
        """The number of resources that the manifest lists."""
        return self._survey.count - len(self._survey.described)

    async def resources(self, root: ResourcePath) -> AsyncIterator[ImportedResource]:
        """Every resource, to be stored below ``root``."""
        self.problems.clear()
        seen: set[ResourcePath] = set()
        for entity in self._of_pod():
            resource = self._resource(entity, root, seen)
            if resource is not None:
                yield resource

    def repositories(self, root: ResourcePath) -> Iterator[ArchivedRepository]:
        """The repositories of containers in the archive."""
        found = self._survey.repositories
        if not found:
            return
        urls = {each.code_repository for each in found}
        containers = {each.url for each in self._entities() if each.url in urls}
        seen: set[ResourcePath] = set()
        for each in found:
            url = each.code_repository
            if url not in containers:
                continue
            path = ResourcePath(root + url[len(self.pod.url) :])
            if is_container(path) and path not in seen and not _path_problem(path):
                seen.add(path)
                yield ArchivedRepository(path, partial(self._read, each))

    @cached_property
    def _survey(self) -> _Survey:
        """Collect what must be known of all entities before the first of them is imported."""
        survey = _Survey()
        for each in self._entities():
            is_file = each.is_a("File")
            if each.url.startswith(self.pod.url):
                survey.count += 1
                if is_file and each.url.endswith(f"/{DESCRIPTION_SUFFIX}"):
                    survey.described.add(each.url[: -len(DESCRIPTION_SUFFIX)])
            if is_file and each.code_repository.startswith(self.pod.url):
                survey.repositories.append(each)
        return survey

    def _of_pod(self) -> Iterator[_Entity]:
        described = self._survey.described
        for each in self._entities():
            # A container with a description is imported with it.
            if each.url.startswith(self.pod.url) and each.url not in described:
                yield each

    def _resource(
        self, entity: _Entity, root: ResourcePath, seen: set[ResourcePath]
    ) -> ImportedResource | None:
        from_url = entity.url
        of_container = from_url.endswith(f"/{DESCRIPTION_SUFFIX}")
        if of_container:
            from_url = from_url[: -len(DESCRIPTION_SUFFIX)]
        path = ResourcePath(root + from_url[len(self.pod.url) :])
        problem = _problem(path, entity, of_container=of_container, seen=seen)
        if problem:
            self.problems.append(NotTaken(path, problem))
            return None
        seen.add(path)
        return ImportedResource(
            path,
            entity.encoding_format or "text/turtle",
            None if not entity.is_a("File") else lambda: self._read(entity),
            created_ms=_unix_ms(entity.created),
            modified_ms=_unix_ms(entity.modified),
            from_url=from_url,
        )

    async def _read(self, entity: _Entity) -> AsyncIterator[bytes]:
        """Raises NotFound, BodyTooLarge, ChecksumMismatch."""
        info = self._infos.get(self._folder + unquote(entity.id))
        if info is None:
            raise errors.NotFound("The archive does not contain the file")
        if str(info.file_size) != entity.content_size:
            raise errors.BodyTooLarge("The file has another size than the manifest says")
        digest = hashlib.sha256()
        try:
            with self._zip.open(info) as file:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
                    yield piece
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise errors.ChecksumMismatch("The file is damaged") from error
        if digest.hexdigest() != entity.sha256:
            raise errors.ChecksumMismatch("The file has another SHA-256 than the manifest says")

    def _manifest_hash(self) -> str:
        if self._infos[self._folder + MANIFEST].file_size > MAX_MANIFEST_BYTES:
            raise NotAPodArchive("The manifest is too large")
        digest = hashlib.sha256()
        with self._opened_manifest() as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
        return digest.hexdigest()

    @contextmanager
    def _opened_manifest(self) -> Iterator[IO[bytes]]:
        try:
            with self._zip.open(self._infos[self._folder + MANIFEST]) as file:
                yield file
        except Malformed as error:
            raise NotAPodArchive(f"{MANIFEST} cannot be read: {error}") from error
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise NotAPodArchive(f"{MANIFEST} is damaged") from error

    def _entities(self) -> Iterator[_Entity]:
        """The entities in the form that we write, read anew. Raises NotAPodArchive."""
        with (
            self._opened_manifest() as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
        ):
            for each in graph_entities(text):
                try:
                    entity = msgspec.convert(each, _Entity)
                except msgspec.ValidationError:
                    continue  # something that others have added
                yield entity

    def _pod(self) -> ArchivedPod:
        root = next((each for each in self._entities() if each.id == "./"), None)
        if root is None or root.main_entity is None or root.creator is None:
            raise NotAPodArchive(f"{MANIFEST} does not describe a pod")
        main_id = root.main_entity.id
        storage = next((each for each in self._entities() if each.id == main_id), None)
        if storage is None or not storage.url.endswith("/"):
            raise NotAPodArchive(f"{MANIFEST} does not say which URL the pod had")
        return ArchivedPod(
            name=root.identifier,
            url=storage.url,
            owner=root.creator.id,
            issuer="" if root.provider is None else root.provider.id,
            created_ms=_unix_ms(root.created) or 0,
        )


@contextmanager
def opened_archive(path: Path) -> Iterator[PodArchiveFile]:
    """Open the archive of a pod. Raises NotAPodArchive."""
    try:
        file: IO[bytes] = path.open("rb")
    except OSError as error:
        raise NotAPodArchive(f"{path} cannot be read: {error.strerror}") from error
    with file:
        try:
            opened = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, EOFError, ValueError, OSError) as error:
            raise NotAPodArchive(f"{path} is not a ZIP file, or is damaged") from error
        with opened:
            yield PodArchiveFile(opened)


def _checked(file: zipfile.ZipFile) -> Mapping[str, zipfile.ZipInfo]:
    """The entries by name. Raises NotAPodArchive for a deceptive archive."""
    infos: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for info in sorted(file.infolist(), key=lambda each: each.header_offset):
        name = info.orig_filename
        if info.filename in infos:
            raise NotAPodArchive(f"The archive contains {info.filename!r} twice")
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise NotAPodArchive(f"The archive contains a file with the name {name!r}")
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise NotAPodArchive(f"{name!r} is encrypted, or compressed in an unusual way")
        # Entries that share bytes could make a small archive arbitrarily large.
        if info.header_offset < end:
            raise NotAPodArchive(f"{name!r} overlaps with another entry")
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
        infos[info.filename] = info
    return infos


def _crate_folder(infos: Mapping[str, zipfile.ZipInfo]) -> str:
    """The folder of the manifest: the whole archive, or the one folder in it."""
    if MANIFEST in infos:
        return ""
    folders = {name.partition("/")[0] for name in infos}
    if len(folders) == 1:
        folder = f"{folders.pop()}/"
        if folder + MANIFEST in infos:
            return folder
    raise NotAPodArchive(f"The archive has no {MANIFEST}")


def _problem(
    path: ResourcePath, entity: _Entity, *, of_container: bool, seen: set[ResourcePath]
) -> str:
    """Why an entity cannot be a resource; empty if it can."""
    if problem := _path_problem(path):
        return problem
    if path in seen:
        return "The manifest lists it twice"
    if entity.is_a("File") == (is_container(path) and not of_container):
        return "Only the URL of a folder ends in a slash"
    return ""


def _path_problem(path: ResourcePath) -> str:
    try:
        if parse_path(path.encode()) != path:
            return "Its URL is not in its canonical form"
    except errors.BadRequest as error:
        return str(error)
    return ""


def _unix_ms(date: str) -> int | None:
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return round(moment.timestamp() * 1000)


# Reads the manifest of an archive entity by entity, so that it may be larger than memory.

MAX_ENTITY_CHARACTERS: Final = 1 << 26
"""A folder lists its members in one entity: this is enough for a million of them."""
_FIRST_READ: Final = 1 << 16
_GRAPH: Final = "@graph"
_SPACE: Final = " \t\n\r"
_AFTER_VALUE: Final = frozenset({*_SPACE, ",", ":", "]", "}"})


class Malformed(ValueError):
    """The text is not a JSON object with a ``@graph``, or something in it is too large."""


def graph_entities(stream: TextIO) -> Iterator[Any]:
    """The elements of the array ``@graph`` of a JSON object, as they are read. Raises Malformed,
    UnicodeDecodeError, and the errors of the stream."""
    reader = _Reader(stream)
    reader.expect("{")
    has_graph = False
    while reader.peek() != "}":
        name = reader.value()
        reader.expect(":")
        if name == _GRAPH and reader.peek() == "[":
            has_graph = True
            yield from reader.elements()
        else:
            reader.value()
        if reader.peek() != "}":
            reader.expect(",")
    if not has_graph:
        raise Malformed("there is no @graph")


class _Reader:
    """A window that moves over the text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._position = 0

    def elements(self) -> Iterator[Any]:
        self.expect("[")
        while self.peek() != "]":
            yield self.value()
            if self.peek() != "]":
                self.expect(",")
        self.expect("]")

    def expect(self, character: str) -> None:
        if self.peek() != character:
            raise Malformed(f"{character} is missing")
        self._position += 1

    def peek(self) -> str:
        """The next character that is not white space."""
        while True:
            while self._position < len(self._text) and self._text[self._position] in _SPACE:
                self._position += 1
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read(_FIRST_READ):
                raise Malformed("it is truncated")

    def value(self) -> Any:  # noqa: ANN401 - whatever is there
        """The next value, which is decoded again with more text until it is complete."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except (json.JSONDecodeError, RecursionError) as error:
                if isinstance(error, RecursionError) or not self._read_as_much_again():
                    raise Malformed("it is not valid JSON") from error
                continue
            # A number may continue after the text read so far.
            if self._text[end : end + 1] in _AFTER_VALUE or not self._read_as_much_again():
                self._position = end
                return value

    def _read_as_much_again(self) -> bool:
        size = len(self._text) - self._position
        if size > MAX_ENTITY_CHARACTERS:
            raise Malformed("an entity is too large")
        return self._read(max(size, _FIRST_READ))

    def _read(self, size: int) -> bool:
        """Whether there was more."""
        more = self._stream.read(size)
        self._text = self._text[self._position :] + more
        self._position = 0
        return bool(more)
