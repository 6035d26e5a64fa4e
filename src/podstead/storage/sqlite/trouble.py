"""What do errors of the database mean to an operator?"""

from __future__ import annotations

from pathlib import Path

import apsw

from podstead.storage.access import why_not_usable


def explained(database: Path, error: Exception, *, otherwise: str) -> str:
    """Why the database cannot be used; ``otherwise``, with the error, if nothing else is known."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return f"{database} is damaged or no database: restore a backup, or give another root."
    reason = why_not_usable(database)
    return f"{otherwise}: {error}{f'. {reason}' if reason else ''}."
