"""Checks for the resource server whether tokens of this provider are still valid (A-76, A-109).

The accounts decide about the WebIDs of this server. A token is valid for a WebID while its account
has that WebID and is not disabled, neither the token nor the grant or the credentials that it was
issued for have been revoked, and its client is still registered.
"""

from __future__ import annotations

from typing import Final

from podstead.authn.claims import CommonClaims, TokenClaims
from podstead.authn.web_ids import UnusableDocument
from podstead.core.clock import Clock
from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.client_metadata import is_document_url
from podstead.idp.keys import ProviderKeys
from podstead.idp.profile_issuer import ProfileIssuer
from podstead.idp.records import ACCOUNTS, CLIENTS, CREDENTIALS, GRANTS, REVOKED_TOKENS, Account
from podstead.jose.tokens import InvalidJose, PublicKey
from podstead.storage.protocol import EntryRegistry

_NOT_NAMED: Final = (
    "The profile of the WebID no longer states this server as its identity provider; the owner can "
    "restore the statement on the account page"
)


class OwnTokens:
    """Implements OwnProvider of ``authn.resource_tokens``."""

    def __init__(
        self,
        *,
        issuer: str,
        store: EntryRegistry,
        keys: ProviderKeys,
        profile_issuer: ProfileIssuer,
        clock: Clock,
    ) -> None:
        self._profile_issuer = profile_issuer
        self._issuer = issuer
        self._store = store
        self._keys = keys
        self._clock = clock

    @property
    def issuer(self) -> str:
        return self._issuer

    async def key(self, key_id: str | None) -> PublicKey | None:
        known = (await self._keys.current()).verifier(key_id)
        if known is None:
            known = (await self._keys.current(look_again=True)).verifier(key_id)
        return known

    async def check(self, claims: TokenClaims) -> None:
        account = await self.check_identity(claims)
        if account.web_id != claims.web_id:
            raise InvalidJose("The token's account may not act for its WebID")
        try:
            named = await self._profile_issuer.is_named_by(account.web_id)
        except UnusableDocument as error:
            raise InvalidJose(str(error)) from error
        if not named:
            raise InvalidJose(_NOT_NAMED)

    async def check_identity(self, claims: CommonClaims) -> Account:
        """The account of a token, which may only say who signed in. Raises InvalidJose unless the
        token is still valid."""
        now_ms = self._clock.now_ms()
        account = await ACCOUNTS.read(self._store, claims.subject or "", now_ms=now_ms)
        if account is None or account.value.disabled:
            raise InvalidJose("The token's account may not act for its WebID")
        if claims.issued_s < account.value.valid_after_s:
            raise InvalidJose("The token is revoked")
        if claims.token_id is None or not await self._is_valid(claims.token_id, now_ms):
            raise InvalidJose("The token is revoked")
        return account.value

    def may_state_identity(self, claims: TokenClaims) -> bool:
        """A token issued for client credentials or a password belongs to the account itself. One
        issued for a grant belongs to an application, which needs the scope."""
        kind, _ = _source_of(claims.token_id or "")
        return kind in ("c", "d") or IDENTITY_SCOPE in claims.scopes

    async def _is_valid(self, token_id: str, now_ms: int) -> bool:
        if await REVOKED_TOKENS.read(self._store, token_id, now_ms=now_ms) is not None:
            return False
        kind, source = _source_of(token_id)
        if kind == "g":
            grant = await GRANTS.read(self._store, source, now_ms=now_ms)
            if grant is None or grant.value.revoked:
                return False
            return await self._has_client(grant.value.client_id, now_ms)
        if kind == "c":
            return await CREDENTIALS.read(self._store, source, now_ms=now_ms) is not None
        return kind == "d"

    async def _has_client(self, client_id: str, now_ms: int) -> bool:
        """Whether the client is still registered. It may have removed itself (RFC 7592 section
        2.3), or have been removed to make room for others. A registration in use outlives its
        grants."""
        if is_document_url(client_id):
            return True
        return await CLIENTS.read(self._store, client_id, now_ms=now_ms) is not None


def _source_of(token_id: str) -> tuple[str, str]:
    """The kind and the id of what a token was issued for
    (:func:`podstead.idp.token_minting.token_source`)."""
    kind, _, source = token_id.partition(".")[0].partition("-")
    return kind, source
