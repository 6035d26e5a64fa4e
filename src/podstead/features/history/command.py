"""``podstead purge``: removes what is kept of resources for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podstead.cli.output import ProgressLine
from podstead.cli.running import Note, Output, on_settings, with_progress
from podstead.config import Settings
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.core.messages import counted
from podstead.features import features

if TYPE_CHECKING:
    from podstead.app.operator.compact import CompactResult


@click.command("purge", short_help="Remove what is kept of resources for good.")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@on_settings()
def purge(settings: Settings, *, urls: tuple[str, ...]) -> Output:
    """Remove everything that the trash and the versions keep of each URL and, if it is that of a
    container, of what was below it. What is stored there now stays: delete it first.

    Then large bodies that nothing refers to, all thumbnails and the index of the search are
    removed, and the database is compacted. While no server runs, the database is rewritten, so that
    nothing of what was removed is left in its files. Backups that were made before contain it, and
    the log of changes has the paths until change-log-days are over.

    PostgreSQL keeps what was removed in its files until it uses that space again: run VACUUM FULL
    there. Its write-ahead log, and a bucket that keeps versions of objects, have settings of their
    own for that.
    """
    from podstead.app.operator.data_root import served_settings

    base_url = served_settings(settings).base_url
    paths = [_path_of(url, base_url) for url in urls]
    removed, stored, are_gone, compacted = with_progress(
        lambda progress: _purge(settings, paths, progress), "Nothing more could be removed"
    )
    left = [base_url + path for path in stored]
    lines = [Note(f"Removed {counted(removed, 'former state')}.")]
    lines += [Note(f"{url} still exists. Delete it and run the command again.") for url in left]
    if not are_gone:
        lines.append(Note("A backup is being made, and needs large bodies. Run the command again."))
    if compacted.database.value == "vacuumed":
        lines.append(
            Note(
                "The files of PostgreSQL may still contain what was removed. Run VACUUM FULL there."
            )
        )
    elif compacted.database.value != "rewritten":
        lines.append(
            Note(
                "The database was not rewritten, so its files may still contain what was removed. "
                "Stop the server and run 'podstead compact'."
            )
        )
    return Output(
        {"removed": removed, "still_stored": left, "database": compacted.database.value}, lines
    )


def _path_of(url: str, base_url: str) -> ResourcePath:
    """Raises BadRequest."""
    if not url.startswith(f"{base_url}/") or not url.isascii():
        raise BadRequest(f"{url} is not a URL of this server, {base_url}")
    path = parse_path(url.removeprefix(base_url).encode("ascii"))
    if storage_root(path) is None:
        raise BadRequest(f"{url} is not in a pod")
    return path


async def _purge(
    settings: Settings, paths: Sequence[ResourcePath], progress: ProgressLine
) -> tuple[int, Sequence[ResourcePath], bool, CompactResult]:
    """The number of states that were removed, which of the paths have a resource, whether large
    bodies could be removed, and what compacting did."""
    from podstead.app.operator.compact import compact_root
    from podstead.app.operator.data_root import opened_records
    from podstead.features.history.trash import drop_kept
    from podstead.storage.blobs.staging import GARBAGE_GRACE_MS

    removed = 0
    async with opened_records(settings) as records:
        found = await records.store.read_metadata(paths)
        for path in paths:
            of_path = 0
            async for of_path in drop_kept(records, path):
                progress("Removing former states", removed + of_path, 0)
            removed += of_path
        # At once: those in a bucket would stay a while for whoever is about to read them.
        store, now_ms = records.store, records.now_ms()
        are_gone = await store.remove_garbage(now_ms=now_ms + GARBAGE_GRACE_MS)
        for feature in features():
            await feature.remove_derived(settings, records)
    compacted = await compact_root(settings, on_step=progress)
    stored = [path for path in paths if found[path] is not None]
    return removed, stored, are_gone, compacted
