"""Which client is the current task working for? Used to share limited capacity fairly.

The web layer sets the requester once per request; it is visible to everything that runs for the
request, including the tasks that it starts. The name is empty for work that the server does on its
own.
"""

from __future__ import annotations

from contextvars import ContextVar

# The key for limits, the address and the agent. A list, because the agent is noted in it: setting
# the variable once more would take longer.
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
    """The WebID of whoever made the request, where something has noted it."""
    return _current.get()[2]


def note_agent(web_id: str) -> None:
    """Note who made the request, for everything that runs for it."""
    current = _current.get()
    if current is not _NOBODY:
        current[2] = web_id


def set_requester(name: str, address: str | None = None) -> None:
    """Set the requester for the rest of the current context."""
    _current.set([name, address, None])
