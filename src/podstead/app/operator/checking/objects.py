"""Checks of large bodies that are objects of S3."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

from podstead.app.adapters.body_stores import object_blobs
from podstead.app.operator.checking.bodies import DRAFT_GRACE_S, FILE_GRACE_S, SortedNames
from podstead.app.operator.checking.context import CheckContext
from podstead.app.operator.checking.findings import Code, Finding
from podstead.storage.blobs.body_store import UPLOADS
from podstead.storage.blobs.files import digest_of, random_name_of
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.copying.bodies import StoredBlobs
from podstead.storage.inspection import LargeBody
from podstead.storage.records import BlobId
from podstead.storage.uploads import UPLOADS as UPLOAD_RECORDS

if TYPE_CHECKING:  # an optional library
    from podstead.storage.blobs.s3 import ObjectBlobs
    from podstead.storage.blobs.s3.objects import ListedObject


async def check_objects(check: CheckContext, location: S3Location) -> AsyncIterator[Finding]:
    """Are the large bodies there, and what was stored? Does something refer to each object? Raises
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
