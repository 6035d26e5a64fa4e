"""Shows progress on standard error: a line that is rewritten on a terminal, and a line for
each finished step elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from podstead.core.messages import printable

_PERIOD_S: Final = 0.2
_CLEAR: Final = "\r\x1b[K"
_LARGE: Final = 10_000
"""Above this, numbers are bytes, or as good as bytes, and only the share is shown."""


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """The progress of a command that goes from step to step."""

    def __init__(self, *, only_on_terminal: bool = False) -> None:
        """``only_on_terminal`` is for services, whose log is not for steps."""
        self._is_terminal = sys.stderr.isatty()
        self._is_shown = self._is_terminal or not only_on_terminal
        self._step = ""
        self._shown_s = 0.0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show how much of a step is done, if that is known, and of how much."""
        if not self._is_shown:
            return
        step = printable(step)
        is_new, self._step = step != self._step, step
        if not self._is_terminal:
            if is_new:
                sys.stderr.write(f"{step}\n")
                sys.stderr.flush()
            return
        now_s = time.monotonic()
        if is_new or now_s - self._shown_s >= _PERIOD_S:
            self._shown_s = now_s
            sys.stderr.write(f"{_CLEAR}{step}{_share(done, total)}")
            sys.stderr.flush()

    def end(self) -> None:
        """Remove the line, before something else is printed. Idempotent."""
        if self._is_terminal and self._step:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
        self._step = ""


def _share(done: int, total: int) -> str:
    if not total:
        return f" {done:,} …" if done else " …"
    if total <= _LARGE:
        return f" {done} of {total}"
    return f" {100 * done // total} %"
