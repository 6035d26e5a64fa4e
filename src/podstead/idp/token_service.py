"""Answers token requests: reads the facts, decides, commits, and only then responds (A-62 ff.).

A code or a refresh token is used up in the write that its tokens depend on. If two requests use one
at the same time, the second finds it used, and everything that resulted from it becomes invalid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn import claims as authn_claims
from podstead.idp import authorizations, token_issuing
from podstead.idp import records as idp_records
from podstead.idp.audit import Audit
from podstead.idp.client_metadata import PresentedClient, UnreadableClient, presented_client
from podstead.idp.clients import ClientDirectory
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth.messages import OAuthAnswer, Parameters, unknown_client
from podstead.idp.oauth.token import TokenExchange, TokenRequest, TokenRequestRecords
from podstead.jose.tokens import CompactToken, InvalidJose, claim_text, read_token, verify_signature
from podstead.storage.record_store import Changes, RecordStore, secret_key


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenService:
    """Answers token requests."""

    issuer: str
    records: RecordStore
    clients: ClientDirectory
    keys: ProviderKeys
    audit: Audit
    extension: authorizations.AuthorizationExtension | None = None

    async def respond(
        self, form: Parameters, *, authorization: str | None, jkt: str | None
    ) -> OAuthAnswer:
        """The response to a token request; ``jkt`` is the thumbprint of the key of its DPoP proof,
        if any.

        Raises StorageError, and Overloaded if other requests keep changing what the request names.
        """
        try:
            presented = presented_client(form, authorization)
        except UnreadableClient:
            return unknown_client()

        async def compute() -> Changes[tuple[TokenExchange, OAuthAnswer]]:
            now_s = self.records.now_s()
            randomness = self.records.randomness
            mint = token_issuing.TokenIssuer(
                self.issuer, await self.keys.current(), randomness, now_s
            )
            facts = await self._facts(form, presented)
            request = TokenRequest(form, presented or _by_token(facts), jkt, now_s)
            exchange = TokenExchange(request, facts, mint)
            answer = exchange.respond()
            return Changes((exchange, answer), exchange.records, exchange.preconditions)

        exchange, answer = await self.records.transact(compute)
        for event, grant in exchange.events:
            self.audit.note(event, account_id=grant.account_id, client_id=grant.client_id)
        return answer

    async def client(self, client_id: str) -> idp_records.Client | None:
        """The client with this id, which may also be the id of client credentials."""
        credential = await self.records.value(idp_records.CREDENTIALS, client_id)
        return credential_client(credential) if credential else await self.clients.find(client_id)

    async def _facts(
        self, form: Parameters, presented: PresentedClient | None
    ) -> TokenRequestRecords:
        """The stored records of the code, token and client in the request. If it contains both a
        code and a refresh token, only the one that its grant type requires is read."""
        code = refresh_token = grant = credential = client = account = None
        account_id: str | None = None
        if (secret := _secret(form, "authorization_code", "code")) is not None:
            code = await self.records.read(idp_records.CODES, secret_key(secret))
        elif (secret := _secret(form, "refresh_token", "refresh_token")) is not None:
            refresh_token = await self.records.read(idp_records.REFRESH_TOKENS, secret_key(secret))
        named = refresh_token or code
        if named is not None:
            grant = await self.records.read(idp_records.GRANTS, named.value.grant_id)
            account_id = grant.value.account_id if grant else None
        client_id = None if presented is None else presented.client_id
        if client_id is None and refresh_token is not None:
            client_id = refresh_token.value.client_id
        if client_id is not None:
            credential = await self.records.value(idp_records.CREDENTIALS, client_id)
            if credential is None:
                client = await self.clients.find(client_id)
            else:
                client = credential_client(credential)
                account_id = account_id or credential.account_id
        if account_id is not None:
            account = await self.records.value(idp_records.ACCOUNTS, account_id)
        members = {}
        if self.extension is not None and account is not None and client is not None:
            web_id = account.web_id if credential is None else credential.web_id
            members = dict(await self.extension.token_members(web_id, client.client_id))
        return TokenRequestRecords(client, credential, code, refresh_token, grant, account, members)


def credential_client(credential: idp_records.ClientCredential) -> idp_records.Client:
    """The client that client credentials stand for (A-67)."""
    return idp_records.Client(
        client_id=credential.credential_id,
        redirect_uris=(),
        grant_types=("client_credentials",),
        auth_method="client_secret_basic",
        identity_algorithm="RS256",
        registered=True,
        secret_hash=credential.secret_hash,
    )


def _by_token(facts: TokenRequestRecords) -> PresentedClient | None:
    """A client without a secret may omit its id when it refreshes (A-66)."""
    client = facts.client
    return None if client is None else PresentedClient(client.client_id)


def _secret(form: Mapping[str, Sequence[str]], grant_type: str, name: str) -> str | None:
    if list(form.get("grant_type", ())) != [grant_type]:
        return None
    return next(iter(form.get(name, ())), None)


# Introspection and revocation of tokens, and userinfo.
#
# A client learns about its own tokens and revokes its own tokens only. About any other token it
# learns nothing, not even that the token exists (RFC 7662 section 2.2, RFC 7009 section 2.2).

INACTIVE: Final[dict[str, object]] = {"active": False}


@dataclass(frozen=True, slots=True)
class _AccessToken:
    token: CompactToken
    claims: authn_claims.CommonClaims


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStatus:
    """Looks up and revokes tokens of this provider."""

    own: token_issuing.OwnTokens
    records: RecordStore
    allow_loopback: bool
    extension: authorizations.AuthorizationExtension | None = None

    async def introspect(self, text: str, client: idp_records.Client) -> dict[str, object]:
        """What a client may learn about a token (RFC 7662 section 2.2)."""
        access = await self._access_token(text)
        if access is not None:
            # Introspection must not confirm an ID token as an access token.
            typed = access.token.header.get("typ") in authn_claims.ACCESS_TOKEN_TYPES
            if access.claims.client_id != client.client_id or not typed:
                return INACTIVE
            names = ("iss", "sub", "aud", "webid", "client_id", "scope", "iat", "exp", "jti", "cnf")
            claims = access.token.claims
            kind = "Bearer" if access.claims.thumbprint is None else "DPoP"
            stated = {name: claims[name] for name in names if name in claims}
            members = await self._members(claim_text(claims, "webid"), client)
            return {"active": True, "token_type": kind, **stated, **members}
        refresh = await self.records.read(idp_records.REFRESH_TOKENS, secret_key(text))
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
            "iss": self.own.issuer,
            "exp": (refresh.expires_ms or 0) // 1000,
            **await self._members(grant.web_id, client),
        }

    async def _members(
        self, web_id: str | None, client: idp_records.Client
    ) -> Mapping[str, object]:
        if self.extension is None or web_id is None:
            return {}
        return await self.extension.token_members(web_id, client.client_id)

    async def revoke(self, text: str, client: idp_records.Client) -> None:
        """Revoke one of the client's tokens; a refresh token together with all tokens of its grant
        (RFC 7009). Nothing happens for any other token."""
        now_ms = self.records.now_ms()
        access = await self._access_token(text, to_end=True)
        if access is not None and access.claims.client_id == client.client_id:
            await self._revoke_access(access, now_ms)
            return
        refresh = await self.records.value(idp_records.REFRESH_TOKENS, secret_key(text))
        if refresh is not None and refresh.client_id == client.client_id:
            await self.records.update(idp_records.GRANTS, refresh.grant_id, idp_records.revoked)

    async def userinfo(self, text: str, issuer: str | None) -> dict[str, object] | None:
        """The claims about the person of a token that has just been verified (OpenID Connect Core
        5.3).

        ``None`` for a token of another provider, or one without the scope.
        """
        if issuer is None or not authn_claims.same_issuer(issuer, self.own.issuer):
            return None
        token = read_token(text, max_characters=authn_claims.MAX_TOKEN_CHARACTERS)
        scopes = (claim_text(token.claims, "scope") or "").split()
        subject = claim_text(token.claims, "sub") or ""
        account = await self.records.value(idp_records.ACCOUNTS, subject)
        if account is None or "openid" not in scopes:
            return None
        stated: dict[str, object] = {"sub": subject}
        if "webid" in token.claims:
            stated["webid"] = account.web_id
        return stated | token_issuing.personal_claims(account, scopes)

    async def identity_claims(self, text: str) -> authn_claims.CommonClaims | None:
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
        record = idp_records.REVOKED_TOKENS.put(
            token_id,
            idp_records.RevokedToken(now_ms // 1000),
            # Kept for as long as the token would be accepted, with allowance for clock skew.
            expires_ms=now_ms + 2 * token_issuing.ACCESS_TOKEN_S * 1000,
        )
        await self.records.commit([record])

    async def _access_token(self, text: str, *, to_end: bool = False) -> _AccessToken | None:
        """A valid access token of this provider; ``None`` for any other text. A token ``to_end`` is
        also returned while its WebID document does not name this provider, since that may change.
        """
        now_s = self.records.now_s()
        try:
            token = read_token(text, max_characters=authn_claims.MAX_TOKEN_CHARACTERS)
            key = await self.own.key(token.key_id)
            if key is None or token.claims.get("iss") != self.own.issuer:
                return None
            verify_signature(token, key)
            if self._is_for_userinfo(token):
                audience = token_issuing.userinfo_url(self.own.issuer)
                common = authn_claims.read_common_claims(token, audience=audience, now_s=now_s)
                await self.own.check_identity(common)
                return _AccessToken(token, common)
            claims = authn_claims.read_claims(
                token, now_s=now_s, allow_loopback=self.allow_loopback
            )
            if to_end:
                await self.own.check_identity(claims)
            else:
                await self.own.check(claims)
        except InvalidJose:
            return None
        return _AccessToken(token, claims)

    def _is_for_userinfo(self, token: CompactToken) -> bool:
        return token.claims.get("aud") == token_issuing.userinfo_url(self.own.issuer)

    async def _live_grant(self, grant_id: str) -> idp_records.Grant | None:
        grant = await self.records.value(idp_records.GRANTS, grant_id)
        if grant is None or grant.revoked:
            return None
        account = await self.records.value(idp_records.ACCOUNTS, grant.account_id)
        if account is None or account.disabled:
            return None
        return grant if grant.authenticated_s >= account.valid_after_s else None
