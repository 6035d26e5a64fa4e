"""Caches whole responses for as long as nothing is committed.

The response to a GET or HEAD is a function of the request and the stored state. A state mark, which
is cheap to read, tells whether any worker has committed anything. While the mark stays the same, an
identical request (method, target, every header, and the client certificate of its connection) has
an identical response, including the access decision. A commit invalidates every cached response at
once, so none can be stale. The mark is part of the key, so a response begun before a commit is
never used for a request after it. The keys of this server's own provider are stored in files and
have a mark of their own, because the validity of tokens depends on them.

Time and other servers can change a response without a commit: a token or certificate expires, or a
foreign document no longer names the key of a certificate. ``Response.valid_until_s`` is when that
may happen first.

Where a store has no such mark, because other nodes share it, the response itself says what it
depends on (``Response.dependencies``), and whoever gets it from here has that confirmed first.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol

from podstead.core.clock import Clock
from podstead.core.errors import StorageError
from podstead.web.asgi import Scope, certificate_of_connection
from podstead.web.response import Response

_OVERHEAD_BYTES = 2048
"""The memory of an entry besides its body and key: objects and the response's headers."""
_FIELD_OVERHEAD_BYTES = 150
"""The memory of a header field besides its characters."""
_DEPENDENCY_BYTES = 512
"""The memory of one path with its metadata."""
_CACHED_METHODS = frozenset({"GET", "HEAD"})


_Field = tuple[bytes, bytes]


class ResponseKey(NamedTuple):
    """A request, and the state mark at its arrival."""

    mark: tuple[int, ...]
    method: str
    raw_path: bytes
    query: bytes
    peer: str
    certificate: str | None
    fields: tuple[tuple[bytes, bytes], ...]

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the key, which the sender of the request determines."""
        fields = sum(len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in self.fields)
        return len(self.raw_path) + len(self.query) + len(self.certificate or "") + fields


class _Cached(NamedTuple):
    response: Response
    size_bytes: int


class StateMark(Protocol):
    """Tells whether anything has changed that responses depend on."""

    def data_version(self) -> int | None:
        """A number that is different after every change by any worker that this one can see;
        ``None`` if it is not known. Raises StorageError."""


class ResponseCache:
    """The cached responses of one worker, limited in bytes."""

    def __init__(
        self,
        *,
        store: StateMark | None,
        keys: StateMark | None = None,
        settings: StateMark | None = None,
        clock: Clock,
        capacity_bytes: int,
        ignored_fields: frozenset[bytes] = frozenset(),
    ) -> None:
        """``store`` is ``None`` where responses have dependencies instead. ``keys`` are the keys of
        this server's own provider, if there is one, and ``settings`` those that change while the
        server runs. ``ignored_fields`` are header fields that
        differ in every request and that no response depends on."""
        self._sources = tuple(source for source in (store, keys, settings) if source is not None)
        self._needs_dependencies = store is None
        self._clock = clock
        self._select: Callable[[Iterable[_Field]], tuple[_Field, ...]]
        self._select = partial(_without, ignored_fields) if ignored_fields else tuple
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._mark: tuple[int, ...] | None = None
        self._entries: OrderedDict[ResponseKey, _Cached] = OrderedDict()
        self.misses = 0
        """How many requests that have a key were not answered from the cache."""

    def key(self, scope: Scope) -> ResponseKey | None:
        """The key of a request, ``None`` if its response is never cached."""
        method: str = scope["method"]
        fields = self._select(scope["headers"])
        if method not in _CACHED_METHODS or not all(map(_is_repeatable, fields)):
            return None
        mark = self._mark_now()
        if mark is None:
            return None
        peer: str = (scope.get("client") or ("",))[0]
        certificate = certificate_of_connection(scope)
        return ResponseKey(
            mark, method, scope["raw_path"], scope["query_string"], peer, certificate, fields
        )

    def get(self, key: ResponseKey) -> Response | None:
        """The cached response, if nothing has been committed since it was created. If it has
        dependencies, those are still to be confirmed."""
        if key.mark != self._mark:
            self._forget(key.mark)
            return None
        cached = self._entries.get(key)
        if cached is None:
            return None
        until_s = cached.response.valid_until_s
        if until_s is not None and self._clock.now_ms() >= until_s * 1000:
            return None
        return cached.response

    def keep(self, key: ResponseKey, response: Response) -> None:
        """Cache a response that was created after ``key``.

        If there has been a commit since, nothing is cached: the response may be that of the state
        before the commit.
        """
        self.misses += 1
        body = response.body
        if not response.of_stored_state or not isinstance(body, bytes):
            return
        size_bytes = len(body) + key.size_bytes + _OVERHEAD_BYTES
        if self._needs_dependencies:
            if response.dependencies is None:
                return
            size_bytes += len(response.dependencies.metadata) * _DEPENDENCY_BYTES
        if size_bytes > self._capacity_bytes // 8 or self._mark_now() != key.mark:
            return
        replaced = self._entries.pop(key, None)
        self._entries[key] = _Cached(response, size_bytes)
        self._used_bytes += size_bytes - (replaced.size_bytes if replaced else 0)
        while self._used_bytes > self._capacity_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._used_bytes -= dropped.size_bytes

    def clear(self) -> None:
        """Forget all responses."""
        self._entries.clear()
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        """The approximate memory of all entries."""
        return self._used_bytes

    def _mark_now(self) -> tuple[int, ...] | None:
        marks = []
        try:
            for source in self._sources:
                mark = source.data_version()
                if mark is None:
                    return None
                marks.append(mark)
        except StorageError:
            return None  # the request is processed as usual, meets the same error and reports it
        return tuple(marks)

    def _forget(self, mark: tuple[int, ...]) -> None:
        self.clear()
        self._mark = mark


def _without(
    ignored: frozenset[bytes], fields: Iterable[tuple[bytes, bytes]]
) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(field for field in fields if field[0] not in ignored)


def _is_repeatable(field: tuple[bytes, bytes]) -> bool:
    """Whether a field is valid for another request; a proof is valid for one only."""
    name, value = field
    return name != b"authorization" or value[:7].lower() == b"bearer "
