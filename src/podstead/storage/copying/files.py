"""Records as one SQLite file, also of an engine that has them elsewhere: what backups contain."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Final

from podstead.storage.copying.rows import CopyState, RowSource, copy_rows
from podstead.storage.inspection import OnProgress
from podstead.storage.private_files import sync_directory

_PRIVATE_FILE: Final = 0o600


def write_records_file(source: RowSource, target: Path, on_progress: OnProgress) -> None:
    """Write all rows into a new database file, durably. Raises StorageError, CopyFailed,
    OSError."""
    from podstead.storage.sqlite import migrate  # noqa: PLC0415 - of the other engine
    from podstead.storage.sqlite.copying import SqliteTarget, as_one_file  # noqa: PLC0415

    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE))
    migrate(target)
    state = CopyState("")
    with closing(SqliteTarget(target)) as records:
        records.begin(state)
        state = copy_rows(source, records, state, lambda _, done, total: on_progress(done, total))
        records.finish(state)
    as_one_file(target)
    sync_directory(target.parent)
