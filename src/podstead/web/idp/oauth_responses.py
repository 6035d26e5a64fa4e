"""How are the JSON responses of the provider's endpoints sent? They must not be cached (A-45)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.idp.oauth.messages import OAuthAnswer
from podstead.web.asgi import Headers
from podstead.web.response import Response, json_content_response

NO_STORE: Final = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_OWN: Final = frozenset(name for name, _ in NO_STORE)


def oauth_json_response(answer: OAuthAnswer) -> Response:
    """The HTTP response for an OAuth response."""
    headers = [*NO_STORE, *_further(answer.headers)]
    return json_content_response(answer.body, status=answer.status, headers=headers)


def _further(headers: Sequence[tuple[str, str]]) -> Headers:
    lowered = [(n.lower().encode("ascii"), v.encode("latin-1")) for n, v in headers]
    return [each for each in lowered if each[0] not in _OWN]
