"""What OAuth clients send: authorization requests with PKCE, and their own authentication."""

from __future__ import annotations

import base64
from urllib.parse import quote_plus

from tests.support.signing import token_hash


def authorization_parameters(
    client_id: str, redirect_uri: str, verifier: str, /, **changes: str | None
) -> dict[str, str]:
    """An authorization request (RFC 6749 section 4.1.1) with PKCE; ``None`` leaves one out."""
    parameters: dict[str, str | None] = {
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": "openid webid offline_access",
        "state": "the state",
        "code_challenge": token_hash(verifier),
        "code_challenge_method": "S256",
        **changes,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def basic(client_id: str, secret: str, *, encode: bool = True) -> dict[str, str]:
    """The Authorization header, form-encoded as RFC 6749 section 2.3.1 says, or as it is."""
    parts = [quote_plus(each) if encode else each for each in (client_id, secret)]
    return {"Authorization": "Basic " + base64.b64encode(":".join(parts).encode()).decode()}
