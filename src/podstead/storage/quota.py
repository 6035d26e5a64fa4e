"""What a storage is charged for: the bodies, and a fixed charge for each resource.

Measured on the SQLite engine: a path is stored in up to eight places (rows, indexes, the change
log), and a long path takes pages of its own in each. Migration 0006 contains the same rule in SQL
for existing resources; migrations never change, so a change here needs a new migration.
"""

from typing import Final

from podstead.core.identifiers import ResourcePath

NEARLY_FULL_PERCENT: Final = 90
"""From when on the owner of a storage is warned."""

RESOURCE_BYTES: Final = 512
"""The charge for each resource, in addition to its path and body."""

BYTES_PER_PATH_BYTE: Final = 8
"""The number of places in which a path is stored."""

MAX_SHORT_PATH_BYTES: Final = 480
"""A longer path takes pages of its own in each place."""

PATH_PAGE_BYTES: Final = 4096
BYTES_PER_PATH_PAGE: Final = 8 * PATH_PAGE_BYTES
"""The charge for each page of a longer path, in place of the two above."""


def fixed_charge(path: ResourcePath) -> int:
    """The charge for a resource in addition to its body."""
    length = len(path)
    if length <= MAX_SHORT_PATH_BYTES:
        return RESOURCE_BYTES + BYTES_PER_PATH_BYTE * length
    return BYTES_PER_PATH_PAGE * -(-length // PATH_PAGE_BYTES)  # rounds up
