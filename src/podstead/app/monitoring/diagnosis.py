"""What is found about the health of the server, and what features say about theirs."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import Enum
from time import monotonic
from typing import Final

import msgspec

from podstead.app.monitoring import families
from podstead.app.monitoring.readings import Reading, Readings
from podstead.config import Settings
from podstead.core.errors import ServerTrouble
from podstead.features import features
from podstead.storage.record_store import RecordStore

logger = logging.getLogger("podstead.app")


class Severity(Enum):
    """How bad a finding is."""

    GOOD = "good"
    SKIPPED = "skipped"
    """It could not be looked at, because of another finding or because it does not apply."""
    WARNING = "warning"
    PROBLEM = "problem"


class Diagnosis(msgspec.Struct, frozen=True):
    """One finding. ``remedy`` says what to do; empty if there is nothing to do."""

    check: str
    severity: Severity
    detail: str
    remedy: str = ""


def good(check: str, detail: str) -> Diagnosis:
    """What is as it should be."""
    return Diagnosis(check, Severity.GOOD, detail)


def skipped(check: str, detail: str) -> Diagnosis:
    """What was not looked at."""
    return Diagnosis(check, Severity.SKIPPED, detail)


def warning(check: str, detail: str, remedy: str) -> Diagnosis:
    """What may become a problem, or is one for some."""
    return Diagnosis(check, Severity.WARNING, detail, remedy)


def serious(check: str, detail: str, remedy: str) -> Diagnosis:
    """What keeps somebody from using the server, or endangers data."""
    return Diagnosis(check, Severity.PROBLEM, detail, remedy)


FRESH_S: Final = 300
"""How long an answer of the features counts."""
WAIT_S: Final = 1
"""How long whoever asks waits for them at most."""


class FeatureHealth:
    """Asks the features about their health, in a running server.

    They may ask other servers, such as one for mail, so they are asked once in a while, and answers
    that take long are seen the next time. For one event loop.
    """

    def __init__(self, settings: Callable[[], Settings], records: RecordStore) -> None:
        self._settings = settings
        self._records = records
        self._found: Sequence[Diagnosis] = ()
        self._asking: asyncio.Task[None] | None = None
        self._next_s = monotonic()

    async def findings(self) -> Sequence[Diagnosis]:
        """What they have said. Raises nothing."""
        if monotonic() >= self._next_s and (self._asking is None or self._asking.done()):
            self._next_s = monotonic() + FRESH_S
            self._asking = asyncio.create_task(self._ask())
        if self._asking is not None:
            await asyncio.wait([self._asking], timeout=WAIT_S)
        return self._found

    async def readings(self) -> Readings:
        """How many findings there are of each severity."""
        severities = [each.severity for each in await self.findings()]
        return {
            families.FEATURE_FINDINGS.name: [
                Reading((each.value,), severities.count(each)) for each in Severity
            ]
        }

    async def _ask(self) -> None:
        found: list[Diagnosis] = []
        for feature in features():
            try:
                found += await feature.health(self._settings(), self._records)
            except ServerTrouble as trouble:
                logger.exception("A feature could not say how it is")
                found.append(serious("features", str(trouble), "See the log of the server."))
        self._found = found
