"""The port for running git processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol


class Running(Protocol):
    """A running ``git http-backend`` process that has started to respond."""

    @property
    def head(self) -> bytes:
        """The head of the response, without the empty line after it."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The rest of the response. Raises ServerTrouble if the process was ended because of
        inactivity."""

    async def end(self) -> None:
        """End the process and its children, and wait for that. Idempotent."""


class Processes(Protocol):
    """Runs git, with a limited number of concurrent processes."""

    @property
    def search_path(self) -> str:
        """The ``PATH`` for the processes."""

    async def answer(
        self,
        environment: Mapping[str, str],
        content: AsyncIterator[bytes],
        *,
        requester: str,
        holding: int | None,
        permit: Callable[[], Awaitable[None]] | None = None,
    ) -> Running:
        """Start ``git http-backend``, pass it the content, and wait for the head of its response.

        git can act on the content before it is complete. The process is counted against the share
        of ``requester``. It and its children inherit the open descriptor ``holding``. For a push,
        the hook calls ``permit`` just before references change; if that raises PodsteadError, they
        do not change. Errors of ``content`` are propagated and end the process. Raises Overloaded
        and ServerTrouble.
        """

    async def run(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        holding: int | None = None,
        time_limit_s: float = 60,
    ) -> str:
        """Run ``git …`` and return its output. Raises ServerTrouble, also after the time limit."""
