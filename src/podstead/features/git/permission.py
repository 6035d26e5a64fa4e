"""How git asks for permission before it changes references: a hook asks this process over two
pipes.

git runs ``pre-receive`` after it has received and checked the whole push, and changes references
only if the hook succeeds (githooks). The hook writes to one pipe and reads the decision from the
other. It fails if it reads none, so also if this process ends.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

from podstead.core import background, errors
from podstead.features.git.directories import ANSWER_VARIABLE, QUESTION_VARIABLE

logger = logging.getLogger("podstead.git")

_YES: Final = b"yes\n"
_NO: Final = b"no\n"

Permit = Callable[[], Awaitable[None]]
"""Decides whether a push may change references; raises PodsteadError if not."""


class Permission:
    """The pipes of one push, and the task that answers at this end of them."""

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self._question, self._asking = os.pipe()
        self._answered, self._answer = os.pipe()
        self._task: asyncio.Task[None] | None = None

    @property
    def descriptors(self) -> tuple[int, int]:
        """The ends of the pipes that git inherits."""
        return self._asking, self._answered

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that tell the hook about the pipes."""
        return {
            QUESTION_VARIABLE: f"/dev/fd/{self._asking}",
            ANSWER_VARIABLE: f"/dev/fd/{self._answered}",
        }

    def start(self) -> None:
        """Begin to answer. To be called when git has been started and has inherited its ends."""
        os.close(self._asking)
        os.close(self._answered)
        self._task = asyncio.create_task(self._serve())

    def abandon(self) -> None:
        """Close all ends. To be called if git could not be started."""
        for descriptor in (*self.descriptors, self._question, self._answer):
            os.close(descriptor)

    async def end(self) -> None:
        """Stop answering. A hook that waits for a decision then fails."""
        if self._task is not None:
            await background.cancel_and_wait([self._task])
            self._task = None
            os.close(self._question)
            os.close(self._answer)

    async def _serve(self) -> None:
        await _readable(self._question)
        if not os.read(self._question, 1):
            return  # git ended without asking
        answer = _YES
        try:
            await self._permit()
        except errors.PodsteadError as error:
            logger.info("A push was refused when its references were about to change: %s", error)
            answer = _NO
        except Exception:
            logger.exception("It could not be decided whether a push may change references")
            answer = _NO
        with contextlib.suppress(BrokenPipeError):
            os.write(self._answer, answer)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
