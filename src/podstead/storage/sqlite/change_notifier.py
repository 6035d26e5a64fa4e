"""How do processes that share a database tell each other that the change log has grown?

SQLite has no message for it. Each process that listens makes a named pipe in a folder of the data
root and waits for it to become readable; whoever has committed changes writes one byte into every
pipe there. A full pipe is as good as rung, so nobody ever waits, and a lost ring costs a second,
since listeners look by themselves as often as that. Pipes whose listener died are removed by the
next who rings. Who commits while nobody listens pays for one look at the folder's time.
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

logger = logging.getLogger("podstead.storage")

POLL_INTERVAL_S = 1.0
"""How often a listener looks without having been told; what a lost ring costs at most."""

_MTIME_RESOLUTION_NS = 100_000_000
"""A folder changed this shortly before it was listed may change again without a new time."""

_PRIVATE = 0o600
_PIPE_BYTES = 64 * 1024


class ChangeNotifier:
    """Rings the listeners of all processes, and lets this one listen. Used from one event loop."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is where the pipes are. Where it cannot be used, listeners look by
        themselves, and ringing does nothing."""
        self._folder = folder
        self._own_pipe: _Pipe | None = None
        self._listeners: set[Listener] = set()
        self._other_pipes: dict[str, int] = {}
        self._listed_ns = (0, 0)

    def notify(self) -> None:
        """Tell every listener, here and elsewhere. Neither waits nor raises."""
        self.wake()
        try:
            self._list_other_pipes()
        except OSError:
            return
        for name in tuple(self._other_pipes):
            self._notify_other(name)

    def wake(self) -> None:
        """Tell the listeners of this process."""
        for listener in self._listeners:
            listener.wake()

    def listen(self) -> Listener:
        """Begin to listen."""
        if self._own_pipe is None:
            self._own_pipe = _Pipe.create(self._folder, self.wake)
        listener = Listener(self)
        self._listeners.add(listener)
        return listener

    def remove(self, listener: Listener) -> None:
        """End listening; the last one takes the pipe away. Idempotent."""
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
        """Know the pipes there are, looking only if the folder has changed. Raises OSError."""
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
        except OSError:  # nobody reads it any more
            _remove(path)

    def _notify_other(self, name: str) -> None:
        try:
            os.write(self._other_pipes[name], b"\0")
        except BlockingIOError:
            return  # it rings already
        except OSError:  # its listener is gone
            self._forget(name)
            _remove(self._folder / name)

    def _forget(self, name: str) -> None:
        os.close(self._other_pipes.pop(name))


class Listener:
    """Implements ChangeSignal. A wake-up that comes while nobody waits is kept."""

    def __init__(self, notifier: ChangeNotifier) -> None:
        self._notifier = notifier
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Have :meth:`wait` return."""
        self._woken.set()

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self._woken.wait()
        self._woken.clear()

    def close(self) -> None:
        self._notifier.remove(self)


class _Pipe:
    """This process's own pipe."""

    def __init__(self, path: Path, ends: tuple[int, int], wake: Callable[[], None]) -> None:
        """Take over both ends, the reading one first; ``wake`` is called when it is rung."""
        self._path = path
        self._ends = ends
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ends[0], self._read)

    @classmethod
    def create(cls, folder: Path, wake: Callable[[], None]) -> _Pipe | None:
        """A new pipe; ``None`` where none can be made."""
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        path, hidden = folder / name, folder / f".{name}"
        ends: list[int] = []
        try:
            os.mkfifo(hidden, _PRIVATE)
            # With a writer of its own it never reads as ended, whoever else comes and goes.
            ends += [_open(hidden, os.O_RDONLY), _open(hidden, os.O_WRONLY)]
            hidden.rename(path)  # only now may others ring it, or take it for left behind
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
        """Take the pipe away."""
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
