"""The client that the current task works for, used to share limited capacity fairly.

The web layer sets the requester once per request; it is visible to everything that runs for the
request, including the tasks that it starts. The name is empty for work that the server does on its
own.
"""

from __future__ import annotations

from contextvars import ContextVar

# The key for limits, the address and the agent. A list, so that the agent can be noted in place,
# which is faster than setting the variable again.
_NOBODY: list[str | None] = ["", None, None]
_current: ContextVar[list[str | None]] = ContextVar("requester", default=_NOBODY)
"""One variable, which is set in each request."""


def requester() -> str:
    """The key for limits: for a request, the network that it came from."""
    return _current.get()[0] or ""


def requester_address() -> str | None:
    """The address of the client, as seen through trusted proxies; ``None`` outside requests."""
    return _current.get()[1]


def requester_agent() -> str | None:
    """The WebID of the agent that made the request, if it has been noted."""
    return _current.get()[2]


def note_agent(web_id: str) -> None:
    """Note the agent that made the request, for everything that runs for it."""
    current = _current.get()
    if current is not _NOBODY:
        current[2] = web_id


def set_requester(name: str, address: str | None = None) -> None:
    """Set the requester for the rest of the current context."""
    _current.set([name, address, None])
