"""How much processor time has each requester used lately, and when may it use more?"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

BUDGET_S: Final = 20.0
"""How much processor time one requester may use in a worker without a pause."""
WINDOW_S: Final = 60.0
"""How long it takes until an empty budget is full again."""

_RATE: Final = BUDGET_S / WINDOW_S
_MAX_REQUESTERS: Final = 10_000


class ProcessorBudgets:
    """The budgets of one worker. Whoever has used nothing for a while takes no memory."""

    def __init__(self, *, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._used: dict[str, tuple[float, float]] = {}  # seconds used, and when that was so

    def wait_s(self, requester: str) -> float:
        """How long the requester has to wait until there is something left for it."""
        return max(0.0, self._level(requester) - BUDGET_S) / _RATE

    def spend(self, requester: str, processor_s: float) -> None:
        """Note that the requester has used so much, even if that was more than it had left."""
        if len(self._used) >= _MAX_REQUESTERS:
            self._used = {key: used for key, used in self._used.items() if self._level(key) > 0}
        self._used[requester] = self._level(requester) + processor_s, self._now_s()

    def _level(self, requester: str) -> float:
        used_s, then_s = self._used.get(requester, (0.0, 0.0))
        return max(0.0, used_s - (self._now_s() - then_s) * _RATE)
