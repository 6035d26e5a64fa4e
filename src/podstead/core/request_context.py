"""What code that runs for a request can find out about it: who sent it, and its ID."""

from collections.abc import Callable
from contextvars import ContextVar

from podstead.core.identity import Identity

# The client that the current task works for, used to share limited capacity fairly.
#
# The web layer sets the requester once per request; it is visible to everything that runs for the
# request, including the tasks that it starts. The name is empty for work that the server does on
# its own.

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


# Chooses the key under which an agent's requests count against limits.
#
# Anyone who runs a provider or generates keys can present any number of names, so only WebIDs of
# this server have counters of their own.


def limit_key(agent: Identity | None, *, base_url: str) -> str:
    """The WebID if it belongs to this server, otherwise the client's network."""
    if agent is not None and agent.iri.startswith(f"{base_url}/"):
        return agent.iri
    return requester()


# The ID of the current request in log lines and in its response.
#
# Most requests need none, so an ID is only made when something asks for it, such as the first log
# line. The response then carries it.


class RequestId:
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


_current_mark: ContextVar[RequestId | None] = ContextVar("request_mark", default=None)


def current_request_id() -> RequestId | None:
    """The mark of the request that the current task works for; ``None`` outside requests."""
    return _current_mark.get()


def set_request_id(mark: RequestId) -> None:
    """Set the mark for the rest of the current context."""
    _current_mark.set(mark)
