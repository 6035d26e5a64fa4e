"""Responses to browsers that depend on a cookie: redirects to pages, and JSON for scripts.

None of them may be cached, since pages and their URLs contain secrets (A-45).
"""

from __future__ import annotations

from typing import Final

from podstead.web.response import (
    NO_STORE,
    HeaderField,
    Response,
    empty_response,
    json_content_response,
)

VARY_BY_COOKIE: Final = b"Accept, Accept-Encoding, Cookie"


def see_other(location: str, *headers: HeaderField) -> Response:
    """A redirect to another page, with GET."""
    fields = [(b"location", location.encode("ascii")), NO_STORE, *headers]
    return empty_response(303, fields, vary=VARY_BY_COOKIE)


def json_response(status: int, body: object, *headers: HeaderField) -> Response:
    """A response for a program: ``body`` as JSON, or nothing with a 204."""
    fields = [NO_STORE, *headers]
    if status == 204:
        return empty_response(status, fields, vary=VARY_BY_COOKIE)
    return json_content_response(body, status=status, headers=fields, vary=VARY_BY_COOKIE)
