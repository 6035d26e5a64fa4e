"""Is a request a person's navigation in a browser, which a page answers better than data?

Browsers say what they want a response for (Fetch Metadata). What an application in a browser
requests, with ``fetch()``, for an ``<img>`` or for a frame, never leads to a page. A client that
says nothing about it is treated as a browser if its Accept header prefers HTML.
"""

from __future__ import annotations

from podstead.core.media_types import prefers_html
from podstead.web.request import Request

_SAFE = frozenset({"GET", "HEAD"})


def is_navigation(request: Request) -> bool:
    """Whether a browser loads the response as a page of its own."""
    fields = request.fields
    if request.method not in _SAFE or fields.authorization:
        return False
    accept = fields.get(b"accept")
    return (
        accept is not None
        and "html" in accept
        and prefers_html(accept)
        and fields.get(b"sec-fetch-mode") in (None, "navigate")
        and fields.get(b"sec-fetch-dest") in (None, "document")
    )
