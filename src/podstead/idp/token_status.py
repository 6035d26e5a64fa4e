"""Introspection and revocation of tokens, and userinfo (A-82, A-83).

A client learns about its own tokens and revokes its own tokens only. About any other token it
learns nothing, not even that the token exists (RFC 7662 section 2.2, RFC 7009 section 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.authn.claims import (
    ACCESS_TOKEN_TYPES,
    MAX_TOKEN_CHARACTERS,
    CommonClaims,
    read_claims,
    read_common_claims,
    same_issuer,
)
from podstead.idp.discovery import userinfo_url
from podstead.idp.own_tokens import OwnTokens
from podstead.idp.records import (
    ACCOUNTS,
    GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    Client,
    Grant,
    RefreshToken,
    RevokedToken,
    revoked,
)
from podstead.idp.token_minting import ACCESS_TOKEN_S, personal_claims
from podstead.jose.tokens import (
    CompactToken,
    InvalidJose,
    claim_text,
    read_token,
    verify_signature,
)
from podstead.storage.record_store import RecordStore, Versioned, secret_key

INACTIVE: Final[dict[str, object]] = {"active": False}


@dataclass(frozen=True, slots=True)
class _AccessToken:
    token: CompactToken
    claims: CommonClaims


class TokenStatus:
    """Looks up and revokes tokens of this provider."""

    def __init__(
        self,
        *,
        own: OwnTokens,
        records: RecordStore,
        allow_loopback: bool,
    ) -> None:
        self._own = own
        self._records = records
        self._allow_loopback = allow_loopback

    async def introspect(self, text: str, client: Client) -> dict[str, object]:
        """What a client may learn about a token (RFC 7662 section 2.2)."""
        access = await self._access_token(text)
        if access is not None:
            # Introspection must not confirm an ID token as an access token.
            typed = access.token.header.get("typ") in ACCESS_TOKEN_TYPES
            if access.claims.client_id != client.client_id or not typed:
                return INACTIVE
            names = ("iss", "sub", "aud", "webid", "client_id", "scope", "iat", "exp", "jti", "cnf")
            claims = access.token.claims
            kind = "Bearer" if access.claims.thumbprint is None else "DPoP"
            stated = {name: claims[name] for name in names if name in claims}
            return {"active": True, "token_type": kind, **stated}
        refresh = await self._refresh_token(text)
        if refresh is None or refresh.value.client_id != client.client_id:
            return INACTIVE
        grant = await self._live_grant(refresh.value.grant_id)
        if refresh.value.used or grant is None:
            return INACTIVE
        return {
            "active": True,
            "client_id": client.client_id,
            "scope": " ".join(refresh.value.scopes),
            "sub": grant.account_id,
            "webid": grant.web_id,
            "iss": self._own.issuer,
            "exp": (refresh.expires_ms or 0) // 1000,
        }

    async def revoke(self, text: str, client: Client) -> None:
        """Revoke one of the client's tokens; a refresh token together with all tokens of its grant
        (RFC 7009). Nothing happens for any other token."""
        now_ms = self._records.now_ms()
        access = await self._access_token(text, to_end=True)
        if access is not None and access.claims.client_id == client.client_id:
            await self._revoke_access(access, now_ms)
            return
        refresh = await self._refresh_token(text)
        if refresh is not None and refresh.value.client_id == client.client_id:
            await self._records.update(GRANTS, refresh.value.grant_id, revoked)

    async def userinfo(self, text: str, issuer: str | None) -> dict[str, object] | None:
        """The claims about the person of a token that has just been verified (OpenID Connect Core
        5.3).

        ``None`` for a token of another provider, or one without the scope.
        """
        if issuer is None or not same_issuer(issuer, self._own.issuer):
            return None
        token = read_token(text, max_characters=MAX_TOKEN_CHARACTERS)
        scopes = (claim_text(token.claims, "scope") or "").split()
        subject = claim_text(token.claims, "sub") or ""
        account = await self._records.read(ACCOUNTS, subject)
        if account is None or "openid" not in scopes:
            return None
        stated: dict[str, object] = {"sub": subject}
        if "webid" in token.claims:
            stated["webid"] = account.value.web_id
        return stated | personal_claims(account.value, scopes)

    async def identity_claims(self, text: str) -> CommonClaims | None:
        """The claims of a valid token of this provider whose audience is the userinfo endpoint;
        ``None`` for any other text."""
        access = await self._access_token(text)
        if access is None or not self._is_for_userinfo(access.token):
            return None
        return access.claims

    async def _revoke_access(self, access: _AccessToken, now_ms: int) -> None:
        token_id = access.claims.token_id
        if token_id is None:
            return
        record = REVOKED_TOKENS.put(
            token_id,
            RevokedToken(now_ms // 1000),
            # Kept for as long as the token would be accepted, with allowance for clock skew.
            expires_ms=now_ms + 2 * ACCESS_TOKEN_S * 1000,
        )
        await self._records.commit([record])

    async def _access_token(self, text: str, *, to_end: bool = False) -> _AccessToken | None:
        """A valid access token of this provider; ``None`` for any other text. A token ``to_end`` is
        also returned while its WebID document does not name this provider, since that may change.
        """
        now_s = self._records.now_s()
        try:
            token = read_token(text, max_characters=MAX_TOKEN_CHARACTERS)
            key = await self._own.key(token.key_id)
            if key is None or token.claims.get("iss") != self._own.issuer:
                return None
            verify_signature(token, key)
            if self._is_for_userinfo(token):
                audience = userinfo_url(self._own.issuer)
                common = read_common_claims(token, audience=audience, now_s=now_s)
                await self._own.check_identity(common)
                return _AccessToken(token, common)
            claims = read_claims(token, now_s=now_s, allow_loopback=self._allow_loopback)
            if to_end:
                await self._own.check_identity(claims)
            else:
                await self._own.check(claims)
        except InvalidJose:
            return None
        return _AccessToken(token, claims)

    def _is_for_userinfo(self, token: CompactToken) -> bool:
        return token.claims.get("aud") == userinfo_url(self._own.issuer)

    async def _refresh_token(self, text: str) -> Versioned[RefreshToken] | None:
        return await self._records.read(REFRESH_TOKENS, secret_key(text))

    async def _live_grant(self, grant_id: str) -> Grant | None:
        stored = await self._records.read(GRANTS, grant_id)
        if stored is None or stored.value.revoked:
            return None
        account = await self._records.read(ACCOUNTS, stored.value.account_id)
        if account is None or account.value.disabled:
            return None
        return stored.value if stored.value.authenticated_s >= account.value.valid_after_s else None
