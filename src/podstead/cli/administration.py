"""How does a command run a step of administration? On an open data root, in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from podstead.cli.options import settings_from
from podstead.config import Settings

A = TypeVar("A")
T = TypeVar("T")


def administered(
    opened: Callable[[Settings], AbstractAsyncContextManager[A]],
    options: dict[str, Any],
    act: Callable[[A], Awaitable[T]],
) -> T:
    """The result of one step, with the settings of the command's options. Raises StartRefused and
    the errors of the step."""
    settings = settings_from(options)

    async def run() -> T:
        async with opened(settings) as administration:
            return await act(administration)

    return asyncio.run(run())
