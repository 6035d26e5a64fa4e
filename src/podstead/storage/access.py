"""Why can a file not be used? Its owner and its file system say more than the error."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def why_not_usable(path: Path) -> str:
    """The reason in a few words, and what to do; empty if there is none to be seen."""
    for place in (path, *path.parents):
        try:
            owner, flags = place.stat().st_uid, os.statvfs(place).f_flag
        except OSError:
            continue
        own = os.geteuid()
        if own not in (0, owner):
            return (
                f"{place} belongs to {_name(owner)}, and this is {_name(own)}: run the command as "
                f"{_name(owner)}"
            )
        return f"{place} is on a read-only file system" if flags & os.ST_RDONLY else ""
    return ""


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"the user {user_id}"
