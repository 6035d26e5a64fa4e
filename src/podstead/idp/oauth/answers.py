"""What does a client hear from us? The library's answers in our words (RFC 6749 section 5.2)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from podstead.idp.oauth.messages import LibraryAnswer, OAuthAnswer

_NO_STORE: Final = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))
_CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="client"')

_DESCRIPTIONS: Final = MappingProxyType(
    {
        # One for every reason: it must not tell which of them it was.
        "invalid_grant": "The code or token is invalid, expired, revoked, or of another client "
        "or key",
        "invalid_client": "The client is not known here, or could not be authenticated",
        "invalid_request": "A parameter is missing",
        "invalid_scope": "The scope goes beyond what was granted",
        "unauthorized_client": "The client may not use this grant type",
        "unsupported_grant_type": "The grant type is missing or not supported",
    }
)
"""What an error says, always: the library's own words repeat what was sent (A-186)."""


def refused(error: str, description: str, *, status: int = 400) -> OAuthAnswer:
    """An error as RFC 6749 section 5.2 says it."""
    return OAuthAnswer(status, {"error": error, "error_description": description}, _NO_STORE)


def unavailable(retry_after_s: int) -> OAuthAnswer:
    """The answer while it cannot be known who the client is. The code is the one that RFC 6749
    section 4.1.2.1 has for authorization requests: section 5.2 has none for trouble of ours."""
    body = {
        "error": "temporarily_unavailable",
        "error_description": "The client's document cannot be read at present: try again later",
    }
    return OAuthAnswer(503, body, (*_NO_STORE, ("Retry-After", str(retry_after_s))))


def own_answer(answer: LibraryAnswer) -> OAuthAnswer:
    """The answer with our headers, and for an error with our words alone."""
    if answer.status == 200:
        return OAuthAnswer(200, answer.body, _NO_STORE)
    error = str(answer.body["error"])
    if error == "invalid_client":
        return unknown_client()
    return refused(error, _DESCRIPTIONS.get(error, "The request is not valid"))


def unknown_client() -> OAuthAnswer:
    """The answer to a client that has not shown that it is itself (RFC 6749 section 5.2)."""
    body = {"error": "invalid_client", "error_description": _DESCRIPTIONS["invalid_client"]}
    return OAuthAnswer(401, body, (*_NO_STORE, _CHALLENGE))
