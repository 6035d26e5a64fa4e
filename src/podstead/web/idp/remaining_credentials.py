"""Which credentials remain valid after a change of the password, and how is each removed?

A new password ends sessions and grants. Everything else that proves a person's identity stays valid
until it is removed individually.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podstead.authn.web_ids import UnusableDocument
from podstead.idp.certificates import CertificateKeys
from podstead.idp.credentials import ClientCredentials, PodTokens
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.records import Account
from podstead.nostr.npub import npub
from podstead.web.idp.certificate_pages import CERTIFICATES_PATH
from podstead.web.idp.nostr_key_endpoints import KEYS_PATH
from podstead.web.idp.passkey_pages import PASSKEYS_PATH
from podstead.web.idp.pod_token_pages import POD_TOKENS_PATH
from podstead.web.idp.profile_key_endpoints import PROFILE_KEYS_PATH, ProfileKeyEndpoints
from podstead.web.idp.self_service import CREDENTIALS_PATH


@dataclass(frozen=True, slots=True)
class RemainingCredential:
    """A credential that acts as the person without the password."""

    kind: str
    name: str
    ended_at: str | None
    """The path of the form that removes it; ``None`` if only a change of the profile does."""


@dataclass(frozen=True, slots=True)
class RemainingCredentials:
    """Lists the credentials. Services that the server does not have are ``None``."""

    credentials: ClientCredentials
    tokens: PodTokens
    passkeys: Passkeys | None
    links: NostrLinks | None
    profile_keys: ProfileKeyEndpoints | None
    certificates: CertificateKeys | None

    async def of(self, account: Account) -> Sequence[RemainingCredential]:
        """The remaining credentials of an account. Raises StorageError."""
        parts: Sequence[Callable[[Account], Awaitable[Sequence[RemainingCredential]]]] = (
            self._passkeys,
            self._nostr_keys,
            self._profile_keys,
            self._certificates,
            self._credentials,
            self._tokens,
        )
        return [each for part in parts for each in await part(account)]

    async def _passkeys(self, account: Account) -> Sequence[RemainingCredential]:
        if self.passkeys is None:
            return ()
        return [
            RemainingCredential("Passkey", each.value.name, f"{PASSKEYS_PATH}/{each.key}")
            for each in await self.passkeys.of_account(account.account_id)
        ]

    async def _nostr_keys(self, account: Account) -> Sequence[RemainingCredential]:
        if self.links is None:
            return ()
        return [
            RemainingCredential("Nostr key", npub(each.key), f"{KEYS_PATH}/{each.key}")
            for each in await self.links.of_account(account.account_id)
        ]

    async def _profile_keys(self, account: Account) -> Sequence[RemainingCredential]:
        if self.profile_keys is None:
            return ()
        return [
            RemainingCredential(
                "Nostr key of your profile",
                npub(each.public_key),
                None if each.allowed_s is None else f"{PROFILE_KEYS_PATH}/{each.public_key}",
            )
            for each in await self.profile_keys.if_readable(account) or ()
        ]

    async def _certificates(self, account: Account) -> Sequence[RemainingCredential]:
        if self.certificates is None:
            return ()
        try:
            keys = await self.certificates.of(account)
        except UnusableDocument:  # then no certificate is accepted, either
            return ()
        return [
            RemainingCredential("Client certificate", each.mark, f"{CERTIFICATES_PATH}/{each.mark}")
            for each in keys
        ]

    async def _credentials(self, account: Account) -> Sequence[RemainingCredential]:
        return [
            RemainingCredential(
                "Client credentials",
                each.name or each.credential_id,
                f"{CREDENTIALS_PATH}/{each.credential_id}",
            )
            for each in await self.credentials.of(account.account_id)
        ]

    async def _tokens(self, account: Account) -> Sequence[RemainingCredential]:
        return [
            RemainingCredential(
                "Token of your pod", each.token_id, f"{POD_TOKENS_PATH}/{each.token_id}"
            )
            for each in await self.tokens.of(account)
        ]
