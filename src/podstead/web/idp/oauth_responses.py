"""How are the JSON answers of the provider's endpoints sent? Nobody keeps them (A-45)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.idp.oauth.messages import OAuthAnswer
from podstead.web.asgi import Headers
from podstead.web.response import Response

NO_STORE: Final = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_OWN: Final = frozenset(name for name, _ in NO_STORE)


def oauth_json_response(answer: OAuthAnswer) -> Response:
    """The response that says an answer."""
    content = msgspec.json.encode(answer.body)
    headers: Headers = [
        *NO_STORE,
        *_further(answer.headers),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode("ascii")),
    ]
    return Response(answer.status, headers, content)


def _further(headers: Sequence[tuple[str, str]]) -> Headers:
    lowered = [(n.lower().encode("ascii"), v.encode("latin-1")) for n, v in headers]
    return [each for each in lowered if each[0] not in _OWN]
