"""Imports files from a folder, or from a WebDAV server, into a pod, beside what is there."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from podstead.app.operator.importing import opened_pods
from podstead.config import Settings
from podstead.core import identifiers
from podstead.core.errors import BadRequest, NotFound
from podstead.features.importers.file_sources import PlainFiles, WebDavFolder
from podstead.features.importers.folders import Unreadable
from podstead.features.importers.values import FoundResource, LeftOut
from podstead.outbound import errors, fetch, urls
from podstead.outbound.guard import opened_guard
from podstead.resources.importing.values import ImportedResource, ImportReport


class FilesImportReport(msgspec.Struct):
    """What was imported, or would be."""

    dry_run: bool
    url: str
    documents: int = 0
    containers: int = 0
    size_bytes: int = 0
    already_there: int = 0
    left_out: list[LeftOut] = msgspec.field(default_factory=list)


class FileSource(Protocol):
    """Files in folders."""

    def resources(self) -> AsyncIterator[FoundResource | LeftOut]:
        """Every file and folder."""

    def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        """The content of a file."""


async def import_files(
    settings: Settings,
    source: FileSource,
    *,
    source_id: str,
    into: str,
    dry_run: bool = False,
    counting: Callable[[int], None] = lambda _: None,
) -> FilesImportReport:
    """Import files into the container ``into``, a path such as ``alice/photos/``. Nothing that is
    there is replaced.

    Raises BadRequest, NotFound if there is no such pod, RootUnusable, QuotaExceeded, Overloaded,
    StorageError, and what the source raises.
    """
    async with opened_pods(settings) as pods:
        container = _container(into)
        root = identifiers.storage_root(container)
        pod = None if root is None else await pods.records.store.read_pod(root.strip("/"))
        if pod is None or not container.startswith(pod.root):
            raise NotFound(f"There is no pod '{into.strip('/').partition('/')[0]}'.")
        target = msgspec.structs.replace(
            pods.target(pod.name, source_id=source_id, owner=pod.owner),
            root=pod.root,
            new_pod=None,
            dry_run=dry_run,
        )
        report = FilesImportReport(dry_run, f"{pods.settings.base_url}{container}")

        def count(done: ImportReport) -> None:
            counting(done.resources)

        resources = _resources(source, container, report.left_out)
        done = await pods.importer.run(target, resources, progress=count)
    report.documents, report.containers = done.documents, done.containers
    report.size_bytes, report.already_there = done.size_bytes, done.already_there
    report.left_out += [LeftOut(each.path, each.reason) for each in done.not_taken]
    return report


@asynccontextmanager
async def files_of(folder: Path) -> AsyncIterator[FileSource]:
    """The files of a folder. Raises Unreadable."""
    try:
        files = PlainFiles(folder)
    except Unreadable as error:
        raise Unreadable(f"{folder} cannot be read: {error}") from error
    yield files


@asynccontextmanager
async def webdav_folder(
    url: str, *, user: str | None = None, password: str = ""
) -> AsyncIterator[FileSource]:
    """The files of a folder on a WebDAV server. Raises BadRequest for a URL that is not one."""
    try:
        # The operator chose the server, which may be in a private network or on this machine.
        rules = urls.UrlRules(
            private_origins=frozenset({urls.origin_of_url(url)}), loopback_allowed=True
        )
        rules.admit(url)
    except errors.Refused as refused:
        raise BadRequest(f"'{url}' is not the URL of a folder on a WebDAV server.") from refused
    with opened_guard(rules) as guard:
        yield WebDavFolder(
            url, guard, tls=fetch.trusted_certificates(), user=user, password=password
        )


def _container(into: str) -> identifiers.ResourcePath:
    """Raises BadRequest."""
    path = identifiers.parse_path(f"/{into.strip('/')}/".encode())
    for each in (path, *identifiers.ancestors(path)):
        if (
            identifiers.is_container(each)
            and identifiers.auxiliary_kind(identifiers.slash_variant(each)) is not None
        ):
            raise BadRequest("Without its trailing slash, the URL is that of an auxiliary resource")
    return path


async def _resources(
    files: FileSource, container: identifiers.ResourcePath, left_out: list[LeftOut]
) -> AsyncIterator[ImportedResource]:
    """The files, as the importer takes them."""
    async for found in files.resources():
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        is_file = not found.path.endswith("/") and found.path != ""
        yield ImportedResource(
            path=identifiers.ResourcePath(container + found.path),
            content_type=found.content_type,
            open=partial(files.content, found) if is_file else None,
            created_ms=found.modified_ms,
            modified_ms=found.modified_ms,
        )
