"""For whom is this being done? Known wherever it matters, so that shared things are shared fairly.

A request sets it once, and everything that is done for the request sees it, in the tasks that it
starts as well. What the server does of its own accord is done for nobody, by the empty name.
"""

from __future__ import annotations

from contextvars import ContextVar

_requester: ContextVar[str] = ContextVar("requester", default="")


def requester() -> str:
    """The name by which limits count: of a request, the network that it came from."""
    return _requester.get()


def set_requester(name: str) -> None:
    """Do everything from here on in this context for somebody else."""
    _requester.set(name)
