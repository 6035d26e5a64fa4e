"""The port for rendering content outside this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

Content = bytes | Callable[[], Awaitable[bytes]]
"""The content to render, or a function that reads it once a process is free."""


class ContentRenderer(Protocol):
    """Runs one task of ``child.py`` in a process of its own."""

    async def render(
        self, task: str, arguments: Mapping[str, str], content: Content, *, requester: str
    ) -> bytes | None:
        """The result; ``None`` if there is none, for whatever reason.

        The rendering counts against the share of ``requester``. Large content is passed as a
        function, so that it takes no memory while it waits for a process. Raises Overloaded if too
        many renderings are waiting, and what reading the content raises.
        """
