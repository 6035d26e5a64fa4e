"""What does a worker answer when the main process asks it?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum

import msgspec

from podstead.app.monitoring.checks import WorkerChecks
from podstead.app.monitoring.readings import WorkerReadings
from podstead.app.monitoring.stored_facts import read_stored_facts
from podstead.config import Settings
from podstead.storage.protocol import Store


class Question(Enum):
    """What the main process may ask."""

    COUNTERS = "counters"
    """What this worker has counted."""
    STORED = "stored"
    """What the data root contains; asked of one worker."""
    CHECKS = "checks"
    """Whether this worker is ready."""


def worker_answers(
    settings: Settings, *, readings: WorkerReadings, checks: WorkerChecks, store: Store
) -> Callable[[str], Awaitable[bytes]]:
    """The function that answers with JSON. It raises ValueError for an unknown question,
    StorageError and OSError."""

    async def answer(question: str) -> bytes:
        asked = Question(question)
        if asked is Question.COUNTERS:
            return msgspec.json.encode(readings.read())
        if asked is Question.STORED:
            return msgspec.json.encode((await read_stored_facts(settings, store)).readings())
        return msgspec.json.encode(await checks.run())

    return answer
