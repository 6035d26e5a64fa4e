"""Any sequence of writes, one by one or many at once, leaves what a plain model says."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.records import Write
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.model import Model
from tests.storage.model_steps import INLINE_BODY_BYTES, Batch, batches, compare_with_model


@settings(max_examples=60)
@given(st.lists(batches, min_size=1, max_size=12))
def test_the_store_holds_what_the_model_says(drawn: list[Batch]) -> None:
    asyncio.run(_run(drawn))


async def _run(drawn: list[Batch]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = prepare_root(Path(directory)).root
        stores = [SqliteStore(root, inline_body_bytes=INLINE_BODY_BYTES) for _ in range(2)]
        for store in stores:
            await store.open()
        try:
            model = await compare_with_model(list(stores), drawn, _commit)
            _check_leftovers(root, model)
        finally:
            for store in stores:
                await store.close()


async def _commit(store: Store, wanted: Write) -> object:
    return await store.commit(wanted)


def _check_leftovers(root: Path, model: Model) -> None:
    """Nothing is stored twice, and nothing that nobody could ever read or remove."""
    connection = apsw.Connection(str(RootLayout(root).database))
    small = {path for path, s in model.resources.items() if len(s.content) <= INLINE_BODY_BYTES}
    assert {path for (path,) in connection.execute("SELECT path FROM bodies")} == small
    used = set(
        connection.execute(
            "SELECT blob FROM resources WHERE blob IS NOT NULL UNION ALL SELECT blob FROM staged"
        )
    )
    garbage = set(connection.execute("SELECT blob FROM garbage"))  # of which files may be left
    files = {(place.name,) for place in RootLayout(root).blobs.rglob("*") if place.is_file()}
    assert used <= files <= used | garbage
    connection.close()
