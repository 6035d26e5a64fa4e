"""Checks of large bodies that are objects of S3."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from functools import partial

from podstead.app.adapters.body_stores import stored_blobs
from podstead.app.operator.checking.context import CheckContext
from podstead.app.operator.checking.findings import Code, Finding
from podstead.storage.blobs.verification import digest_of
from podstead.storage.copying.bodies import StoredBlobs
from podstead.storage.inspection import LargeBody


async def check_objects(check: CheckContext) -> AsyncIterator[Finding]:
    """Are the large bodies there, and what was stored? Objects that nothing refers to are not
    looked for. Raises StoreUnavailable: trouble is no damage."""
    blobs = stored_blobs(check.settings)
    total = check.records.counts().large_bodies
    for number, body in enumerate(check.records.large_bodies(), 1):
        check.on_step("Checking large bodies", number, total)
        size_bytes = await blobs.size_of(body.blob)
        if size_bytes is None:
            check.damaged.add(body.path)
            repair = partial(check.repairs.replace_body, body.path, Code.BODY_MISSING, None)
            yield Finding(Code.BODY_MISSING, body.path, f"There is no object {body.blob}", repair)
        elif size_bytes != body.size_bytes or not await _is_whole(check, blobs, body):
            # Its bytes cannot be set aside, so this is left to whoever has a backup.
            check.damaged.add(body.path)
            what = f"The object {body.blob} is not what was stored"
            yield Finding(Code.BODY_DAMAGED, body.path, what)


async def _is_whole(check: CheckContext, blobs: StoredBlobs, body: LargeBody) -> bool:
    expected = digest_of(body.blob)
    if check.is_quick or expected is None:
        return True
    hashed = hashlib.sha256()
    async for piece in blobs.read(body.blob, body.size_bytes):
        hashed.update(piece)
    return hashed.hexdigest() == expected
