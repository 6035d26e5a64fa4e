"""``podstead check`` finds objects that no record knows, and none that one does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import obstore
import pytest

from podstead.app.adapters.engine import claim_bodies, prepare_engine, stored_facts
from podstead.app.operator.check import check_root
from podstead.app.operator.checking import bodies as checks
from podstead.app.operator.checking.findings import Code, Finding
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.disk_space import DiskSpace
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from podstead.storage.uploads import UPLOADS, UploadRecord
from tests.storage.engine_suite.engine import LARGE_BYTES, commit, plant, put, stage_large, write
from tests.support.body_stores import ObjectsInBucket
from tests.support.seaweedfs import shared_s3_server

ORPHANS = {"bodies/" + "0" * 32: Code.FILE_ORPHANED, "uploads/gone/1-0-6": Code.UPLOAD_ORPHANED}


async def test_objects_that_no_record_knows_are_found_and_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = shared_s3_server().new_location()
    settings = Settings(root=tmp_path / "root", bodies=parse_s3_location(url))
    layout = prepare_root(settings.root)
    prepare_engine(settings, DiskSpace(settings.root))
    claim_bodies(settings, stored_facts(settings), is_new=True)
    kept = ObjectsInBucket(layout, url)
    store = SqliteStore(layout.root, bodies=kept.factory)
    await store.open()
    await plant(store)
    await commit(store, write(put("/alice/c/a", await stage_large(store))))
    await commit(store, write(put("/alice/c/b", await stage_large(store))))
    await commit(store, write(put("/alice/c/b", await stage_large(store), creates=False)))
    await stage_large(store)
    record = UploadRecord(ResourcePath("/alice/c/c"), 6, "text/plain", offset_bytes=6)
    await commit(store, write(records=[UPLOADS.put("here", record)]))
    await store.close()
    former = kept.names()[0]  # an object that a server of an earlier version stored
    kept.rename(former, f"{former}-{hashlib.sha256(b'x' * LARGE_BYTES).hexdigest()}")
    for name in (*ORPHANS, "uploads/here/1-0-6"):
        obstore.put(kept.store, name, b"orphan")
    in_use = set(kept.names()) - ORPHANS.keys()

    assert await findings(settings) == [], "they may be about to get a record"
    monkeypatch.setattr(checks, "FILE_GRACE_S", -60)
    monkeypatch.setattr(checks, "DRAFT_GRACE_S", -60)
    assert {each.where: each.code for each in await findings(settings)} == ORPHANS
    assert set(kept.names()) == in_use | ORPHANS.keys(), "a check changes nothing"
    assert all(each.is_repaired for each in await findings(settings, repair=True))
    assert await findings(settings) == []
    aside = set(kept.names()) - in_use
    assert {name.split("/", 2)[2] for name in aside} == ORPHANS.keys()
    assert {bytes(obstore.get(kept.store, name).bytes()) for name in aside} == {b"orphan"}
    (listed,) = layout.set_aside.glob("*/list.jsonl")
    assert all(name in listed.read_text() for name in aside)


async def findings(settings: Settings, *, repair: bool = False) -> Sequence[Finding]:
    found = await check_root(
        settings,
        is_quick=False,
        repair=repair,
        on_step=lambda *_: None,
        on_finding=lambda _: None,
    )
    return [each for each in found if each.code is not Code.DISK_LOW]
