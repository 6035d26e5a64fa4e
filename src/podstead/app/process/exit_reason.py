"""How did the server come to its end?"""

from __future__ import annotations

from enum import Enum


class ExitReason(Enum):
    """Why :func:`podstead.app.process.serve.serve` returned."""

    STOPPED = "stopped"
    """Asked to, and every request in flight was answered or ran out of time."""
    FORCED = "forced"
    """Asked to a second time: requests in flight were cut off."""
    FAILED = "failed"
    """A worker did not start, or kept dying."""
