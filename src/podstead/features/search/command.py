"""``podstead search``: what operators do with the index."""

import asyncio

import click

from podstead.cli.output import ProgressLine
from podstead.cli.running import Note, Output, on_settings, with_progress
from podstead.config import Settings
from podstead.core.messages import counted

_LOOK_S = 0.2


@click.group()
def search() -> None:
    """Take care of the index of the search."""


@search.command(short_help="Build the index of the search again.")
@on_settings()
def rebuild(settings: Settings) -> Output:
    """Remove the index of the names and contents of documents, and build it from what is stored.

    Nothing else is changed. A running server builds it, also if this command is ended, and people
    find what is indexed already. Otherwise this command does. An index that is damaged or missing
    is built again without it.
    """
    indexed = with_progress(
        lambda progress: _rebuild(settings, progress), "The index could not be built"
    )
    return Output({"indexed": indexed}, [Note(f"Indexed {counted(indexed, 'resource')}.")])


async def _rebuild(settings: Settings, progress: ProgressLine) -> int:
    """The number of documents and containers in the new index."""
    from podstead.app.operator.data_root import opened_records
    from podstead.features.search.extractor import Extractor
    from podstead.features.search.indexer import Indexer
    from podstead.features.search.worker import index_of
    from podstead.storage.disk_space import DiskSpace

    async with opened_records(settings) as records:
        space = DiskSpace(settings.root, min_free_bytes=settings.min_free_bytes)
        index = index_of(settings, records, space)
        try:
            await index.forget()
            while True:
                if await index.hold():
                    async for _ in Indexer(index, records.store, Extractor()).steps():
                        progress("Indexing", await index.size(), 0)
                    break
                position = await index.position()
                if position is not None and position.cursor is None:
                    break
                progress("Indexing", await index.size(), 0)
                await asyncio.sleep(_LOOK_S)
            return await index.size()
        finally:
            await index.close()
