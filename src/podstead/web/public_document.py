"""What is the response to a GET of a document that is the same for everyone and may be cached?"""

from __future__ import annotations

import hashlib
from typing import Final

from podstead.core.conditional import Conditions
from podstead.web.content_coding import if_none_match
from podstead.web.request import Request
from podstead.web.response import Response, conditional_response

MAX_AGE_S: Final = 300


def public_document(
    request: Request,
    content: bytes,
    *,
    age_s: int = MAX_AGE_S,
    media_type: str = "application/json",
) -> Response:
    """The response to a GET or HEAD of a document that anyone may cache for ``age_s``."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return conditional_response(
        content,
        media_type,
        method=request.method,
        etag=tag,
        conditions=Conditions(if_none_match=if_none_match(request.fields)),
        headers=[(b"cache-control", f"public, max-age={age_s}".encode("ascii"))],
    )
