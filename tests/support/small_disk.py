"""A small disk of its own for a server: a tmpfs in a mount namespace, where that is allowed."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_HOLD = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec cat'


class SmallDisk:
    """A file system of so many bytes, which commands that begin with :attr:`podstead` see at
    ``place``, and the test itself at :attr:`files`; :attr:`command` starts a server there."""

    def __init__(self, holder: subprocess.Popen[str], place: Path) -> None:
        self.place = place
        self.files = Path(f"/proc/{holder.pid}/root") / place.relative_to("/")
        enter = f"nsenter --target {holder.pid} --user --preserve-credentials --mount"
        self.podstead: Sequence[str] = (*enter.split(), sys.executable, "-m", "podstead.cli")
        self.command: Sequence[str] = (*self.podstead, "start")
        self._ballast = self.files / "ballast"

    @property
    def free_bytes(self) -> int:
        status = os.statvfs(self.files)
        return status.f_bavail * status.f_frsize

    def fill(self) -> None:
        """Take all that is free."""
        with self._ballast.open("ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def make_room(self) -> None:
        """Give back what was taken."""
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(place: Path, *, size_bytes: int) -> Iterator[SmallDisk | None]:
    """Mount one at an empty directory; ``None`` where this account may not."""
    command = ("unshare", "--map-root-user", "--mount", "sh", "-c", _HOLD, "sh")
    try:
        holder = subprocess.Popen(
            [*command, str(size_bytes), str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except FileNotFoundError:
        yield None
        return
    assert holder.stdout is not None
    assert holder.stdin is not None
    with holder:
        is_mounted = holder.stdout.readline() == "mounted\n"
        try:
            yield SmallDisk(holder, place) if is_mounted else None
        finally:
            with contextlib.suppress(BrokenPipeError):
                holder.stdin.close()
