"""Notifies processes that share a database that the change log has grown.

SQLite has no such notification. Each listening process creates a named pipe in a folder of the data
root and waits until it becomes readable; a process that has committed changes writes one byte into
every pipe. Writing never blocks, since a full pipe already wakes its reader. A lost notification
delays a listener by one second at most, because listeners also poll at that interval. A notifying
process removes the pipes of listeners that have died. If there are no listeners, a commit costs one
stat of the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from podstead.storage.change_listener import ChangeListener

logger = logging.getLogger("podstead.storage")

_MTIME_RESOLUTION_NS = 100_000_000
"""A folder that was modified this shortly before it was listed can change again without a new
modification time."""

_PRIVATE = 0o600
_PIPE_BYTES = 64 * 1024


class ChangeNotifier:
    """Notifies the listeners of all processes, and creates those of this process.

    Used from one event loop only.
    """

    def __init__(self, folder: Path) -> None:
        """``folder`` contains the pipes. If it is unusable, listeners only poll."""
        self._folder = folder
        self._own_pipe: _Pipe | None = None
        self._listeners: set[ChangeListener] = set()
        self._other_pipes: dict[str, int] = {}
        self._listed_ns = (0, 0)

    def notify(self) -> None:
        """Notify every listener in every process. Neither blocks nor raises."""
        self.wake()
        try:
            self._list_other_pipes()
        except OSError:
            return
        for name in tuple(self._other_pipes):
            self._notify_other(name)

    def wake(self) -> None:
        """Wake the listeners of this process."""
        for listener in self._listeners:
            listener.wake()

    def listen(self) -> ChangeListener:
        """Start listening."""
        if self._own_pipe is None:
            self._own_pipe = _Pipe.create(self._folder, self.wake)
        listener = ChangeListener(self.remove)
        self._listeners.add(listener)
        return listener

    def remove(self, listener: ChangeListener) -> None:
        """Remove a listener, and the pipe with the last one. Idempotent."""
        self._listeners.discard(listener)
        if not self._listeners and self._own_pipe is not None:
            self._own_pipe.remove()
            self._own_pipe = None

    def close(self) -> None:
        """Release everything."""
        for listener in tuple(self._listeners):
            listener.close()
        for name in tuple(self._other_pipes):
            self._forget(name)

    # --- the pipes of others ------------------------------------------------------------------

    def _list_other_pipes(self) -> None:
        """Update the list of pipes if the folder has changed. Raises OSError."""
        changed_ns = self._folder.stat().st_mtime_ns
        known_ns, listed_ns = self._listed_ns
        if changed_ns == known_ns and listed_ns - changed_ns > _MTIME_RESOLUTION_NS:
            return
        self._listed_ns = (changed_ns, time.time_ns())
        own = None if self._own_pipe is None else self._own_pipe.name
        names = {pipe.name for pipe in self._folder.iterdir() if pipe.name[0] != "."} - {own}
        for gone in self._other_pipes.keys() - names:
            self._forget(gone)
        for new in names - self._other_pipes.keys():
            self._open_other_pipe(new)

    def _open_other_pipe(self, name: str) -> None:
        path = self._folder / name
        try:
            self._other_pipes[name] = _open(path, os.O_WRONLY)
        except OSError:  # it has no reader any more
            _remove(path)

    def _notify_other(self, name: str) -> None:
        try:
            os.write(self._other_pipes[name], b"\0")
        except BlockingIOError:
            return  # the pipe is full, so its reader is being woken already
        except OSError:  # its listener is gone
            self._forget(name)
            _remove(self._folder / name)

    def _forget(self, name: str) -> None:
        os.close(self._other_pipes.pop(name))


class _Pipe:
    """The pipe of this process."""

    def __init__(self, path: Path, ends: tuple[int, int], wake: Callable[[], None]) -> None:
        """Take ownership of both ends, the reading one first; ``wake`` is called on
        notification."""
        self._path = path
        self._ends = ends
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ends[0], self._read)

    @classmethod
    def create(cls, folder: Path, wake: Callable[[], None]) -> _Pipe | None:
        """A new pipe; ``None`` if it cannot be created."""
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        path, hidden = folder / name, folder / f".{name}"
        ends: list[int] = []
        try:
            os.mkfifo(hidden, _PRIVATE)
            # With a writer of its own, the pipe never reaches end of file.
            ends += [_open(hidden, os.O_RDONLY), _open(hidden, os.O_WRONLY)]
            hidden.rename(path)  # only now may others write to it, or remove it as stale
        except OSError:
            logger.warning("Changes of other processes are noticed with a second's delay")
            for end in ends:
                os.close(end)
            _remove(hidden)
            return None
        return cls(path, (ends[0], ends[1]), wake)

    @property
    def name(self) -> str:
        return self._path.name

    def remove(self) -> None:
        """Close and remove the pipe."""
        self._loop.remove_reader(self._ends[0])
        _remove(self._path)
        for end in self._ends:
            os.close(end)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._ends[0], _PIPE_BYTES)
        self._wake()


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
