"""By which id is the current request known, in log lines and in its response?

Most requests need none, so an id is only made when something asks for it, such as the first log
line. Whoever finishes the response then sends it along.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


class RequestMark:
    """The id of one request."""

    __slots__ = ("_id", "_make", "is_used")

    def __init__(self, make: Callable[[], str], given: str | None = None) -> None:
        """``given`` is the id that a trusted proxy has given it."""
        self._make = make
        self._id = given
        self.is_used = False
        """Whether something has asked for the id."""

    @property
    def request_id(self) -> str:
        """The id, which stays the same."""
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
