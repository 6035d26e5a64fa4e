"""``podstead watch`` as somebody runs it: a process whose lines are waited for."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from tests.support.processes import clean_environment, start_process
from tests.support.server import DEADLINE_S

BEGUN = "Watching "
LOST = "The connection is lost; trying again."


class Watch:
    """One process; ``lines`` is its output, ``notes`` what it says on standard error."""

    def __init__(self, *arguments: str, environment: Mapping[str, str]) -> None:
        self.process = start_process(
            [sys.executable, "-m", "podstead.cli", "watch", *arguments],
            environment={**clean_environment(), **environment},
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.lines = Lines(self.process.stdout)
        self.notes = Lines(self.process.stderr)

    def wait(self) -> int:
        """Wait until it has ended; the exit code."""
        return self.process.wait(DEADLINE_S)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        self.lines.join()
        self.notes.join()


class Lines:
    """The lines of a stream, as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._reader.start()

    def next(self) -> str | None:
        """The next line; ``None`` at the end."""
        return self._lines.get(timeout=DEADLINE_S)

    def until(self, start: str) -> str:
        """The next line that begins so."""
        while (line := self.next()) is not None:
            if line.startswith(start):
                return line
        raise AssertionError(f"ended before it said: {start}")

    def rest(self) -> list[str]:
        """All lines up to the end."""
        return list(iter(self.next, None))

    def join(self) -> None:
        self._reader.join(DEADLINE_S)

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@contextmanager
def watching(
    *arguments: str, token: str | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Watch]:
    """A watch that has begun, and ends whatever happens."""
    variables = {} if token is None else {"PODSTEAD_TOKEN": token}
    watch = Watch(*arguments, environment={**variables, **(environment or {})})
    try:
        watch.notes.until(BEGUN)
        yield watch
    finally:
        watch.close()
