"""Where are the signing keys stored? In ``<root>/keys/``, which no URL leads to (A-32, A-43).

The first start creates the key, and later starts use it. A rotation renames ``token.key`` to
``token.previous.key``; tokens signed with that key remain valid until they expire.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from podstead.authn.pod_token import MIN_KEY_BYTES, SigningKey
from podstead.core.errors import StorageError
from podstead.storage.private_files import sync_directory, write_private

_CURRENT = "token.key"
_PREVIOUS = "token.previous.key"


def ensure_token_key(keys: Path) -> None:
    """Create the signing key if there is none. Raises StorageError.

    Several processes may call this at the same time: all of them use the key that the first one
    creates.
    """
    target = keys / _CURRENT
    draft = keys / f".{_CURRENT}.{secrets.token_hex(8)}"
    try:
        if target.exists():
            return
        write_private(draft, secrets.token_bytes(MIN_KEY_BYTES))
        try:
            os.link(draft, target)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_directory(keys)
    except OSError as error:
        raise StorageError(f"The signing key in {keys} could not be made") from error


def load_token_keys(keys: Path) -> Sequence[SigningKey]:
    """The signing key and, after a rotation, the previous one. Raises StorageError."""
    try:
        loaded = [SigningKey((keys / _CURRENT).read_bytes())]
        previous = keys / _PREVIOUS
        if previous.exists():
            loaded.append(SigningKey(previous.read_bytes()))
    except OSError as error:
        raise StorageError(f"The signing key in {keys} could not be read") from error
    if any(len(key) < MIN_KEY_BYTES for key in loaded):
        raise StorageError(f"A signing key in {keys} is shorter than {MIN_KEY_BYTES} bytes")
    return loaded
