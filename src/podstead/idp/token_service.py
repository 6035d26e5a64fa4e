"""How does a token request go? Read what it names, decide, commit, and only then answer (A-62 ff.).

A code or refresh token is used up in the write that its tokens depend on: of two requests that use
one at the same time, the second finds it used, and then nothing that came of it counts any more.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, Protocol
from urllib.parse import unquote_plus

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Overloaded
from podstead.idp.keys import ProviderKeys
from podstead.idp.minting import Mint
from podstead.idp.oauth.messages import OAuthAnswer, Parameters
from podstead.idp.oauth.token import Exchange, Facts, TokenRequest, refused
from podstead.idp.records import (
    ACCOUNTS,
    CODES,
    CREDENTIALS,
    GRANTS,
    REFRESH_TOKENS,
    Account,
    AuthorizationCode,
    Client,
    Grant,
    RefreshToken,
)
from podstead.idp.registry import Kept, secret_key
from podstead.idp.writing import commit
from podstead.storage.protocol import EntryRegistry, ResourceStore

_ATTEMPTS: Final = 4


class ProviderStore(EntryRegistry, ResourceStore, Protocol):
    """Where the provider's records are kept; every store is one."""


class Clients(Protocol):
    """Finds the clients of this provider."""

    async def find(self, client_id: str) -> Client | None:
        """The registered client, or the one that a client-ID document describes. ``None`` if there
        is none, or its document cannot be used."""


class TokenService:
    """Answers token requests."""

    def __init__(
        self,
        *,
        issuer: str,
        store: ProviderStore,
        clients: Clients,
        keys: ProviderKeys,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._issuer = issuer
        self._store = store
        self._clients = clients
        self._keys = keys
        self._clock = clock
        self._randomness = randomness

    async def respond(
        self, form: Parameters, *, authorization: str | None, jkt: str | None
    ) -> OAuthAnswer:
        """The answer to a token request; ``jkt`` is the key that its DPoP proof holds, if any.

        Raises StorageError, and Overloaded if others keep changing what the request names.
        """
        if authorization is not None and basic_credentials(authorization) is None:
            return refused("invalid_client", "The Authorization header cannot be read", status=401)
        for _ in range(_ATTEMPTS):
            now_ms = self._clock.now_ms()
            mint = Mint(self._issuer, await self._keys.current(), self._randomness, now_ms // 1000)
            request = TokenRequest(form, authorization, jkt, now_ms // 1000)
            exchange = Exchange(request, await self._facts(form, authorization, now_ms), mint)
            answer = exchange.respond()
            if await commit(
                self._store,
                exchange.records,
                relied_on=exchange.relied_on,
                now_ms=now_ms,
                randomness=self._randomness,
            ):
                return answer
        raise Overloaded("The token request meets others of the same grant: try again")

    async def _facts(self, form: Parameters, authorization: str | None, now_ms: int) -> Facts:
        code = refresh_token = grant = account = None
        account_id: str | None = None
        store = self._store
        code_text, refresh_text = _first(form, "code"), _first(form, "refresh_token")
        if code_text is not None:
            code = await CODES.read(store, secret_key(code_text), now_ms=now_ms)
        if refresh_text is not None:
            key = secret_key(refresh_text)
            refresh_token = await REFRESH_TOKENS.read(store, key, now_ms=now_ms)
        grant = await self._grant(code, refresh_token, now_ms)
        client_id = _client_id(form, authorization)
        if client_id is None and refresh_token is not None:
            client_id = refresh_token.value.client_id
        credential = client = None
        if client_id is not None and len(client_id) <= _LONGEST_CLIENT_ID:
            kept = await CREDENTIALS.read(store, client_id, now_ms=now_ms)
            credential = None if kept is None else kept.value
            if credential is None:
                client = await self._clients.find(client_id)
            else:
                client = credential_client(credential.credential_id, credential.secret_hash)
                account_id = credential.account_id
        if grant is not None:
            account_id = grant.value.account_id
        if account_id is not None:
            account = await self._account(account_id, now_ms)
        return Facts(client, credential, code, refresh_token, grant, account)

    async def _grant(
        self,
        code: Kept[AuthorizationCode] | None,
        refresh_token: Kept[RefreshToken] | None,
        now_ms: int,
    ) -> Kept[Grant] | None:
        named = refresh_token or code
        if named is None:
            return None
        return await GRANTS.read(self._store, named.value.grant_id, now_ms=now_ms)

    async def _account(self, account_id: str, now_ms: int) -> Account | None:
        kept = await ACCOUNTS.read(self._store, account_id, now_ms=now_ms)
        return None if kept is None else kept.value


_LONGEST_CLIENT_ID: Final = 2048


def credential_client(credential_id: str, secret_hash: str) -> Client:
    """The client that a script's id and secret stand for (A-67)."""
    return Client(
        client_id=credential_id,
        redirect_uris=(),
        grant_types=("client_credentials",),
        auth_method="client_secret_basic",
        identity_algorithm="RS256",
        registered=True,
        secret_hash=secret_hash,
    )


def _first(form: Parameters, name: str) -> str | None:
    values = form.get(name)
    return values[0] if values else None


def _client_id(form: Parameters, authorization: str | None) -> str | None:
    """The client that a request is of, by its form or its Authorization field."""
    named = _first(form, "client_id")
    if named is not None or authorization is None:
        return named
    shown = basic_credentials(authorization)
    return None if shown is None else shown[0]


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """The id and secret of a Basic credential, both form-decoded (RFC 6749 section 2.3.1).

    ``None`` if it is none that can be read.
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = decoded.partition(":")
    return (unquote_plus(client_id), unquote_plus(secret)) if colon else None
