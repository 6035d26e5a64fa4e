"""What is a storage charged for? Bodies, and a fixed charge for each resource.

Measured on the SQLite engine: a path is stored in up to eight places (rows, indexes, the change
log), and a long one takes pages of its own in each. Migration 0006, which charged what existed
before, states the same rule in SQL; migrations never change, so a change here needs a new one.
"""

from __future__ import annotations

from typing import Final

from podstead.core.identifiers import ResourcePath

RESOURCE_BYTES: Final = 512
"""For each resource, in addition to its path and body."""

BYTES_PER_PATH_BYTE: Final = 8
"""One for each place where a path is stored."""

MAX_SHORT_PATH_BYTES: Final = 480
"""A longer path takes pages of its own in each of the places."""

PATH_PAGE_BYTES: Final = 4096
BYTES_PER_PATH_PAGE: Final = 8 * PATH_PAGE_BYTES
"""For each piece of a longer path, the last one included, in place of the two above."""


def fixed_charge(path: ResourcePath) -> int:
    """What a resource is charged for, whatever its body."""
    length = len(path)
    if length <= MAX_SHORT_PATH_BYTES:
        return RESOURCE_BYTES + BYTES_PER_PATH_BYTE * length
    return BYTES_PER_PATH_PAGE * -(-length // PATH_PAGE_BYTES)  # rounds up
