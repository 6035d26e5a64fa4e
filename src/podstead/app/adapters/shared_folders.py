"""Is a folder the one that all nodes of a database share?

The first node writes a random mark into it and records the mark in the database. A node that finds
another folder at that path, or an empty place where nothing is mounted, does not start: it would
not find what the others store.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from podstead.app.adapters.body_stores import BodyFacts
from podstead.core.errors import RootUnusable, StorageError
from podstead.storage.files import sync_directory, write_private

_FILE: Final = "shared-folder"
_MARK_BYTES: Final = 16
_PRIVATE: Final = 0o700


def claim_shared_folder(folder: Path, fact: str, facts: BodyFacts, *, advice: str) -> None:
    """Mark a folder at the first start, and refuse any other one later. Called by one node at a
    time. Raises RootUnusable with the advice, StorageError."""
    file, noted = folder / _FILE, facts.read_fact(fact)
    try:
        found = file.read_text("ascii") if file.exists() else None
        if noted is None:
            if found is None:
                found = secrets.token_hex(_MARK_BYTES)
                folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
                write_private(file, found.encode("ascii"))
                sync_directory(folder)
            facts.write_fact(fact, found)
            return
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be used: {error.strerror}") from error
    if found != noted:
        raise RootUnusable(
            f"The servers with this database share another folder than {folder}. {advice}"
        )
