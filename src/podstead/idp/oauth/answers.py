"""Converts the library's error responses to our own (RFC 6749 section 5.2)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from podstead.idp.oauth.messages import LibraryAnswer, OAuthAnswer

_NO_STORE: Final = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))
_CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="client"')

_DESCRIPTIONS: Final = MappingProxyType(
    {
        # One description for every reason, so that it does not reveal which one it was.
        "invalid_grant": "The code or token is invalid, expired, revoked, or of another client "
        "or key",
        "invalid_client": "The client is not known here, or could not be authenticated",
        "invalid_request": "A parameter is missing",
        "invalid_scope": "The scope goes beyond what was granted",
        "unauthorized_client": "The client may not use this grant type",
        "unsupported_grant_type": "The grant type is missing or not supported",
    }
)
"""The description of each error. The library's own descriptions repeat what was sent (A-186)."""


def refused(error: str, description: str, *, status: int = 400) -> OAuthAnswer:
    """An error response of RFC 6749 section 5.2."""
    return OAuthAnswer(status, {"error": error, "error_description": description}, _NO_STORE)


def unavailable(retry_after_s: int) -> OAuthAnswer:
    """The response while the client cannot be determined. The code is that of RFC 6749 section
    4.1.2.1 for authorization requests, because the token endpoint has none for server faults."""
    body = {
        "error": "temporarily_unavailable",
        "error_description": "The client's document cannot be read at present: try again later",
    }
    return OAuthAnswer(503, body, (*_NO_STORE, ("Retry-After", str(retry_after_s))))


def own_answer(answer: LibraryAnswer) -> OAuthAnswer:
    """The response with our headers and, for an error, our description only."""
    if answer.status == 200:
        return OAuthAnswer(200, answer.body, _NO_STORE)
    error = str(answer.body["error"])
    if error == "invalid_client":
        return unknown_client()
    return refused(error, _DESCRIPTIONS.get(error, "The request is not valid"))


def unknown_client() -> OAuthAnswer:
    """The response to a client that has not authenticated (RFC 6749 section 5.2)."""
    body = {"error": "invalid_client", "error_description": _DESCRIPTIONS["invalid_client"]}
    return OAuthAnswer(401, body, (*_NO_STORE, _CHALLENGE))
