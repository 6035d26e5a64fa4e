"""What is a storage charged for? Bodies, and what each resource takes besides.

Measured on the SQLite engine: a path is kept in up to eight places (rows, indexes, the change log),
and a long one takes pages of its own in each. The same rule stands in migration 0006, which charged
what was there before.
"""

from __future__ import annotations

from typing import Final

from podstead.core.identifiers import ResourcePath

RESOURCE_BYTES: Final = 512
"""For each resource, beside its path and body."""

BYTES_OF_A_PATH_BYTE: Final = 8

LONGEST_SHORT_PATH: Final = 480

PATH_PIECE_BYTES: Final = 4096
BYTES_OF_A_PATH_PIECE: Final = 8 * PATH_PIECE_BYTES
"""For each begun piece of a longer path, in place of the two above."""


def fixed_charge(path: ResourcePath) -> int:
    """What a resource is charged for whatever its body is."""
    length = len(path)
    if length <= LONGEST_SHORT_PATH:
        return RESOURCE_BYTES + BYTES_OF_A_PATH_BYTE * length
    return BYTES_OF_A_PATH_PIECE * -(-length // PATH_PIECE_BYTES)
