"""How is a document answered that is the same for everybody, and may be kept for a while?"""

from __future__ import annotations

import hashlib
from typing import Final

from podstead.core.conditional import Conditions, PreconditionResult, evaluate_read
from podstead.web.asgi import Headers
from podstead.web.request import Request
from podstead.web.response import Response

MAX_AGE_S: Final = 300


def public_document(
    request: Request,
    content: bytes,
    *,
    age_s: int = MAX_AGE_S,
    media_type: str = "application/json",
) -> Response:
    """The answer to a GET or HEAD of a document that anyone may keep for so long. Raises
    PreconditionFailed."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers: Headers = [
        (b"etag", tag.encode("ascii")),
        (b"cache-control", f"public, max-age={age_s}".encode("ascii")),
    ]
    conditions = Conditions(if_none_match=request.fields.get(b"if-none-match"))
    if evaluate_read(conditions, etag=tag, modified_ms=0) is PreconditionResult.NOT_MODIFIED:
        return Response(304, headers)
    headers += [
        (b"content-type", media_type.encode("ascii")),
        (b"content-length", str(len(content)).encode("ascii")),
    ]
    return Response(200, headers, b"" if request.method == "HEAD" else content)
