"""Fetches foreign documents, guarded and limited, with at most one fetch of a document at a time.

``Fetcher.fetch`` checks the URL, raises the failure of a recent fetch again, and otherwise joins a
fetch of the same document that is in progress or starts one. Each hop of a fetch is checked by the
guard, waits for a slot, and is recorded by the circuit breaker.

Failures are remembered for a short time, so that a broken server causes one attempt and not one for
every request (A-191). Documents are not cached here; see ``documents``.
"""

import asyncio
import copy
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from podstead.core.background import cancel_and_wait
from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.core.errors import RemoteUnavailable
from podstead.core.request_context import requester
from podstead.outbound import errors, foreign_documents
from podstead.outbound.guard import Guard
from podstead.outbound.transport import Connector, RemoteResponse, read_body
from podstead.outbound.urls import Target, resolve_reference

# Counts the outcomes of requests to other servers, by purpose.

SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
REFUSED: Final = "refused"
"""The guard forbade the request, or the address to which it led."""
NOT_SENT: Final = "not sent"
"""The origin has failed too often, or too many requests were in progress."""


class Outcomes:
    """Counts the outcomes of the requests of one kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[foreign_documents.Purpose, str]] = Counter()

    def note(self, purpose: foreign_documents.Purpose, failure: BaseException | None) -> None:
        """Count one request, with what it raised."""
        self._counts[purpose, _outcome(failure)] += 1

    def counts(self) -> Mapping[tuple[foreign_documents.Purpose, str], int]:
        """How many requests had which outcome."""
        return self._counts


def _outcome(failure: BaseException | None) -> str:
    if failure is None:
        return SUCCEEDED
    if isinstance(failure, errors.Refused):
        return REFUSED
    return NOT_SENT if isinstance(failure, errors.CircuitOpen | errors.Congested) else FAILED


# Limits how many fetches run at a time, in total and for each requester and origin.


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """Allows at most ``capacity`` fetches at a time with this key."""

    key: Hashable
    capacity: int


@dataclass(slots=True)
class _Slots:
    """The slots of one limit, and how many tasks have one or wait for one."""

    free: asyncio.Semaphore
    tasks: int = 0


class ConcurrencyLimiter:
    """Limits the running fetches by any number of limits."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, _Slots] = {}

    @asynccontextmanager
    async def acquire(
        self, limits: Sequence[ConcurrencyLimit], deadline_s: float
    ) -> AsyncIterator[None]:
        """Acquire one slot of each limit, waiting until ``deadline_s`` of loop time.

        The narrowest limit comes first, so that a task that waits for it does not occupy slots of
        the wider ones. Raises Congested.
        """
        async with AsyncExitStack() as acquired:
            for limit in limits:
                await acquired.enter_async_context(self._acquire_one(limit, deadline_s))
            yield

    @asynccontextmanager
    async def _acquire_one(self, limit: ConcurrencyLimit, deadline_s: float) -> AsyncIterator[None]:
        slots = self._slots.get(limit.key)
        if slots is None:
            slots = self._slots[limit.key] = _Slots(asyncio.Semaphore(limit.capacity))
        slots.tasks += 1
        try:
            await _acquire(slots.free, deadline_s)
            try:
                yield
            finally:
                slots.free.release()
        finally:
            slots.tasks -= 1
            if slots.tasks == 0:
                del self._slots[limit.key]


async def _acquire(semaphore: asyncio.Semaphore, deadline_s: float) -> None:
    try:
        async with asyncio.timeout_at(deadline_s):
            await semaphore.acquire()
    except TimeoutError as error:
        raise errors.Congested from error


USER_AGENT = "Podstead"
MAX_REMEMBERED_FAILURES = 4096

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_LOWEST_SERVER_ERROR = 500
_TRANSIENT_STATUSES = frozenset({408, 425, 429})
# Longer numbers are not sizes or ages, and Python refuses to parse very long ones.
_NUMBER = re.compile(r"[0-9]{1,18}")


_Flight = tuple[str, foreign_documents.FetchPolicy]
_Step = foreign_documents.FetchedDocument | Target


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a fetch failed, and until when the failure is raised again."""

    failure: errors.FetchFailed
    until_ms: int


class Fetcher:
    """All fetches of this process. Belongs to one event loop; close it at the end."""

    def __init__(
        self,
        guard: Guard,
        clock: Clock,
        *,
        tls: ssl.SSLContext,
        limits: foreign_documents.OutboundLimits,
        user_agent: str = USER_AGENT,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._tls = tls
        self._user_agent = user_agent
        self._failure_memory_ms = int(limits.failure_memory_s * 1000)
        self._failures: ExpiringCache[_Flight, _Failure] = ExpiringCache(
            max_weight=MAX_REMEMBERED_FAILURES
        )
        self._circuit = foreign_documents.CircuitBreaker(
            max_failures=limits.circuit_failures, pause_s=limits.circuit_pause_s
        )
        self._limits = limits
        self._limiter = ConcurrencyLimiter()
        self._flights: dict[_Flight, asyncio.Task[foreign_documents.FetchedDocument]] = {}
        self.outcomes = Outcomes()

    async def fetch(
        self, url: str, policy: foreign_documents.FetchPolicy
    ) -> foreign_documents.FetchedDocument:
        """Fetch the document at the URL; a fragment is ignored. Raises FetchFailed.

        If a caller is cancelled, the fetch continues for the others that wait for it.
        """
        target = self._admit(url, policy)
        flight = (target.url, policy)
        failure = self._failures.get(flight, self._clock.now_ms())
        if failure is not None:
            raise self._remembered(failure)
        task = self._flights.get(flight)
        if task is None:
            task = asyncio.create_task(self._follow(target, policy))
            self._flights[flight] = task
            task.add_done_callback(partial(self._finished, flight))
        return await _joined(task)

    def open_circuits(self) -> int:
        """The number of origins, for one purpose each, that are not contacted at this moment."""
        return self._circuit.open_circuits(self._clock.now_ms())

    async def close(self) -> None:
        """Stop the fetches in progress; they raise Unreachable."""
        await cancel_and_wait(self._flights.values())

    def _finished(
        self, flight: _Flight, task: asyncio.Task[foreign_documents.FetchedDocument]
    ) -> None:
        del self._flights[flight]
        if task.cancelled():
            return
        failure = task.exception()
        self.outcomes.note(flight[1].purpose, failure)
        # A fetch that did not contact the origin says nothing about the document.
        if isinstance(failure, errors.FetchFailed) and not isinstance(
            failure, errors.CircuitOpen | errors.Congested
        ):
            # A copy has no traceback, which would keep entire bodies in memory.
            until_ms = self._clock.now_ms() + self._failure_memory_ms
            remembered = _Failure(copy.copy(failure), until_ms)
            self._failures.put(flight, remembered, expires_at_ms=until_ms)

    def _remembered(self, failure: _Failure) -> errors.FetchFailed:
        """A failure to raise again, with the time until the next attempt."""
        again = copy.copy(failure.failure)
        if isinstance(again, RemoteUnavailable):
            again.retry_after_s = ceil((failure.until_ms - self._clock.now_ms()) / 1000)
        return again

    def _admit(self, url: str, policy: foreign_documents.FetchPolicy) -> Target:
        target = self._guard.admit(url)
        if policy.only_origins is not None and target.origin not in policy.only_origins:
            raise errors.Refused(errors.Refusal.ORIGIN_NOT_LISTED)
        return target

    async def _follow(
        self, target: Target, policy: foreign_documents.FetchPolicy
    ) -> foreign_documents.FetchedDocument:
        deadline_s = asyncio.get_running_loop().time() + policy.total_timeout_s
        for _ in range(policy.max_redirects + 1):
            step = await self._hop(target, policy, deadline_s)
            if isinstance(step, foreign_documents.FetchedDocument):
                return step
            target = step
        raise errors.Refused(errors.Refusal.REDIRECT)

    async def _hop(
        self, target: Target, policy: foreign_documents.FetchPolicy, deadline_s: float
    ) -> _Step:
        circuit = foreign_documents.Circuit(policy.purpose, target.origin)
        async with self._limiter.acquire(self._limits_of(circuit), deadline_s):
            self._circuit.check(circuit, self._clock.now_ms())
            async with self._recording_outcome(circuit), _deadline(deadline_s):
                return await self._request(target, policy)

    def _limits_of(self, circuit: foreign_documents.Circuit) -> list[ConcurrencyLimit]:
        """The limits within which a fetch needs a slot, the narrowest first."""
        limits, purpose, client = self._limits, circuit.purpose, requester()
        of_origin = limits.max_concurrent_per_origin
        within = [
            ConcurrencyLimit(circuit, of_origin),
            ConcurrencyLimit(purpose, limits.max_concurrent),
        ]
        if not client:
            return within
        return [
            ConcurrencyLimit((client, circuit), max(1, of_origin // 2)),
            ConcurrencyLimit((client, purpose), limits.max_concurrent_per_requester),
            *within,
        ]

    @asynccontextmanager
    async def _recording_outcome(self, circuit: foreign_documents.Circuit) -> AsyncIterator[None]:
        """Record the outcome for the origin. A fetch without a slot or refused by the guard says
        nothing about the origin."""
        try:
            yield
        except errors.FetchFailed as failure:
            if _is_fault_of_origin(failure):
                self._circuit.failed(circuit, self._clock.now_ms())
            elif not isinstance(failure, errors.Refused | errors.Congested):
                self._circuit.succeeded(circuit)
            raise
        self._circuit.succeeded(circuit)

    async def _request(self, target: Target, policy: foreign_documents.FetchPolicy) -> _Step:
        async with _deadline(asyncio.get_running_loop().time() + policy.connect_timeout_s):
            destination = await self._guard.vet(target)
        connector = Connector(self._guard, self._tls, policy.connect_timeout_s)
        headers = {
            "Accept": policy.accept,
            "Accept-Encoding": "gzip",
            "User-Agent": self._user_agent,
        }
        async with connector.exchange(destination, headers) as response:
            if response.status in _REDIRECTS:
                return self._redirected(target, response, policy)
            return await _document(target, response, policy)

    def _redirected(
        self, origin: Target, response: RemoteResponse, policy: foreign_documents.FetchPolicy
    ) -> Target:
        location = response.headers.get("Location")
        if location is None:
            raise errors.BadStatus(response.status)
        target = self._admit(resolve_reference(origin.url, location), policy)
        if (origin.scheme, target.scheme) == ("https", "http"):
            raise errors.Refused(errors.Refusal.REDIRECT)
        if target.origin != origin.origin and not policy.cross_origin_redirects:
            raise errors.Refused(errors.Refusal.REDIRECT)
        return target


def trusted_certificates() -> ssl.SSLContext:
    """Verification with the certificate authorities of the system."""
    return ssl.create_default_context()


async def _joined(
    task: asyncio.Task[foreign_documents.FetchedDocument],
) -> foreign_documents.FetchedDocument:
    """The outcome of a shared fetch, which continues if this task is cancelled."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        waiter = asyncio.current_task()
        if task.cancelled() and not (waiter is not None and waiter.cancelling()):
            raise errors.Unreachable from None  # the fetcher was closed, and this task continues
        raise


def _is_fault_of_origin(failure: errors.FetchFailed) -> bool:
    if isinstance(failure, errors.BadStatus):
        return failure.status >= _LOWEST_SERVER_ERROR
    return isinstance(failure, errors.Unreachable | errors.TooSlow)


def _is_transient(status: int) -> bool:
    """Whether the same request may soon get another status (RFC 9110 section 15, RFC 6585)."""
    return status >= _LOWEST_SERVER_ERROR or status in _TRANSIENT_STATUSES


async def _document(
    target: Target, response: RemoteResponse, policy: foreign_documents.FetchPolicy
) -> foreign_documents.FetchedDocument:
    if response.status != _OK:
        failure = errors.ServerFailed if _is_transient(response.status) else errors.BadStatus
        raise failure(response.status)
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type not in policy.content_types:
        raise errors.WrongType
    announced_bytes = response.headers.get("Content-Length", "")
    if _NUMBER.fullmatch(announced_bytes) and int(announced_bytes) > policy.max_wire_bytes:
        raise errors.TooLarge
    content = await read_body(
        response.chunks,
        content_coding=response.headers.get("Content-Encoding", ""),
        max_wire_bytes=policy.max_wire_bytes,
        max_content_bytes=policy.max_content_bytes,
    )
    return foreign_documents.FetchedDocument(
        content=content,
        media_type=media_type,
        final_url=target.url,
        max_age_s=freshness_s(response.headers.get("Cache-Control"), response.headers.get("Age")),
    )


def freshness_s(cache_control: str | None, age: str | None) -> int | None:
    """How many seconds a response stays fresh (RFC 9111 sections 4.2 and 5.2.2).

    ``None`` if Cache-Control does not say; 0 if it forbids reuse.
    """
    directives = {
        name.strip().lower(): value.strip().strip('"')
        for name, _, value in (part.partition("=") for part in (cache_control or "").split(","))
    }
    if directives.keys() & {"no-store", "no-cache"}:
        return 0
    max_age = directives.get("max-age", "")
    if not _NUMBER.fullmatch(max_age):
        return None
    spent_s = int(age) if age is not None and _NUMBER.fullmatch(age) else 0
    return max(0, int(max_age) - spent_s)


@asynccontextmanager
async def _deadline(deadline_s: float) -> AsyncIterator[None]:
    """Raises TooSlow when the clock of the event loop reaches the deadline."""
    try:
        async with asyncio.timeout_at(deadline_s):
            yield
    except TimeoutError as error:
        raise errors.TooSlow from error
