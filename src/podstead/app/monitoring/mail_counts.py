"""How many messages did this process send, and how many not?"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import ClassVar


class MailOutcome(Enum):
    """What came of an attempt to send a message."""

    SENT = "sent"
    DELAYED = "delayed"
    """It is tried again later."""
    GIVEN_UP = "given_up"


class MailCounts:
    """Counts the attempts of this process."""

    counts: ClassVar[Counter[MailOutcome]] = Counter()

    @classmethod
    def note(cls, outcome: MailOutcome) -> None:
        """Count an attempt."""
        cls.counts[outcome] += 1
