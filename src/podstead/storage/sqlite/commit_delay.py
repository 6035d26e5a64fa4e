"""Should a batch start at once, or wait a little for more writes to join it?

A commit costs the same however many writes share it. On a slow disk, starting at once splits the
writers into two groups: while one group's commit is on its way, the other one waits, so each commit
carries only half of the writes that it could. A batch may therefore wait for the writers whose last
commit has just ended, like PostgreSQL's ``commit_delay`` with ``commit_siblings``, but the numbers
follow from what is observed:

- It waits only for writers that were there a moment ago, so a lone writer never waits.
- It waits at most half the time that a commit takes, counted from the end of the last one, and not
  at all on a disk that is fast.
- While other processes write, too, it waits for a few milliseconds on any disk. Each process has
  only some of the writers, and the others' batches leave it the time for theirs to come together.
- Otherwise, waiting for a time t pays off if it makes the batch larger by a greater factor than t
  makes it later. After a wait that did not, the next batches start at once.

Pure: no clock. Times are passed in, in seconds.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MIN_WAIT_S: Final = 0.001
"""Shorter waits are not worth a timer, and commits that take less than twice this never wait."""

MAX_WAIT_S: Final = 0.01
_SHARE: Final = 0.5
AMONG_OTHERS_S: Final = 0.004
"""How long a batch waits while other processes write."""

UNDELAYED_BATCHES: Final = 15
"""How many batches start at once after a wait that did not pay off."""

# The least of a few measurements, since the others may contain waiting for the interpreter lock.
_MEASUREMENTS: Final = 8


class CommitDelay:
    """Decides for one writer of the database how long its batches wait."""

    __slots__ = ("_commits_s", "_ended_s", "_undelayed", "_waited_from", "_waiting", "expected")

    def __init__(self) -> None:
        self._commits_s: deque[float] = deque(maxlen=_MEASUREMENTS)
        self._ended_s = 0.0
        self.expected = 0
        """How many writes were in the last batch, or waited when it ended."""
        self._undelayed = 0
        self._waited_from: float | None = None
        self._waiting = 0

    def wait_s(self, now_s: float, waiting: int, *, others_write: bool = False) -> float:
        """How long to wait before asking again while ``waiting`` writes wait; 0 to start now."""
        if others_write:
            self._waited_from = None
            left_s = self._ended_s + AMONG_OTHERS_S - now_s
            return left_s if waiting < self.expected and left_s > 0 else 0.0
        until_s = self._ended_s + min(self._least_commit_s() * _SHARE, MAX_WAIT_S)
        left_s = until_s - now_s
        if self._waited_from is None:
            if self._undelayed:
                self._undelayed -= 1
                return 0.0
            if waiting >= self.expected or left_s < MIN_WAIT_S:
                return 0.0
            self._waited_from, self._waiting = now_s, waiting
            return MIN_WAIT_S
        if waiting < self.expected and left_s > 0:
            return MIN_WAIT_S
        self._judge(now_s - self._waited_from, waiting)
        self._waited_from = None
        return 0.0

    def batch_ended(self, now_s: float, *, writes: int, waiting: int, commit_s: float) -> None:
        """Note that a batch has ended while further writes wait for the next one."""
        self._commits_s.append(commit_s)
        self._ended_s = now_s
        self.expected = writes + waiting
        self._waited_from = None

    def _judge(self, waited_s: float, waiting: int) -> None:
        if (waiting / self._waiting - 1) * self._least_commit_s() < waited_s:
            self._undelayed = UNDELAYED_BATCHES

    def _least_commit_s(self) -> float:
        return min(self._commits_s, default=0.0)
