"""The ID of the current request in log lines and in its response.

Most requests need none, so an ID is only made when something asks for it, such as the first log
line. The response then carries it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


class RequestMark:
    """The ID of one request."""

    __slots__ = ("_id", "_make", "is_used")

    def __init__(self, make: Callable[[], str], given: str | None = None) -> None:
        """``given`` is the ID that a trusted proxy has assigned."""
        self._make = make
        self._id = given
        self.is_used = False
        """Whether something has asked for the ID."""

    @property
    def request_id(self) -> str:
        """The ID, which stays the same."""
        self.is_used = True
        if self._id is None:
            self._id = self._make()
        return self._id


_current: ContextVar[RequestMark | None] = ContextVar("request_mark", default=None)


def current_mark() -> RequestMark | None:
    """The mark of the request that the current task works for; ``None`` outside requests."""
    return _current.get()


def set_mark(mark: RequestMark) -> None:
    """Set the mark for the rest of the current context."""
    _current.set(mark)
