"""Exports a pod to a file, and imports it again."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from podstead.app.adapters.audit import operator_audit
from podstead.app.adapters.root import remembered_provider
from podstead.app.operator.data_root import OnStep
from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.config import Settings
from podstead.core.errors import Conflict, DiskFull, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.features import NONE_TAKEN, RepositoryArchives, folders
from podstead.idp.administration.pods import existing_pod
from podstead.idp.audit import AuditEvent
from podstead.rdf.graph import Dataset, Graph, Iri
from podstead.resources.exporting.archive import PodArchive
from podstead.resources.exporting.contents import read_contents
from podstead.resources.importing.pod_archive import ArchivedPod, PodArchiveFile
from podstead.resources.importing.values import ImportReport, NotTaken
from podstead.resources.renaming import NameMapping
from podstead.storage import disk_space, record_store

_PARTIAL: Final = ".partial"


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote. The repositories of the containers with the URLs ``left_out`` are not
    in it. The ``changed`` resources were changed meanwhile, so that they are perhaps not of the
    same moment as the others."""

    file: Path
    size_bytes: int
    documents: int
    containers: int
    repositories: int
    versions: int
    left_out: tuple[str, ...]
    changed: tuple[str, ...]


async def export_pod(
    settings: Settings, name: str, file: Path, *, with_versions: bool = False, on_step: OnStep
) -> Exported:
    """Write the archive of a pod to a file, which must not exist yet, with former versions of
    documents or without. ``on_step`` gets the bytes that were written and those that are expected.

    The file appears when it is complete. Raises NotFound, Conflict, DiskFull, Overloaded,
    StorageError.
    """
    _check_free(file)
    async with opened_pods(settings) as pods, operator_audit(pods.records) as audit:
        store = pods.records.store
        pod = await existing_pod(store, name)
        with _opened_archives(settings, pods.records) as archives:
            contents = await read_contents(
                store,
                pod,
                base_url=pods.settings.base_url,
                issuer=pods.settings.issuer,
                bundler=archives,
                with_versions=with_versions,
            )
        archive = PodArchive(store, contents, lenient=True)
        size_bytes = await _write(file, archive, on_step)
        audit.note(AuditEvent.POD_EXPORTED, pod=pod.name)
    return Exported(
        file=file,
        size_bytes=size_bytes,
        documents=sum(not each.kind.is_container for each in contents.resources),
        containers=sum(each.kind.is_container for each in contents.resources),
        repositories=len(contents.bundles),
        versions=len(contents.versions),
        left_out=tuple(map(contents.url_of, contents.left_out)),
        changed=tuple(archive.changed),
    )


@contextmanager
def _opened_archives(
    settings: Settings, records: record_store.RecordStore
) -> Iterator[RepositoryArchives | None]:
    """What archives contain besides resources, if a feature adds something."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(each.opened_archives(settings, records)) for each in folders()
        ]
        yield next(filter(None, opened), None)


def _check_free(file: Path) -> None:
    if file.exists():
        raise Conflict(f"{file} exists already.")


async def _write(file: Path, archive: PodArchive, on_step: OnStep) -> int:
    partial = file.with_name(file.name + _PARTIAL)
    written = 0
    try:
        # Only the operator may read what is private.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            async for piece in archive.chunks():
                opened.write(piece)
                written += len(piece)
                on_step("Writing", written, archive.size_bytes)
            opened.flush()
            os.fsync(opened.fileno())
        partial.rename(file)
    except OSError as error:
        raise StorageError(f"{file} could not be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return written


async def import_pod(
    settings: Settings,
    archive: PodArchiveFile,
    *,
    name: str | None,
    dry_run: bool,
    on_step: OnStep,
) -> tuple[str, ImportReport]:
    """Create the pod of an archive, under the ``name`` or that which it had; its URL and what
    happened.

    Raises Conflict, UnusablePodName, QuotaExceeded, DiskFull, Overloaded, StorageError.
    """

    def progress(report: ImportReport) -> None:
        on_step("Importing", report.resources, archive.count)

    async with opened_pods(settings) as pods, operator_audit(pods.records) as audit:
        _check_disk(settings, archive)
        old = archive.pod
        root = f"/{name or old.name}/"
        url = pods.settings.base_url + root
        is_own = old.owner.startswith(old.url)
        owner = url + old.owner[len(old.url) :] if is_own else old.owner
        can_own = pods.may_own(owner, url)
        target = pods.target(
            name or old.name,
            source_id=archive.source_id,
            owner=owner if can_own else None,
            created_ms=old.created_ms,
        )
        target = replace(
            target,
            names=NameMapping(beginnings=((old.url, url),)),
            adjust=_new_provider(pods, old, target.root),
            dry_run=dry_run,
        )
        resources = archive.resources(target.root)
        archived = () if dry_run else archive.repositories(target.root)
        with _opened_archives(settings, pods.records) as archives:
            async with archives.taken(archived) if archives else nullcontext(NONE_TAKEN) as taken:
                target = replace(target, last_records=list(taken.records))
                report = await pods.importer.run(target, resources, progress=progress)
        report.repositories = len(taken.records)
        report.not_taken += [*taken.not_taken, *archive.problems]
        if not can_own:
            reason = f"Its owner, {owner}, is not one who may come from elsewhere"
            report.not_taken.append(NotTaken(target.root, f"{reason}: it has an owner of its own"))
        if not dry_run:
            audit.note(AuditEvent.POD_IMPORTED, pod=root.strip("/"))
        return url, report


def _check_disk(settings: Settings, archive: PodArchiveFile) -> None:
    """Raises DiskFull if the archive says that it has more than there is room for."""
    if archive.size_bytes > disk_space.DiskSpace(settings.root).free_bytes():
        raise DiskFull


def _new_provider(
    pods: OpenedPods, old: ArchivedPod, root: ResourcePath
) -> Callable[[ResourcePath, Dataset], Dataset] | None:
    """The owner's profile names this server's provider in place of the old server's. Other
    providers are kept: the owner signs in there."""
    issuer = remembered_provider(pods.settings)
    if issuer is None or not old.issuer or issuer == old.issuer:
        return None
    predicate, before, after = Iri(SOLID_OIDC_ISSUER), Iri(old.issuer), Iri(issuer)
    slash = Iri(f"{old.issuer}/")

    def adjusted(path: ResourcePath, dataset: Dataset) -> Dataset:
        if path != root:
            return dataset
        triples = (
            (s, p, after if p == predicate and o in (before, slash) else o)
            for s, p, o in dataset.default
        )
        return Dataset(Graph(triples), dataset.named)

    return adjusted


def all_problems(report: ImportReport) -> list[NotTaken]:
    """What was not taken as it was."""
    return [*report.not_taken, *report.closed, *report.not_renamed]
