"""Which client is the current task working for? Used to share limited capacity fairly.

The web layer sets the requester once per request; it is visible to everything that runs for the
request, including the tasks that it starts. The name is empty for work that the server does on its
own.
"""

from __future__ import annotations

from contextvars import ContextVar


class _Requester:
    __slots__ = ("address", "agent", "name")

    def __init__(self, name: str, address: str | None) -> None:
        self.name = name
        self.address = address
        self.agent: str | None = None


_NOBODY = _Requester("", None)

_current: ContextVar[_Requester] = ContextVar("requester", default=_NOBODY)
"""One variable, which is set in each request."""


def requester() -> str:
    """The key for limits: for a request, the network that it came from."""
    return _current.get().name


def requester_address() -> str | None:
    """The address of the client, as seen through trusted proxies; ``None`` outside requests."""
    return _current.get().address


def requester_agent() -> str | None:
    """The WebID of whoever made the request, where something has noted it."""
    return _current.get().agent


def note_agent(web_id: str) -> None:
    """Note who made the request, for everything that runs for it."""
    current = _current.get()
    if current is not _NOBODY:
        current.agent = web_id


def set_requester(name: str, address: str | None = None) -> None:
    """Set the requester for the rest of the current context."""
    _current.set(_Requester(name, address))
