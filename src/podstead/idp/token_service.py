"""How does a token request go? Read what it names, decide, commit, and only then answer (A-62 ff.).

A code or refresh token is used up in the write that its tokens depend on: of two requests that use
one at the same time, the second finds it used, and then nothing that came of it counts any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Overloaded
from podstead.idp.audit import Audit
from podstead.idp.client_authentication import PresentedClient, UnreadableClient, presented_client
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth.answers import unknown_client
from podstead.idp.oauth.messages import OAuthAnswer, Parameters
from podstead.idp.oauth.token import Facts, TokenExchange, TokenRequest
from podstead.idp.records import (
    ACCOUNTS,
    CODES,
    CREDENTIALS,
    GRANTS,
    REFRESH_TOKENS,
    Account,
    Client,
    ClientCredential,
)
from podstead.idp.token_minting import Mint
from podstead.storage.protocol import EntryRegistry, ResourceStore
from podstead.storage.registry import secret_key
from podstead.storage.writing import commit_entries

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
        audit: Audit,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._issuer = issuer
        self._store = store
        self._clients = clients
        self._keys = keys
        self._audit = audit
        self._clock = clock
        self._randomness = randomness

    async def respond(
        self, form: Parameters, *, authorization: str | None, jkt: str | None
    ) -> OAuthAnswer:
        """The answer to a token request; ``jkt`` is the key that its DPoP proof holds, if any.

        Raises StorageError, and Overloaded if others keep changing what the request names.
        """
        try:
            shown = presented_client(form, authorization)
        except UnreadableClient:
            return unknown_client()
        for _ in range(_ATTEMPTS):
            now_ms = self._clock.now_ms()
            mint = Mint(self._issuer, await self._keys.current(), self._randomness, now_ms // 1000)
            facts = await self._facts(form, shown, now_ms)
            request = TokenRequest(form, shown or _by_token(facts), jkt, now_ms // 1000)
            exchange = TokenExchange(request, facts, mint)
            answer = exchange.respond()
            if await commit_entries(
                self._store,
                exchange.records,
                preconditions=exchange.preconditions,
                now_ms=now_ms,
                randomness=self._randomness,
            ):
                self._note(exchange)
                return answer
        raise Overloaded("Other requests use the same grant; try again")

    def _note(self, exchange: TokenExchange) -> None:
        for event, grant in exchange.events:
            self._audit.note(event, account_id=grant.account_id, client_id=grant.client_id)

    async def client(self, client_id: str) -> Client | None:
        """The client of that id; a script's credentials are one too. Raises StorageError."""
        credential = await self._credential(client_id, self._clock.now_ms())
        if credential is None:
            return await self._clients.find(client_id)
        return credential_client(credential.credential_id, credential.secret_hash)

    async def _facts(self, form: Parameters, shown: PresentedClient | None, now_ms: int) -> Facts:
        """What is stored about what the request names. One that names a code and a refresh token is
        about that which its grant type says, and about nothing else."""
        code = refresh_token = grant = credential = client = account = None
        account_id: str | None = None
        store = self._store
        if (secret := _secret(form, "authorization_code", "code")) is not None:
            code = await CODES.read(store, secret_key(secret), now_ms=now_ms)
        elif (secret := _secret(form, "refresh_token", "refresh_token")) is not None:
            refresh_token = await REFRESH_TOKENS.read(store, secret_key(secret), now_ms=now_ms)
        named = refresh_token or code
        if named is not None:
            grant = await GRANTS.read(store, named.value.grant_id, now_ms=now_ms)
            account_id = None if grant is None else grant.value.account_id
        client_id = None if shown is None else shown.client_id
        if client_id is None and refresh_token is not None:
            client_id = refresh_token.value.client_id
        if client_id is not None:
            credential = await self._credential(client_id, now_ms)
            if credential is None:
                client = await self._clients.find(client_id)
            else:
                client = credential_client(credential.credential_id, credential.secret_hash)
                account_id = account_id or credential.account_id
        if account_id is not None:
            account = await self._account(account_id, now_ms)
        return Facts(client, credential, code, refresh_token, grant, account)

    async def _credential(self, client_id: str, now_ms: int) -> ClientCredential | None:
        kept = await CREDENTIALS.read(self._store, client_id, now_ms=now_ms)
        return None if kept is None else kept.value

    async def _account(self, account_id: str, now_ms: int) -> Account | None:
        kept = await ACCOUNTS.read(self._store, account_id, now_ms=now_ms)
        return None if kept is None else kept.value


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


def _by_token(facts: Facts) -> PresentedClient | None:
    """A client without a secret that refreshes may leave out its name (A-66)."""
    client = facts.client
    return None if client is None else PresentedClient(client.client_id)


def _secret(form: Mapping[str, Sequence[str]], grant_type: str, name: str) -> str | None:
    if list(form.get("grant_type", ())) != [grant_type]:
        return None
    return next(iter(form.get(name, ())), None)
