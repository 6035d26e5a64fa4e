"""What renders content outside this process, and what the answers are if it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

Content = bytes | Callable[[], Awaitable[bytes]]
"""What is rendered, or how it is read once there is room for it."""


class ContentRenderer(Protocol):
    """Runs one task of ``child.py`` in a process of its own."""

    async def render(
        self, task: str, arguments: Mapping[str, str], content: Content, *, requester: str
    ) -> bytes | None:
        """The result; ``None`` if there is none, for whatever reason.

        ``requester`` is whose share of the processes it takes. Large content is passed as a
        function, so that what waits for a process takes no memory. Raises Overloaded if too many
        renderings are waiting, and what reading the content raises.
        """
