"""What became of a request to give space back."""

from __future__ import annotations

from enum import Enum


class Compaction(Enum):
    """What compacting did to the file or files that the records are in."""

    REWRITTEN = "rewritten"
    """They were written anew, as small as possible."""
    SHRUNK = "shrunk"
    """Free parts were given back, while other processes went on using them."""
    VACUUMED = "vacuumed"
    """What was free was made available for new content; files of the database become smaller only
    where the free space is at their end."""
    NEEDS_TO_BE_ALONE = "needs-to-be-alone"
    """They can only be made smaller while no server runs."""
    NEEDS_SPACE = "needs-space"
    """There is not enough free space for a second copy; free parts were given back."""
