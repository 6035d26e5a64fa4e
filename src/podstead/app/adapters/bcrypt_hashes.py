"""Is this the password of a bcrypt hash? Other Solid servers store such hashes."""

from __future__ import annotations

from typing import Final

import bcrypt

from podstead.core.errors import StorageError

_MAX_BYTES: Final = 72
"""bcrypt uses no more of a password, and those who made the hashes ignored the rest."""


def matches_bcrypt(password_hash: str, password: str) -> bool:
    """Whether the hash is that of the password. Raises StorageError for a damaged hash."""
    try:
        return bcrypt.checkpw(password.encode()[:_MAX_BYTES], password_hash.encode())
    except ValueError as error:
        raise StorageError("The hash of a password cannot be read") from error
