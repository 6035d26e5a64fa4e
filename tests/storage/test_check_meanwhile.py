"""A check that repairs leaves alone what somebody stores while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import apsw
import pytest

from podstead.app.adapters.engine import new_store, prepare_engine
from podstead.app.operator.check import check_root
from podstead.app.operator.checking.findings import Code, Finding
from podstead.config import Settings
from podstead.storage.disk_space import DiskSpace
from podstead.storage.records import Body, InlineBody
from podstead.storage.root import prepare_root
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    commit,
    content_of,
    plant,
    put,
    read_present,
    write,
)

PATH = "/alice/c/a"


async def store_body(settings: Settings, content: bytes, *, creates: bool) -> None:
    store = new_store(settings)
    await store.open()
    try:
        if creates:
            await plant(store)
        body: Body = await store.stage_body(content)
        assert isinstance(body, InlineBody) is (len(content) < LARGE_BYTES)
        await commit(store, write(put(PATH, body, creates=creates)))
    finally:
        await store.close()


@pytest.mark.parametrize("stored_again", [b"new", b"n" * LARGE_BYTES], ids=["small", "large"])
@pytest.mark.parametrize("damaged", [b"old", b"o" * LARGE_BYTES], ids=["was small", "was large"])
async def test_what_was_stored_again_meanwhile_is_not_repaired(
    tmp_path: Path, damaged: bytes, stored_again: bytes
) -> None:
    settings = Settings(root=tmp_path / "root")
    layout = prepare_root(settings.root)
    prepare_engine(settings, DiskSpace(settings.root))
    await store_body(settings, damaged, creates=True)
    if len(damaged) < LARGE_BYTES:
        with apsw.Connection(str(layout.database)) as connection:
            connection.execute("UPDATE bodies SET content = x'78787878' WHERE path = ?", (PATH,))
    else:
        (blob,) = (path for path in layout.blobs.rglob("*-*") if path.is_file())
        blob.unlink()

    found = await check(settings, stored_again)
    assert [(each.where, each.is_repaired) for each in found] == [(PATH, False)]
    store = new_store(settings)
    await store.open()
    assert await content_of(store, PATH) == stored_again
    assert (await read_present(store, PATH)).size_bytes == len(stored_again)
    await store.close()


async def check(settings: Settings, stored_again: bytes) -> Sequence[Finding]:
    """Check and repair, while somebody else stores a body after the records were read."""
    rest = [stored_again]

    def on_step(step: str, *_: int) -> None:
        if rest and step in {"Checking large bodies", "Checking small bodies"}:
            work = store_body(settings, rest.pop(), creates=False)
            thread = Thread(target=asyncio.run, args=(work,))
            thread.start()
            thread.join()

    found = await check_root(
        settings, is_quick=False, repair=True, on_step=on_step, on_finding=lambda _: None
    )
    assert not rest
    return [each for each in found if each.code in {Code.BODY_MISSING, Code.BODY_DAMAGED}]
