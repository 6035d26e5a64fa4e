"""Signs in with a Nostr key (A-125, A-130).

A linked key counts like any other factor of the account, since its holder has proven to hold it. A
key that only a profile names signs in if the owner of the account allowed it
(:mod:`podstead.idp.nostr.allowed_keys`), and is a weaker factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.idp.accounts import Accounts
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.events import KeyProof
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.records import MAX_EMAIL_CHARACTERS, Account
from podstead.idp.sign_in import AccountDisabled
from podstead.storage.record_store import Changes, RecordStore, Versioned

FACTOR: Final = "nostr"


class KeyUnknown(AccessDenied):
    """The key cannot sign in to any account here. Only the holder of the key gets this error."""

    known_text = "No account linked"

    def __init__(self) -> None:
        super().__init__(
            "No account here has this key. If you have an account, sign in to it in another way, "
            "and link the key there"
        )


class KeyNotEnough(AccessDenied):
    """The key can sign in, but is not sufficient to change how people sign in to the account
    (A-130)."""

    known_text = "Key not linked"

    def __init__(self) -> None:
        super().__init__(
            "Only your profile names this key, which is not enough here: use your password, a "
            "passkey, or a key that is linked to your account"
        )


@dataclass(frozen=True, slots=True)
class SignedInByKey:
    """The account of a key, and the entry of the key (:mod:`podstead.idp.sessions`);
    ``restricted`` if only the account's profile names the key (A-130)."""

    account: Versioned[Account]
    sign_in_method: str
    restricted: bool


class NostrSignIn:
    """Signs in with keys whose possession was proven."""

    def __init__(
        self,
        *,
        links: NostrLinks,
        allowed: AllowedKeys,
        accounts: Accounts,
        records: RecordStore,
        audit: Audit,
    ) -> None:
        self._links = links
        self._allowed = allowed
        self._accounts = accounts
        self._records = records
        self._audit = audit

    async def sign_in(
        self, proof: KeyProof, *, name: str = "", only_linked: bool = False
    ) -> SignedInByKey:
        """The account that the holder of a proven key signs in to.

        ``name`` is the e-mail address or pod name that they typed, if any; a key that only a
        profile names is looked up in that account alone. Raises KeyUnknown, AccountDisabled,
        KeyNotEnough for a key that is not linked if ``only_linked``.
        """
        if await self._links.find(proof.public_key) is not None:
            return await self._by_link(proof.public_key)
        account = await self._accounts.find(name) if 0 < len(name) <= MAX_EMAIL_CHARACTERS else None
        allowed = (
            None if account is None else await self._allowed.find(account.value, proof.public_key)
        )
        if account is None or allowed is None:
            self.failed()
            raise KeyUnknown
        self._check_usable(account.value)
        if only_linked:
            self.failed(account.value.account_id)
            raise KeyNotEnough
        return self._signed_in(SignedInByKey(account, allowed.entry, restricted=True))

    def failed(self, account_id: str | None = None) -> None:
        """Record a failed sign-in with a key."""
        self._audit.note(AuditEvent.SIGN_IN_FAILED, account_id=account_id, factor=FACTOR)

    async def _by_link(self, public_key: str) -> SignedInByKey:
        async def compute() -> Changes[SignedInByKey]:
            link = await self._links.find(public_key)
            account = None if link is None else await self._accounts.read(link.value.account_id)
            if link is None or account is None:
                self.failed()
                raise KeyUnknown
            self._check_usable(account.value)
            use = self._links.use(link, account)
            signed_in = SignedInByKey(account, link.entry, restricted=False)
            return Changes(signed_in, use.records, use.preconditions)

        return self._signed_in(await self._records.transact(compute))

    def _check_usable(self, account: Account) -> None:
        if account.disabled:
            self.failed(account.account_id)
            raise AccountDisabled

    def _signed_in(self, signed_in: SignedInByKey) -> SignedInByKey:
        account_id = signed_in.account.value.account_id
        self._audit.note(AuditEvent.SIGNED_IN, account_id=account_id, factor=FACTOR)
        return signed_in
