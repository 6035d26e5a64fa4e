"""Checks a data root, also while a server runs on it, and repairs what was found.

Everything is compared with the records as of one moment, with removals held back, so what a running
server does meanwhile is no finding. What is new since is looked up again, or has a grace period.
"""

import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.adapters.engine import key_storage, layout_of
from podstead.app.adapters.keys import PROVIDER, check_token_key, load_token_keys, read_all_keys
from podstead.app.adapters.provider_keys import decode_key
from podstead.app.adapters.root import BASE_URL_FACT
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator import data_root
from podstead.app.operator.checking import bodies, repairs
from podstead.app.operator.checking.findings import CheckContext, Code, Finding
from podstead.config import Settings
from podstead.core import errors, identifiers, messages
from podstead.features import folders
from podstead.idp.keys import ProviderKey
from podstead.rdf.codecs import parse
from podstead.rdf.errors import RdfTooComplex, UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Dataset
from podstead.resources.sharing.rules_index import BUILDING, BuildingProgress
from podstead.storage.blobs import body_store, s3_location
from podstead.storage.disk_space import DiskSpace, read_disk_usage
from podstead.storage.inspection import StoredAcl
from podstead.storage.keys import KeyFiles
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodTotals, Version
from podstead.storage.schema import feature_tables
from podstead.wac.sharing.index import ACLS, IndexedAcl, indexed_acl

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_private_files(check: CheckContext) -> Iterator[Finding]:
    """Check that keys are whole, and everything is for this account only."""
    check.on_step("Checking keys", 0, 0)
    layout = check.layout
    provider = layout.keys / "provider"
    for path in sorted(provider.glob("*.json")) if provider.is_dir() else ():
        yield from _check_key(check, path, partial(_read_key, path))
    token_key = layout.keys / "token.key"
    if token_key.exists():
        yield from _check_key(check, token_key, lambda: load_token_keys(KeyFiles(layout.keys)))
    paths = [layout.root, layout.database, layout.blobs, layout.keys, *layout.keys.rglob("*")]
    for path in paths:
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & _OTHERS:
            repair = partial(check.repairs.make_private, path)
            yield Finding(
                Code.MODE_OPEN, str(path), "Other accounts on this machine have access", repair
            )


def check_stored_keys(check: CheckContext) -> Iterator[Finding]:
    """Check that the keys that are stored with the records are whole."""
    keys = key_storage(check.settings)
    if not keys.is_remote:
        return
    for name, content in read_all_keys(keys).items():
        is_of_provider = name.startswith(f"{PROVIDER}/")
        try:
            if is_of_provider:
                decode_key(content, keys.where(name))
            else:
                check_token_key(content, keys.where(name))
        except errors.StorageError as error:
            repair = partial(check.repairs.set_key_aside, keys, name, content)
            yield Finding(Code.KEY_DAMAGED, name, str(error), repair)


def _read_key(path: Path) -> ProviderKey:
    return decode_key(path.read_bytes(), str(path))


def _check_key(check: CheckContext, path: Path, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except (errors.StorageError, OSError) as error:
        repair = partial(check.repairs.set_file_aside, path, Code.KEY_DAMAGED)
        yield Finding(Code.KEY_DAMAGED, str(path), str(error), repair)


def check_free_space(check: CheckContext) -> Iterator[Finding]:
    """Check that there is space for new content."""
    space = DiskSpace(check.layout.root, min_free_bytes=check.settings.min_free_bytes)
    try:
        space.check()
    except errors.DiskFull:
        what = f"Only {space.free_bytes()} bytes are free"
        yield Finding(Code.DISK_LOW, str(check.layout.root), what)


_building = msgspec.json.Decoder(BuildingProgress)
_indexed = msgspec.json.Decoder(IndexedAcl)


def check_rules(check: CheckContext) -> Iterator[Finding]:
    """ACLs that nobody can read grant nothing. An index that is still being built is no finding."""
    check.on_step("Checking access rules", 0, 0)
    index = _index_of(check)
    seen = set()
    for acl in check.records.acls():
        seen.add(acl.path)
        content = _content_of(check, acl)
        if content is None or acl.path in check.damaged:
            continue  # another finding
        url = check.base_url + acl.path
        try:
            rules = parse(
                content, acl.content_type, base_iri=url, contexts=bundled_contexts()
            ).dataset
        except (UnknownContext, RdfTooComplex, errors.BodyTooLarge):
            continue  # a running server may be able to read it
        except (errors.BadRequest, errors.UnsupportedMediaType) as error:
            repair = partial(check.repairs.close_acl, acl.path, acl.version, content)
            yield Finding(Code.ACL_UNREADABLE, acl.path, f"The ACL cannot be read: {error}", repair)
            continue
        if index is not None and identifiers.storage_root(acl.path) is not None:
            yield from _check_index(check, acl, rules, index)
    for path in sorted(set(index or ()) - seen):
        empty = partial(
            check.repairs.index_acl,
            identifiers.ResourcePath(path),
            Version(""),
            Dataset(EMPTY_GRAPH),
        )
        what = "The index over access rules has an ACL that does not exist"
        yield Finding(Code.RULES_INDEX_WRONG, path, what, empty)


def _content_of(check: CheckContext, acl: StoredAcl) -> bytes | None:
    if acl.blob is None:
        return acl.content
    try:
        return body_store.blob_path(check.layout.blobs, acl.blob).read_bytes()
    except OSError:
        return None


def _index_of(check: CheckContext) -> Mapping[str, IndexedAcl] | None:
    """What the index says about each ACL; ``None`` while it is being built."""
    progress = [_building.decode(entry.value) for entry in check.records.entries(BUILDING.kind)]
    if not any(each.is_complete for each in progress):
        return None
    return {
        entry.entry.removeprefix(f"{ACLS.kind}/"): _indexed.decode(entry.value)
        for entry in check.records.entries(ACLS.kind)
    }


def _check_index(
    check: CheckContext, acl: StoredAcl, rules: Dataset, index: Mapping[str, IndexedAcl]
) -> Iterator[Finding]:
    expected = indexed_acl(
        rules.default, subject_url=check.base_url + identifiers.subject_of(acl.path)
    )
    if index.get(acl.path) != expected:
        yield Finding(
            Code.RULES_INDEX_WRONG,
            acl.path,
            "The index over access rules does not agree with the ACL",
            partial(check.repairs.index_acl, acl.path, acl.version, rules),
        )


def check_rows(check: CheckContext) -> Iterator[Finding]:
    """Rows of features are removed with the pod that they belong to."""
    check.on_step("Checking rows of features", 0, 0)
    for table in feature_tables():
        for storage, count in list(check.records.rows_without_pod(table)):
            repair = partial(check.repairs.drop_rows, table, storage)
            what = f"{messages.counted(count, 'row')} of a pod that is not there"
            yield Finding(Code.ROWS_ORPHANED, f"{table.name} {storage}", what, repair)


_CHECKS_OF_FILES: Final = (bodies.check_large_bodies, bodies.check_uploads, bodies.check_files)
_CHECKS: Final = (
    bodies.check_small_bodies,
    bodies.check_containers,
    check_rules,
    check_rows,
    check_private_files,
    check_stored_keys,
    check_free_space,
)


async def check_root(
    settings: Settings,
    *,
    is_quick: bool,
    repair: bool,
    on_step: data_root.OnStep,
    on_finding: Callable[[Finding], None],
) -> Sequence[Finding]:
    """All findings, each of which is passed to ``on_finding`` when it is found and, if ``repair``,
    has been repaired or cannot be."""
    layout = layout_of(settings)
    findings = []
    async with (
        data_root.opened_store(settings)
        if repair
        else nullcontext(data_root.unopened_store(settings)) as store
    ):
        with store.removals_locked(), closing(store.inspect()) as records:
            now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H%M%SZ")
            base_url = records.read_fact(BASE_URL_FACT) or settings.base_url
            record_store = RecordStore(store, SystemClock(), SystemRandomness())
            check = CheckContext(
                settings=settings,
                layout=layout,
                store=store,
                records=records,
                base_url=base_url,
                repairs=repairs.Repairs(
                    record_store, base_url, repairs.SetAside(layout.set_aside / now)
                ),
                on_step=on_step,
                is_quick=is_quick,
            )
            async for finding in _findings(check):
                if repair and finding.repair is not None:
                    done = await finding.repair()
                    finding.is_repaired = done is True
                    finding.loss = done if isinstance(done, str) else ""
                findings.append(finding)
                on_finding(finding)
    return findings


async def _findings(check: CheckContext) -> AsyncIterator[Finding]:
    check.on_step("Checking the database", 0, 0)
    is_elsewhere = check.settings.database is not None
    place = "PostgreSQL" if is_elsewhere else str(check.layout.database)
    damage = check.records.integrity_faults(is_quick=check.is_quick)
    for fault in damage:
        yield Finding(Code.DATABASE_DAMAGED, place, fault)
    if damage:
        return  # nothing that it says can be relied on
    async for finding in _findings_in_bodies(check):
        yield finding
    for each in _CHECKS:
        for finding in each(check):
            yield finding
    for folder in folders():
        async for finding in folder.check(check):
            yield finding


async def _findings_in_bodies(check: CheckContext) -> AsyncIterator[Finding]:
    if isinstance(check.settings.bodies, s3_location.S3Location):
        async for finding in bodies.check_objects(check, check.settings.bodies):
            yield finding
    else:
        for each in _CHECKS_OF_FILES:
            for finding in each(check):
                yield finding


@dataclass(frozen=True, slots=True)
class SpaceFigures:
    """What is used and free. Below ``floor_bytes`` of free space, nothing new is stored."""

    pods: PodTotals
    free_bytes: int
    floor_bytes: int


async def measure_space(settings: Settings) -> SpaceFigures:
    """Add up what the pods use, and look at the disk of the data root. Raises RootUnusable,
    StorageError, OSError."""
    disk = read_disk_usage(settings.root)
    space = DiskSpace(settings.root, min_free_bytes=settings.min_free_bytes)
    async with data_root.opened_records(settings) as records:
        quota_bytes = (await data_root.settings_in_effect(settings, records)).quota_bytes
        pods = await records.store.pod_totals(default_quota_bytes=quota_bytes)
    return SpaceFigures(pods, disk.free_bytes, space.floor_bytes(disk))
