"""Pages about containers that were made before, while nothing that they show can have changed.

The same idea as for responses to applications (decision 0005): as long as the store has taken
no write of any process, the same request in the same session gets the same page. The session itself
is looked up for every request, before the cache is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from podstead.core.caches import BoundedCache
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response

_MAX_BYTES: Final = 16 * 1024 * 1024
_OVERHEAD_BYTES: Final = 2048

_Key = tuple[str, str, str, str]


class PageCache:
    """Keeps the newest pages of one worker."""

    def __init__(self, data_version: Callable[[], int | None]) -> None:
        """``data_version`` is that of the store: it changes with every commit."""
        self._data_version = data_version
        self._cached: BoundedCache[_Key, tuple[int, Response]] = BoundedCache(_MAX_BYTES)

    def get(self, page: PageRequest) -> Response | None:
        """The page for this request, if it would be the same again."""
        cached = self._cached.get(_key(page)) if page.notice is None else None
        if cached is None or cached[0] != self._data_version():
            return None
        return replace(cached[1], headers=[*cached[1].headers])

    def begin(self) -> int | None:
        """The state of the store before a page is made, for :meth:`put`."""
        return self._data_version()

    def put(self, page: PageRequest, response: Response, *, begun: int | None) -> None:
        """Keep a page, unless there was a write while it was made."""
        if begun is None or begun != self._data_version() or page.notice is not None:
            return
        if response.status == 200 and isinstance(response.body, bytes):
            cached = replace(response, headers=[*response.headers])
            weight = len(response.body) + _OVERHEAD_BYTES
            self._cached.put(_key(page), (begun, cached), weight=weight)


def _key(page: PageRequest) -> _Key:
    # The token belongs to one session of one person; the public has none.
    session = "" if page.person is None else page.person.csrf_token
    return session, page.request.method, page.address, page.texts.language
