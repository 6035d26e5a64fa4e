"""For whom is this being done? Known wherever it matters, so that shared things are shared fairly.

A request sets it once, and everything that is done for the request sees it, in the tasks that it
starts as well. What the server does of its own accord is done for nobody, by the empty name.
"""

from __future__ import annotations

from contextvars import ContextVar

_requester: ContextVar[str] = ContextVar("requester", default="")
_address: ContextVar[str | None] = ContextVar("requester_address", default=None)


def requester() -> str:
    """The name by which limits count: of a request, the network that it came from."""
    return _requester.get()


def requester_address() -> str | None:
    """The address of the client whose request it is, as seen through trusted proxies; ``None`` for
    what is done for no request."""
    return _address.get()


def set_requester(name: str, address: str | None = None) -> None:
    """Do everything from here on in this context for somebody else."""
    _requester.set(name)
    _address.set(address)
