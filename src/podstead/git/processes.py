"""What does running git take? The port that the application fills in, with real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol


class Running(Protocol):
    """A process of ``git http-backend`` that was given all its content and answers."""

    @property
    def head(self) -> bytes:
        """The head of its answer, without the empty line behind."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The rest of its answer, until it has ended. Raises ServerTrouble if it was ended
        because nothing went on for too long."""

    async def end(self) -> None:
        """End it if it still runs, with all that it has started, and wait for that. Idempotent."""


class Processes(Protocol):
    """Runs git, so many processes at once."""

    @property
    def search_path(self) -> str:
        """The ``PATH`` that they need."""

    async def answer(
        self,
        environment: Mapping[str, str],
        content: AsyncIterator[bytes],
        *,
        asker: str,
        holding: int | None,
        permit: Callable[[], Awaitable[None]] | None = None,
    ) -> Running:
        """Start ``git http-backend``, give it the content, and wait for the head of its answer.

        It may act on the content before that has ended. ``asker`` names whose share of the
        processes it is of. The process and what it starts inherit the open descriptor ``holding``.
        A push is given ``permit``, which its hook has called just before references change: they
        stay as they are if it raises PodsteadError.
        Errors of ``content`` pass through and end the process. Raises Overloaded and ServerTrouble.
        """

    async def run(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        holding: int | None = None,
        time_limit_s: float = 60,
    ) -> str:
        """Run ``git …`` to its end; what it writes to its output. Raises ServerTrouble, also if it
        takes longer."""
