"""Why did the server end?"""

from __future__ import annotations

from enum import Enum


class ExitReason(Enum):
    """Why :func:`podstead.app.process.serve.serve` returned."""

    STOPPED = "stopped"
    """It was told to stop, and every request in progress was answered or timed out."""
    FORCED = "forced"
    """It was told to stop a second time, and requests in progress were aborted."""
    FAILED = "failed"
    """A worker did not start, or kept failing."""
