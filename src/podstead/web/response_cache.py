"""Was exactly this request answered before, and has nothing changed since?

The answer to a GET or HEAD is a function of the request and of the stored state. The store tells
with one cheap mark whether anything at all was committed, by this worker or another; while the
mark stands, an identical request (method, target and every header) has the identical answer, access
decision included. A commit makes every kept answer worthless at once, so none can be stale; the
ordinary path then answers, and renderings kept by version make that cheap as well. The mark is part
of what identifies a request, so an answer begun before a commit is never taken for one made after.
The keys of this server's own provider, which lie in files, have a mark of their own: whom a token
lets in depends on them as well.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Protocol

from podstead.core.clock import Clock
from podstead.core.errors import StorageError
from podstead.web.asgi import Scope
from podstead.web.response import Response

_OVERHEAD_BYTES = 2048
"""What an entry takes besides its body and the request: objects and the response's headers."""
_FIELD_OVERHEAD_BYTES = 150
"""What a header field takes besides its characters."""
_KEPT_METHODS = frozenset({"GET", "HEAD"})


class ResponseKey(NamedTuple):
    """A request, and the state mark at which it came."""

    mark: tuple[int, ...]
    method: str
    raw_path: bytes
    query: bytes
    peer: str
    fields: tuple[tuple[bytes, bytes], ...]

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, roughly; the sender decides how much that is."""
        fields = sum(len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in self.fields)
        return len(self.raw_path) + len(self.query) + fields


class _Kept(NamedTuple):
    response: Response
    size_bytes: int


class StateMark(Protocol):
    """Tells whether something has changed that answers come of."""

    def data_version(self) -> int | None:
        """A number that differs after any change by any worker, as far as this one would take note
        of it; ``None`` if it is not known. Raises StorageError."""


class ResponseCache:
    """Kept answers of one worker, bounded in bytes."""

    def __init__(
        self,
        *,
        store: StateMark,
        keys: StateMark | None = None,
        clock: Clock,
        capacity_bytes: int,
    ) -> None:
        """``keys`` are those of this server's own provider, if it is one."""
        self._sources = (store,) if keys is None else (store, keys)
        self._clock = clock
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._mark: tuple[int, ...] | None = None
        self._entries: OrderedDict[ResponseKey, _Kept] = OrderedDict()

    def key(self, scope: Scope) -> ResponseKey | None:
        """What identifies a request, ``None`` if its answer is never kept."""
        method: str = scope["method"]
        fields = tuple(scope["headers"])
        if method not in _KEPT_METHODS or not all(map(_is_good_again, fields)):
            return None
        mark = self._mark_now()
        if mark is None:
            return None
        peer: str = (scope.get("client") or ("",))[0]
        return ResponseKey(mark, method, scope["raw_path"], scope["query_string"], peer, fields)

    def get(self, key: ResponseKey) -> Response | None:
        """The kept answer, if nothing was committed since it was made."""
        if key.mark != self._mark:
            self._forget(key.mark)
            return None
        kept = self._entries.get(key)
        if kept is None:
            return None
        until_s = kept.response.valid_until_s
        if until_s is not None and self._clock.now_ms() >= until_s * 1000:
            return None
        return kept.response

    def keep(self, key: ResponseKey, response: Response) -> None:
        """Keep an answer that was made after ``key``.

        Nothing is kept if a commit came since: the answer may belong to the state before it.
        """
        body = response.body
        if not response.of_stored_state or not isinstance(body, bytes):
            return
        size_bytes = len(body) + key.size_bytes + _OVERHEAD_BYTES
        if size_bytes > self._capacity_bytes // 8 or self._mark_now() != key.mark:
            return
        replaced = self._entries.pop(key, None)
        self._entries[key] = _Kept(response, size_bytes)
        self._used_bytes += size_bytes - (replaced.size_bytes if replaced else 0)
        while self._used_bytes > self._capacity_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._used_bytes -= dropped.size_bytes

    def _mark_now(self) -> tuple[int, ...] | None:
        marks = []
        try:
            for source in self._sources:
                mark = source.data_version()
                if mark is None:
                    return None
                marks.append(mark)
        except StorageError:
            return None  # the ordinary path meets the same trouble, and answers it
        return tuple(marks)

    def _forget(self, mark: tuple[int, ...]) -> None:
        self._entries.clear()
        self._used_bytes = 0
        self._mark = mark


def _is_good_again(field: tuple[bytes, bytes]) -> bool:
    """Whether a field means the same when it is sent again; a proof of a request does not."""
    name, value = field
    return name != b"authorization" or value[:7].lower() == b"bearer "
