"""Which client is the current task working for? Used to share limited capacity fairly.

The web layer sets the requester once per request; it is visible to everything that runs for the
request, including the tasks that it starts. The name is empty for work that the server does on its
own.
"""

from __future__ import annotations

from contextvars import ContextVar

_requester: ContextVar[str] = ContextVar("requester", default="")
_address: ContextVar[str | None] = ContextVar("requester_address", default=None)
_agent: ContextVar[str | None] = ContextVar("requester_agent", default=None)


def requester() -> str:
    """The key for limits: for a request, the network that it came from."""
    return _requester.get()


def requester_address() -> str | None:
    """The address of the client, as seen through trusted proxies; ``None`` outside requests."""
    return _address.get()


def requester_agent() -> str | None:
    """The WebID of whoever made the request, where something has noted it."""
    return _agent.get()


def note_agent(web_id: str) -> None:
    """Note who made the request, for the rest of the current context."""
    _agent.set(web_id)


def set_requester(name: str, address: str | None = None) -> None:
    """Set the requester for the rest of the current context."""
    _requester.set(name)
    _address.set(address)
    _agent.set(None)
