"""What do workers find that ask for client certificates? What TLS needs, and a private place.

The sockets between the two halves lie in a folder of this server alone, gone when it has ended.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podstead.config import StartRefused

if TYPE_CHECKING:
    from podstead.app.process.tls.engine import ServerContext

_MAX_BYTES = 70
"""What leaves room for two more names in the address of a Unix socket, which is 104 bytes long at
least."""


@dataclass(slots=True)
class Front:
    """What stands before the HTTP server."""

    context: ServerContext
    """Replaced, in any thread, once the certificate is renewed."""
    folder: Path
    """Where workers may make sockets."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that no other account can look into. Raises StartRefused."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="podstead-"))  # with mode 0700
    except OSError as error:
        raise StartRefused(
            f"webid-tls requires a folder for temporary files, which cannot be created "
            f"({error.strerror}). Set the variable TMPDIR to a folder that can be used."
        ) from error
    try:
        if len(os.fsencode(folder)) > _MAX_BYTES:
            raise StartRefused(
                f"webid-tls cannot use {folder.parent} for temporary files, because its path is "
                "too long for a socket. Set the variable TMPDIR to another folder."
            )
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove it, even if another process does so at the same time."""
    shutil.rmtree(folder, ignore_errors=True)
