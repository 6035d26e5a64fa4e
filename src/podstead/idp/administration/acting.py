"""The operator who acts in the console, known to everything that runs for the request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from podstead.idp.source import RequestSource


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator who uses the console, and where the request comes from."""

    account_id: str
    name: str
    source: RequestSource


_acting: ContextVar[Operator | None] = ContextVar("acting_operator", default=None)


def acting_operator() -> Operator | None:
    """The operator whose action is carried out; ``None`` outside the console."""
    return _acting.get()


@contextmanager
def acting_as(operator: Operator | None) -> Iterator[None]:
    """Carry out what follows as an action of ``operator``."""
    token = _acting.set(operator)
    try:
        yield
    finally:
        _acting.reset(token)
