"""Answers token requests: reads the facts, decides, commits, and only then responds (A-62 ff.).

A code or a refresh token is used up in the write that its tokens depend on. If two requests use one
at the same time, the second finds it used, and everything that resulted from it becomes invalid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podstead.idp.audit import Audit
from podstead.idp.client_authentication import PresentedClient, UnreadableClient, presented_client
from podstead.idp.clients import ClientDirectory
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
from podstead.idp.token_minting import TokenIssuer
from podstead.storage.record_store import Changes, RecordStore, secret_key


class TokenService:
    """Answers token requests."""

    def __init__(
        self,
        *,
        issuer: str,
        records: RecordStore,
        clients: ClientDirectory,
        keys: ProviderKeys,
        audit: Audit,
    ) -> None:
        self._issuer = issuer
        self._records = records
        self._clients = clients
        self._keys = keys
        self._audit = audit

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
            now_s = self._records.now_s()
            randomness = self._records.randomness
            mint = TokenIssuer(self._issuer, await self._keys.current(), randomness, now_s)
            facts = await self._facts(form, presented)
            request = TokenRequest(form, presented or _by_token(facts), jkt, now_s)
            exchange = TokenExchange(request, facts, mint)
            answer = exchange.respond()
            return Changes((exchange, answer), exchange.records, exchange.preconditions)

        exchange, answer = await self._records.transact(compute)
        for event, grant in exchange.events:
            self._audit.note(event, account_id=grant.account_id, client_id=grant.client_id)
        return answer

    async def client(self, client_id: str) -> Client | None:
        """The client with this id, which may also be the id of client credentials."""
        credential = await self._credential(client_id)
        if credential is None:
            return await self._clients.find(client_id)
        return credential_client(credential.credential_id, credential.secret_hash)

    async def _facts(self, form: Parameters, presented: PresentedClient | None) -> Facts:
        """The stored records of the code, token and client in the request. If it contains both a
        code and a refresh token, only the one that its grant type requires is read."""
        code = refresh_token = grant = credential = client = account = None
        account_id: str | None = None
        if (secret := _secret(form, "authorization_code", "code")) is not None:
            code = await self._records.read(CODES, secret_key(secret))
        elif (secret := _secret(form, "refresh_token", "refresh_token")) is not None:
            refresh_token = await self._records.read(REFRESH_TOKENS, secret_key(secret))
        named = refresh_token or code
        if named is not None:
            grant = await self._records.read(GRANTS, named.value.grant_id)
            account_id = None if grant is None else grant.value.account_id
        client_id = None if presented is None else presented.client_id
        if client_id is None and refresh_token is not None:
            client_id = refresh_token.value.client_id
        if client_id is not None:
            credential = await self._credential(client_id)
            if credential is None:
                client = await self._clients.find(client_id)
            else:
                client = credential_client(credential.credential_id, credential.secret_hash)
                account_id = account_id or credential.account_id
        if account_id is not None:
            account = await self._account(account_id)
        return Facts(client, credential, code, refresh_token, grant, account)

    async def _credential(self, client_id: str) -> ClientCredential | None:
        stored = await self._records.read(CREDENTIALS, client_id)
        return None if stored is None else stored.value

    async def _account(self, account_id: str) -> Account | None:
        stored = await self._records.read(ACCOUNTS, account_id)
        return None if stored is None else stored.value


def credential_client(credential_id: str, secret_hash: str) -> Client:
    """The client that client credentials stand for (A-67)."""
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
    """A client without a secret may omit its id when it refreshes (A-66)."""
    client = facts.client
    return None if client is None else PresentedClient(client.client_id)


def _secret(form: Mapping[str, Sequence[str]], grant_type: str, name: str) -> str | None:
    if list(form.get("grant_type", ())) != [grant_type]:
        return None
    return next(iter(form.get(name, ())), None)
