"""Reads the contents of a pod at one moment, and names each resource in the archive."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from podstead.core import date_times, errors, identifiers, media_types
from podstead.resources.archives import ArchiveFolder, archive_name
from podstead.resources.codes import ResourceCodes
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.trees import tree_pages
from podstead.storage import former_states
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import ResourceStore, Store
from podstead.storage.records import Metadata, PodRecord, ResourceKind

_RESOURCES_AT_ONCE: Final = 1000
_CHANGES_AT_ONCE: Final = 1000
_ATTEMPTS: Final = 8
_BUNDLE: Final = "repository.bundle"
VERSIONS: Final = "former versions/"
"""The folder of former versions in an archive. No pod has a name with a space."""
_VERSIONS_OF_POD: Final = (
    f"SELECT {former_states.FORMER_STATE} FROM former_states WHERE root = %s AND deleted = %s"  # noqa: S608
    " AND (path, modified_ms, version) > (%s, %s, %s)"
    " ORDER BY path, modified_ms, version LIMIT %s"
)
_FORMAT: Final = "2"
"""Changes whenever the same pod would be written differently."""


class RepositoryBundle(OpenBody, Protocol):
    """A repository as one file."""

    @property
    def sha256(self) -> str:
        """The hash of the file, in hexadecimal digits."""


class Bundled(NamedTuple):
    """The repositories of containers, without empty ones, and the containers whose repositories
    cannot be bundled."""

    bundles: Mapping[identifiers.ResourcePath, RepositoryBundle]
    left_out: Sequence[identifiers.ResourcePath]


class RepositoryBundler(Protocol):
    """Makes files of the repositories that containers have besides their resources."""

    async def bundle_all(self, root: identifiers.ResourcePath) -> Bundled:
        """The repositories in a pod."""


class PodContents(msgspec.Struct, frozen=True):
    """A pod at one moment: all its resources in the order of their paths, the containers whose
    repositories are left out, and those whose repositories are not. ``sequence`` is the last change
    before that moment. ``versions`` are former states of the documents, if they are wanted."""

    pod: PodRecord
    base_url: str
    issuer: str
    resources: Sequence[Metadata]
    left_out: Sequence[identifiers.ResourcePath]
    bundles: Mapping[identifiers.ResourcePath, RepositoryBundle]
    sequence: int
    versions: Sequence[former_states.FormerState] = ()

    def url_of(self, path: identifiers.ResourcePath) -> str:
        """The URL of a resource."""
        return self.base_url + path

    @property
    def tag(self) -> str:
        """Identifies the archive of these contents, byte for byte."""
        digest = hashlib.sha256()
        for part in (_FORMAT, self.base_url, self.issuer, self.pod.name, self.pod.owner):
            digest.update(part.encode() + b"\0")
        digest.update("\0".join(self.left_out).encode())
        for container, bundle in self.bundles.items():
            digest.update(f"\0{container} {bundle.sha256}".encode())
        for each in self.resources:
            times = f"{each.created_ms} {last_modified_ms(each)}"
            digest.update(f"\0{each.path} {each.version} {times}".encode())
        for state in self.versions:
            digest.update(f"\0{state.path} {state.modified_ms} {state.version}".encode())
        return digest.hexdigest()[:32]

    @property
    def modified_ms(self) -> int:
        """When something in the pod last changed."""
        return max((last_modified_ms(each) for each in self.resources), default=0)


async def read_contents(
    store: Store,
    pod: PodRecord,
    *,
    base_url: str,
    issuer: str,
    bundler: RepositoryBundler | None = None,
    max_resources: int | None = None,
    with_versions: bool = False,
) -> PodContents:
    """The contents of a pod; ``bundler`` adds the repositories of its containers.

    Raises Overloaded if it has more than ``max_resources`` or changes all the time.
    """
    for _ in range(_ATTEMPTS):
        sequence = await store.newest_sequence()
        resources = await _all_resources(store, pod.root, max_resources)
        if not await changed_since(store, pod.root, sequence):
            break
    else:
        raise errors.Overloaded(ResourceCodes.POD_CHANGES_TOO_FAST)
    found = Bundled({}, ()) if bundler is None else await bundler.bundle_all(pod.root)
    left_out, bundles = sorted(found.left_out), dict(sorted(found.bundles.items()))
    versions = await _versions(store, pod.root, resources, max_resources) if with_versions else ()
    return PodContents(pod, base_url, issuer, resources, left_out, bundles, sequence, versions)


async def _all_resources(
    store: ResourceStore, root: identifiers.ResourcePath, max_resources: int | None
) -> Sequence[Metadata]:
    found: list[Metadata] = []
    async for page in tree_pages(store, root, page_resources=_RESOURCES_AT_ONCE):
        found += page
        if max_resources is not None and len(found) > max_resources:
            raise errors.Overloaded(ResourceCodes.TOO_MANY_FILES, number=max_resources)
    return found


async def _versions(
    store: Store,
    root: identifiers.ResourcePath,
    resources: Sequence[Metadata],
    max_versions: int | None,
) -> Sequence[former_states.FormerState]:
    """The former states of documents that are there, and not those of earlier documents."""
    created = {
        each.path: each.created_ms for each in resources if each.kind is ResourceKind.DOCUMENT
    }
    found: list[former_states.FormerState] = []
    key: tuple[str, int, str] = ("", 0, "")
    while rows := await store.fetch(
        _VERSIONS_OF_POD, root, former_states.REPLACED, *key, _RESOURCES_AT_ONCE
    ):
        states = [former_states.former_state_of(row) for row in rows]
        found += [each for each in states if created.get(each.path) == each.created_ms]
        if max_versions is not None and len(found) > max_versions:
            raise errors.Overloaded(ResourceCodes.TOO_MANY_FILES, number=max_versions)
        last = states[-1]
        key = last.path, last.modified_ms, last.version
    return found


async def changed_since(
    store: ResourceStore, root: identifiers.ResourcePath, sequence: int
) -> Sequence[identifiers.ResourcePath]:
    """The resources of a pod that were changed after this row of the change log."""
    changed: dict[identifiers.ResourcePath, None] = {}
    while page := await store.changes_after(sequence, limit=_CHANGES_AT_ONCE):
        for each in page:
            if each.change.path.startswith(root):
                changed[each.change.path] = None
        sequence = page[-1].sequence
    return list(changed)


class ArchivedResource(msgspec.Struct):
    """A resource with its name in the archive.

    That of a container ends in a slash. A container with a description of its own also has a file
    for that, ``described_by``, otherwise empty. The same applies to its ``repository``. That of a
    former state has the name of the document that it is a version of.
    """

    metadata: Metadata
    name: str
    described_by: str = ""
    repository: str = ""
    former: former_states.FormerState | None = None
    version_of: str = ""


def named(contents: PodContents) -> Sequence[ArchivedResource]:
    """The resources of a pod, in the order of their paths, with their names in an archive.

    An ACL and a description have the name of the file or folder that they are about, with the
    suffix that they have on this server.
    """
    names: dict[identifiers.ResourcePath, str] = {}
    folders: dict[identifiers.ResourcePath, ArchiveFolder] = {}
    archived = [_named(each, contents.pod.root, names, folders) for each in contents.resources]
    for each in archived:
        path = each.metadata.path
        if path in contents.bundles:
            each.repository = each.name + folders[path].free(_BUNDLE)
    for state in contents.versions:
        of = names[state.path]
        archived.append(
            ArchivedResource(state.metadata, _version_name(of, state), former=state, version_of=of)
        )
    return archived


def _version_name(of: str, state: former_states.FormerState) -> str:
    """By time, with the extension of the document: no file system dislikes it."""
    moment = date_times.write_time(state.modified_ms).replace(":", "")
    _, dot, extension = of.rpartition("/")[2].rpartition(".")
    return f"{VERSIONS}{of}/{moment} {state.version[:12]}{dot}{extension if dot else ''}"


def _named(
    each: Metadata,
    root: identifiers.ResourcePath,
    names: dict[identifiers.ResourcePath, str],
    folders: dict[identifiers.ResourcePath, ArchiveFolder],
) -> ArchivedResource:
    path, subject = each.path, identifiers.subject_of(each.path)
    if each.kind.is_container:
        if path == root:
            name = f"{identifiers.segment_name(path)}"
        else:
            parent = identifiers.parent_container(path) or root
            own = archive_name(identifiers.segment_name(path).rstrip("/"), None)
            name = f"{names[parent]}{folders[parent].free(own)}/"
        names[path] = name
        folders[path] = ArchiveFolder()
        described_by = ""
        if each.size_bytes:
            described_by = name + folders[path].free(
                _auxiliary_name("", identifiers.DESCRIPTION_SUFFIX, each)
            )
        return ArchivedResource(each, name, described_by)
    if each.kind is ResourceKind.DOCUMENT:
        parent = identifiers.parent_container(path) or root
        own = archive_name(identifiers.segment_name(path), each.content_type)
        name = names[parent] + folders[parent].free(own)
        names[path] = name
        return ArchivedResource(each, name)
    suffix = (
        identifiers.ACL_SUFFIX if each.kind is ResourceKind.ACL else identifiers.DESCRIPTION_SUFFIX
    )
    folder = (
        subject
        if identifiers.is_container(subject)
        else identifiers.parent_container(subject) or root
    )
    own = names[subject][len(names[folder]) :]
    name = names[folder] + folders[folder].free(_auxiliary_name(own, suffix, each))
    return ArchivedResource(each, name)


def _auxiliary_name(of: str, suffix: str, metadata: Metadata) -> str:
    extension = (
        ".jsonld" if media_types.essence(metadata.content_type) == media_types.JSON_LD else ""
    )
    return f"{of}{suffix}{extension}"
