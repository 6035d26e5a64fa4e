"""What operators read in the console: the log of what has happened, and the slow requests."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from podstead.idp.audit import Audit, EventKind, RequestSource
from podstead.storage.record_store import RecordKind, RecordStore, Versioned
from podstead.storage.records import Record


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


# A log of what has happened on this server, which operators read in the console.
#
# It is bounded in age, and in number for each of three kinds of events, so that what strangers
# cause does not displace what operators did. What is done in the console is logged in the write
# that does it. Everything else is logged within seconds (``app/adapters/audit.py``).

KEPT_MS: Final = 90 * 24 * 3600 * 1000
"""How long an event is kept."""
MAX_EVENTS: Final = 10_000
"""How many events of each kind are kept."""
_PAGE: Final = 1000
_LAST_MS: Final = 10**15
_MARK_BYTES: Final = 8


class CausedBy(Enum):
    """Who caused an event. The values are part of the names of the records."""

    OPERATOR = "operator"
    PERSON = "person"
    """Somebody with an account: sign-ins, and changes of their own account."""
    REFUSED = "refused"
    """Anyone: what was refused, and signs of an attack."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """One event. ``account`` is the id of the account that it is about, ``operator`` the name of
    the operator who caused it; each may be empty."""

    at_ms: int
    what: str
    account: str = ""
    operator: str = ""
    address: str = ""
    facts: dict[str, str] = msgspec.field(default_factory=dict)


_KINDS: Final = {cause: RecordKind(f"audit-{cause.value}", LoggedEvent) for cause in CausedBy}


def cause_of(event: EventKind) -> CausedBy:
    """Who causes an event, unless an operator does."""
    return CausedBy.REFUSED if event.is_refusal else CausedBy.PERSON


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Adds events to the log, and reads it."""

    records: RecordStore

    def logging(self, cause: CausedBy, event: LoggedEvent) -> Record:
        """The record that adds an event."""
        # The newest come first, so that they are read without reading the others.
        mark = self.records.randomness.token_hex(_MARK_BYTES)
        key = f"{_LAST_MS - event.at_ms:015d}.{mark}"
        return _KINDS[cause].put(key, event, expires_ms=event.at_ms + KEPT_MS)

    def action(
        self, event: EventKind, by: Operator | None, *, account: str = "", **facts: str
    ) -> Sequence[Record]:
        """The records that log an action of an operator in the console. A command logs its actions
        itself (``app/adapters/audit.py``): without an operator there are none."""
        if by is None:
            return ()
        logged = LoggedEvent(
            at_ms=self.records.now_ms(),
            what=event.value,
            account=account,
            operator=by.name,
            address=by.source.address,
            facts=facts,
        )
        return (self.logging(CausedBy.OPERATOR, logged),)

    async def newest(
        self, cause: CausedBy, *, after: str = "", limit: int
    ) -> Sequence[Versioned[LoggedEvent]]:
        """Events, the newest first, that are older than the one with the key ``after``. Raises
        StorageError."""
        return await _KINDS[cause].page(
            self.records.store, after=after, now_ms=self.records.now_ms(), limit=limit
        )

    async def trim(self) -> None:
        """Remove the oldest events of each kind that has too many. Raises StorageError,
        Overloaded."""
        for cause, kind in _KINDS.items():
            if await kind.count(self.records.store, at_most=MAX_EVENTS + 1) <= MAX_EVENTS:
                continue
            after = ""
            for _ in range(MAX_EVENTS // _PAGE):
                page = await self.newest(cause, after=after, limit=_PAGE)
                after = page[-1].key if page else after
            while surplus := await self.newest(cause, after=after, limit=_PAGE):
                await self.records.commit([kind.drop(each.key) for each in surplus])


class Actions:
    """A service for operators. What they do in the console is logged in the write that does it, and
    noted by the audit when it is done."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit
        self._log = AuditLog(records)

    def _note(
        self, event: EventKind, by: Operator | None, account_id: str | None = None, **facts: str
    ) -> None:
        with acting_as(by):
            self._audit.note(event, account_id=account_id, **facts)


# Collects the requests that took long: the newest ones of all workers, for the console.
#
# A request is slow if its response begins late; the time in which the client sent the body is part
# of that.

SLOW_REQUESTS_KEPT_MS: Final = 7 * 24 * 3600 * 1000
MAX_KEPT: Final = 100
_MAX_WAITING: Final = 50
"""How many requests wait to be stored; when everything is slow, the newest of them suffice."""
_MAX_PATH_CHARACTERS: Final = 300


class SlowRequest(msgspec.Struct, frozen=True):
    """A slow request, without its query."""

    at_ms: int
    method: str
    path: str
    status: int
    took_ms: int


_SLOW_REQUESTS: Final = RecordKind("slow-request", SlowRequest)


class SlowRequests:
    """Collects the slow requests of a worker, stores them, and reads those of all workers."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._waiting: deque[SlowRequest] = deque(maxlen=_MAX_WAITING)

    def note(self, method: str, path: str, status: int, took_ms: int) -> None:
        """Note a request; it is stored later."""
        now_ms = self._records.now_ms()
        self._waiting.append(SlowRequest(now_ms, method, shown_path(path), status, took_ms))

    async def store(self) -> None:
        """Store what was noted, and remove the oldest. Raises StorageError, Overloaded."""
        if not self._waiting:
            return
        waiting = list(self._waiting)
        self._waiting.clear()
        surplus = (await self._page(MAX_KEPT + _MAX_WAITING * 4))[MAX_KEPT - len(waiting) :]
        puts = [
            _SLOW_REQUESTS.put(
                f"{_LAST_MS - each.at_ms:015d}.{self._records.randomness.token_hex(_MARK_BYTES)}",
                each,
                expires_ms=each.at_ms + SLOW_REQUESTS_KEPT_MS,
            )
            for each in waiting
        ]
        await self._records.commit([*puts, *(_SLOW_REQUESTS.drop(key) for key, _ in surplus)])

    async def newest(self) -> Sequence[SlowRequest]:
        """The newest first. Raises StorageError."""
        return [each for _, each in await self._page(MAX_KEPT)]

    async def _page(self, limit: int) -> Sequence[tuple[str, SlowRequest]]:
        now_ms = self._records.now_ms()
        page = await _SLOW_REQUESTS.page(self._records.store, now_ms=now_ms, limit=limit)
        return [(each.key, each.value) for each in page]


def shown_path(path: str) -> str:
    """A path without secrets: those of the server's own pages may contain some behind the second
    segment."""
    segments = path.split("/")
    if len(segments) > 3 and (segments[1].startswith(".") or segments[1] == "idp"):
        path = "/".join([*segments[:3], "…"])
    return path[:_MAX_PATH_CHARACTERS]
