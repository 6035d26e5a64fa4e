"""Has any process committed since? SQLite is asked once in each turn of the event loop.

The answer is shared by everything that runs until the loop comes to the callback that ends it.
Nobody can tell the difference to asking every time:

- The callback is queued *before* SQLite is asked, and the loop runs its callbacks in the order in
  which they were queued. So whatever the loop runs before it was queued before SQLite was asked,
  and a callback never gets an answer that is older than itself.
- The HTTP server queues a callback for each request after it has received the request, and
  ``WebSocket`` does so for each message. So if a commit was acknowledged, by any worker, before a
  client sent a request, SQLite is asked after that commit.
- A commit of this worker is acknowledged by a callback, which its thread queues after the commit.

Reads that SQLite itself answers are of its newest state. After each of them, the answer is no
longer valid (:meth:`DataVersion.ask_again`), so that the reads of a task never go back in time.
"""

from __future__ import annotations

import asyncio

import apsw


class DataVersion:
    """The data version of one connection. Used from one event loop only."""

    __slots__ = ("_answer", "_connection", "_is_ending", "_loop")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._answer: int | None = None
        self._is_ending = False

    def current(self) -> int:
        """A number that changes with every commit of another connection. Raises apsw.Error."""
        answer = self._answer
        if answer is None:
            if not self._is_ending:
                self._loop.call_soon(self._end)  # before asking: see above
                self._is_ending = True
            answer = self._answer = self._ask()
        return answer

    def ask_again(self) -> None:
        """Ask again before the next use, even in this turn."""
        self._answer = None

    def _ask(self) -> int:
        answer: int = self._connection.execute("PRAGMA data_version").get
        return answer

    def _end(self) -> None:
        self._answer = None
        self._is_ending = False
