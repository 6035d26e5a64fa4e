"""Checks of bodies, large and small, and of drafts."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from podstead.app.adapters.engine import object_blobs
from podstead.app.operator.checking.findings import CheckContext, Code, Finding
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.body_store import DRAFTS, UPLOADS, blob_path, draft_path
from podstead.storage.blobs.files import digest_of, random_name_of
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.copying.bodies import StoredBlobs
from podstead.storage.inspection import LargeBody
from podstead.storage.records import BlobId
from podstead.storage.uploads import UPLOADS as UPLOAD_RECORDS
from podstead.storage.uploads import UploadRecord

if TYPE_CHECKING:
    from podstead.storage.blobs.s3 import ObjectBlobs
    from podstead.storage.blobs.s3.objects import ListedObject


class SortedNames:
    """Names in ascending order, of which each is looked at once."""

    def __init__(self, names: Iterator[str]) -> None:
        self._names = names
        self._next = next(names, None)

    def has(self, name: str) -> bool:
        """Whether it is there. A name that is smaller than one asked for before is not found."""
        while self._next is not None and self._next < name:
            self._next = next(self._names, None)
        return self._next == name


FILE_GRACE_S: Final = 60 * 60
"""How old a file must be to be an orphan: the server removes its own after ten minutes."""
DRAFT_GRACE_S: Final = 24 * 60 * 60
"""The same for drafts, which the server removes after an hour without growth."""
_record = msgspec.json.Decoder(UploadRecord)


def check_large_bodies(check: CheckContext) -> Iterator[Finding]:
    """Check that the large bodies are there, and are what was stored."""
    total = check.records.counts().large_bodies
    for number, body in enumerate(check.records.large_bodies(), 1):
        check.on_step("Checking large bodies", number, total)
        path = blob_path(check.layout.blobs, body.blob)
        fault = _fault_of(path, body, is_quick=check.is_quick)
        if fault is not None:
            code, what = fault
            check.damaged.add(body.path)
            kept = path if code is Code.BODY_DAMAGED else None
            repair = partial(check.repairs.replace_body, body.path, code, kept, blob=body.blob)
            yield Finding(code, body.path, what, repair)


def _fault_of(path: Path, body: LargeBody, *, is_quick: bool) -> tuple[Code, str] | None:
    try:
        size_bytes = path.stat().st_size
        if size_bytes != body.size_bytes:
            return Code.BODY_DAMAGED, f"{path} has {size_bytes} bytes and not {body.size_bytes}"
        expected = digest_of(body.blob)
        if is_quick or expected is None:
            return None
        with path.open("rb", buffering=0) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return Code.BODY_MISSING, f"There is no {path}"
    except OSError as error:
        return Code.BODY_DAMAGED, f"{path} cannot be read: {error.strerror}"
    return None if found == expected else (Code.BODY_DAMAGED, f"The hash of {path} is another one")


def check_small_bodies(check: CheckContext) -> Iterator[Finding]:
    """Check that the bodies in the database are what was stored, and that each belongs to a
    resource."""
    check.on_step("Checking small bodies", 0, 0)
    if not check.is_quick:
        for body in check.records.damaged_small_bodies():
            check.damaged.add(body.path)
            code = Code.BODY_MISSING if body.content is None else Code.BODY_DAMAGED
            repair = partial(check.repairs.replace_body, body.path, code, body.content, blob=None)
            yield Finding(
                code, body.path, "Its body in the database is not what was stored", repair
            )
        for state in check.records.damaged_former_states():
            what = "The body of a former state is not what was stored"
            repair = partial(check.repairs.drop_former, state)
            yield Finding(Code.BODY_DAMAGED, state.path, what, repair)
    for path in check.records.orphan_small_bodies():
        yield Finding(
            Code.BODY_ORPHANED,
            path,
            "The database has a body for a resource that does not exist",
            partial(check.repairs.take_orphan_body, path),
        )


def check_files(check: CheckContext) -> Iterator[Finding]:
    """Does something refer to each file? One that was written a moment ago may not be known yet."""
    check.on_step("Checking for files that nothing refers to", 0, 0)
    now_s = time.time()
    known = SortedNames(check.records.blob_names())
    suspects = [
        path
        for path in _blob_files(check.layout.blobs)
        if not known.has(path.name) and _is_older(path, now_s - FILE_GRACE_S)
    ]
    if suspects:
        # What has been stored in the meantime was recorded before it got its name.
        with check.look_again() as records:
            recorded = set(records.blob_names())
        for path in suspects:
            if path.name not in recorded and path.exists():
                repair = partial(check.repairs.set_file_aside, path, Code.FILE_ORPHANED)
                yield Finding(Code.FILE_ORPHANED, str(path), "No resource has this body", repair)
    yield from _orphan_drafts(check, now_s - DRAFT_GRACE_S)


def _blob_files(blobs: Path) -> Iterator[Path]:
    """All files of blobs in the order of their names."""
    for first in sorted(blobs.iterdir()):
        if first.name not in {DRAFTS, UPLOADS} and first.is_dir():
            for second in sorted(first.iterdir()):
                yield from sorted(second.iterdir())


def _orphan_drafts(check: CheckContext, before_s: float) -> Iterator[Finding]:
    in_progress = {
        entry.entry.removeprefix(f"{UPLOAD_RECORDS.kind}/")
        for entry in check.records.entries(UPLOAD_RECORDS.kind)
    }
    drafts = check.layout.blobs / DRAFTS
    uploads = check.layout.blobs / UPLOADS
    for path in (*_listed(drafts), *_listed(uploads)):
        if path.parent == uploads and path.name in in_progress:
            continue
        newest = path / "body" if path.parent == uploads else path
        if _is_older(path, before_s) and (not newest.exists() or _is_older(newest, before_s)):
            repair = partial(check.repairs.set_file_aside, path, Code.UPLOAD_ORPHANED)
            what = "An unfinished body that nobody continues"
            yield Finding(Code.UPLOAD_ORPHANED, str(path), what, repair)


def check_uploads(check: CheckContext) -> Iterator[Finding]:
    """Check that there is as much of each upload as its record states."""
    for entry in check.records.entries(UPLOAD_RECORDS.kind):
        if entry.has_expired(int(time.time() * 1000)):
            continue
        name = entry.entry.removeprefix(f"{UPLOAD_RECORDS.kind}/")
        with suppress(msgspec.DecodeError):
            needed_bytes = _record.decode(entry.value).offset_bytes
            path = draft_path(check.layout.blobs, name)
            held_bytes = path.stat().st_size if path.exists() else -1
            if held_bytes >= needed_bytes:
                continue
            with check.look_again() as records:  # it may have been finished
                now = {each.entry: each for each in records.entries(UPLOAD_RECORDS.kind)}
            if entry.entry in now:
                yield Finding(
                    Code.UPLOAD_INCOMPLETE,
                    name,
                    f"An upload has less than the {needed_bytes} bytes that were acknowledged",
                    partial(check.repairs.drop_entry, entry),
                )


def check_containers(check: CheckContext) -> Iterator[Finding]:
    """Check that containers agree with their members, and the figures with what is there."""
    check.on_step("Checking containers and figures", 0, 0)
    for path in check.records.members_without_container():
        yield Finding(
            Code.CONTAINER_MISSING,
            path,
            "The container above it does not exist, or does not list it",
            partial(check.repairs.create_containers, ResourcePath(path)),
        )
    for figure in check.records.wrong_member_counts():
        what = f"It is recorded with {figure.recorded} members and has {figure.actual}"
        yield Finding(Code.COUNT_WRONG, figure.path, what, check.repairs.recount)
    for figure in check.records.wrong_usage():
        what = f"It is charged for {figure.recorded} bytes and uses {figure.actual}"
        yield Finding(Code.USAGE_WRONG, figure.path, what, check.repairs.recount)


def _listed(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _is_older(path: Path, before_s: float) -> bool:
    try:
        return os.stat(path).st_mtime < before_s  # noqa: PTH116 - also of directories
    except FileNotFoundError:
        return False


async def check_objects(check: CheckContext, location: S3Location) -> AsyncIterator[Finding]:
    """Check that the large bodies are what was stored, and something refers to each object. Raises
    StoreUnavailable: trouble is no damage."""
    blobs = object_blobs(location)
    total = check.records.counts().large_bodies
    for number, body in enumerate(check.records.large_bodies(), 1):
        check.on_step("Checking large bodies", number, total)
        size_bytes = await blobs.size_of(body.blob)
        if size_bytes is None:
            check.damaged.add(body.path)
            code, what = Code.BODY_MISSING, f"There is no object {body.blob}"
            repair = partial(check.repairs.replace_body, body.path, code, None, blob=body.blob)
            yield Finding(code, body.path, what, repair)
        elif size_bytes != body.size_bytes or not await _is_whole(check, blobs, body):
            # Its bytes cannot be set aside, so this is left to whoever has a backup.
            check.damaged.add(body.path)
            what = f"The object {body.blob} is not what was stored"
            yield Finding(Code.BODY_DAMAGED, body.path, what)
    async for finding in _orphans(check, blobs):
        yield finding


async def _orphans(check: CheckContext, blobs: ObjectBlobs) -> AsyncIterator[Finding]:
    """Objects without a record.

    The record of a body is written before its object exists and removed after it, and no name is
    used twice. So an object that is there, and of which the records that are read afterwards know
    nothing, belongs to nothing and never will. The grace period is for clients of uploads, and for
    commands that bring bodies before records.
    """
    check.on_step("Checking for objects that nothing refers to", 0, 0)
    now_ms = time.time() * 1000
    known = SortedNames(random_name_of(blob) for blob in check.records.blob_names())
    suspects: dict[str, ListedObject] = {}
    async for each in blobs.listed():
        folder, name = each.key.split("/")[:2]
        is_part = folder == UPLOADS
        grace_s = DRAFT_GRACE_S if is_part else FILE_GRACE_S
        if each.modified_ms < now_ms - grace_s * 1000 and (
            is_part or not known.has(random_name_of(BlobId(name)))
        ):
            suspects[each.key] = each
    if not suspects:
        return
    with check.look_again() as records:
        for blob in records.blob_names():
            for key in blobs.object_names_of(blob):
                suspects.pop(key, None)
        uploads = {
            entry.entry.removeprefix(f"{UPLOAD_RECORDS.kind}/")
            for entry in records.entries(UPLOAD_RECORDS.kind)
        }
    for key, each in suspects.items():
        folder, name = key.split("/")[:2]
        code, what = Code.FILE_ORPHANED, "No resource has this body"
        if folder == UPLOADS:
            code, what = Code.UPLOAD_ORPHANED, "An unfinished body that nobody continues"
            if name in uploads:
                continue
        if await blobs.exists(key):
            repair = partial(check.repairs.set_object_aside, blobs, key, each.size_bytes, code)
            yield Finding(code, key, what, repair)


async def _is_whole(check: CheckContext, blobs: StoredBlobs, body: LargeBody) -> bool:
    expected = digest_of(body.blob)
    if check.is_quick or expected is None:
        return True
    hashed = hashlib.sha256()
    async for piece in blobs.read(body.blob, body.size_bytes):
        hashed.update(piece)
    return hashed.hexdigest() == expected
