"""What renders content outside this process, and what the answers are if it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class ContentRenderer(Protocol):
    """Runs one task of ``child.py`` in a process of its own."""

    async def render(
        self, task: str, arguments: Mapping[str, str], content: bytes, *, requester: str
    ) -> bytes | None:
        """The result; ``None`` if there is none, for whatever reason. Raises Overloaded if too many
        renderings are waiting. ``requester`` is whose share of the processes it takes."""
