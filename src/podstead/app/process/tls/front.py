"""What workers share that request client certificates: a TLS context and a private folder.

The sockets between the two halves are in a folder that only this server can access. It is removed
when the server ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podstead.config import StartRefused

if TYPE_CHECKING:
    from podstead.app.process.tls.engine import ServerContext

_MEMORY = "/dev/shm"  # noqa: S108 - the folder in it is private
"""Where Linux keeps files in memory. A socket is named and its name removed for each connection,
which takes ten times as long on a disk."""

_PREFIX = "podstead-"
_MAX_BYTES = 70
"""The maximum length of the folder's path. It leaves room for two more names in the address of a
Unix socket, which can have at least 104 bytes."""


@dataclass(slots=True)
class TlsFrontend:
    """What the TLS listeners of all workers share."""

    context: ServerContext
    """Replaced, in any thread, when the certificate is renewed."""
    folder: Path
    """Where workers create their sockets."""


@contextmanager
def private_folder(purpose: str) -> Iterator[Path]:
    """A folder that no other user can read. ``purpose`` is the setting that requires it. Raises
    StartRefused."""
    try:
        folder = _create_folder()
    except OSError as error:
        raise StartRefused(
            f"{purpose} requires a folder for temporary files, which cannot be created "
            f"({error.strerror}). Set the variable TMPDIR to a folder that can be used."
        ) from error
    try:
        if len(os.fsencode(folder)) > _MAX_BYTES:
            raise StartRefused(
                f"{purpose} cannot use {folder.parent} for temporary files, because its path is "
                "too long for a socket. Set the variable TMPDIR to another folder."
            )
        yield folder
    finally:
        remove_folder(folder)


def _create_folder() -> Path:
    """A new folder with mode 0700, in memory if possible unless the operator has chosen a place.
    Raises OSError."""
    if "TMPDIR" not in os.environ:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY))
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def remove_folder(folder: Path) -> None:
    """Remove the folder; another process may do so at the same time."""
    shutil.rmtree(folder, ignore_errors=True)
