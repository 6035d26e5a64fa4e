"""Reads requests to sign out: whom they mean, and where the person may return (A-84).

OpenID Connect RP-Initiated Logout 1.0. An ID token of this provider identifies the person. It may
have expired long ago, as it usually has when people sign out, but it must be from this provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.idp.keys import ProviderKeys
from podstead.idp.records import Client
from podstead.idp.sessions import OpenSession
from podstead.jose.tokens import InvalidJose, claim_text, read_token, verify_signature

MAX_HINT_CHARACTERS: Final = 8192


@dataclass(frozen=True, slots=True)
class Hint:
    """The session that an ID token of this provider was issued in."""

    account_id: str
    client_id: str
    session_id: str | None

    def means(self, signed_in: OpenSession) -> bool:
        """Whether it was issued in this very session."""
        session = signed_in.session
        return (self.account_id, self.session_id) == (session.account_id, session.public_id)


async def read_hint(text: str, *, issuer: str, keys: ProviderKeys) -> Hint | None:
    """Read an ID token as a hint; ``None`` if it is not from this provider."""
    try:
        token = read_token(text, max_characters=MAX_HINT_CHARACTERS)
        key = (await keys.current()).verifier(token.key_id, of_hint=True)
        if key is None:
            return None
        verify_signature(token, key)
    except InvalidJose:
        return None
    claims = token.claims
    account_id, client_id = claim_text(claims, "sub"), claim_text(claims, "azp")
    audience = claims.get("aud")
    # An access token is signed by the same keys, but names one audience that is no client.
    is_identity = isinstance(audience, list) and client_id in audience
    if claims.get("iss") != issuer or account_id is None or client_id is None or not is_identity:
        return None
    return Hint(account_id, client_id, claim_text(claims, "sid"))


def may_return_to(client: Client | None, uri: str | None) -> bool:
    """Whether the client has registered this exact URL for after signing out."""
    return client is not None and uri is not None and uri in client.post_logout_redirect_uris
