"""Is this the person of the account? Signing in with a Nostr key (A-125, A-130).

A key that is linked to an account is as good as any other factor of it. One that only the profile
names is a weaker one: whoever may write the profile could name their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import AccessDenied, Overloaded
from podstead.idp.audit import Audit, Event
from podstead.idp.nostr.events import Proof
from podstead.idp.nostr.finding import KeyAmbiguous, KeyOwner, KeyOwners
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.records import Account
from podstead.idp.sign_in import AccountDisabled
from podstead.storage.registry import Kept

FACTOR: Final = "nostr"
_ATTEMPTS: Final = 4


class KeyUnknown(AccessDenied):
    """The key is of no account here. Told to who holds the key only."""

    known_text = "No account linked"

    def __init__(self) -> None:
        super().__init__(
            "No account here has this key. If you have an account, sign in to it in another way, "
            "and link the key there"
        )


class KeyNotEnough(AccessDenied):
    """The key may sign in, yet not for changing how the account is signed in to (A-130)."""

    known_text = "Key not linked"

    def __init__(self) -> None:
        super().__init__(
            "Only your profile names this key, which is not enough here: use your password, a "
            "passkey, or a key that is linked to your account"
        )


@dataclass(frozen=True, slots=True)
class SignedInByKey:
    """The account that a key is of; ``restricted`` if only its profile says so (A-130)."""

    account: Kept[Account]
    restricted: bool


class NostrSignIn:
    """Signs in by keys that were proven."""

    def __init__(self, *, owners: KeyOwners, links: NostrLinks, audit: Audit) -> None:
        self._owners = owners
        self._links = links
        self._audit = audit

    async def sign_in(self, proof: Proof, *, only_linked: bool = False) -> SignedInByKey:
        """The account of the key that a proof is of.

        Raises KeyUnknown, KeyAmbiguous, AccountDisabled, KeyNotEnough for a key that only a profile
        names where ``only_linked`` will do, Overloaded, StorageError.
        """
        for _ in range(_ATTEMPTS):
            owner = await self._owner(proof.public_key)
            account = owner.account.value
            if account.disabled:
                self.failed(account.account_id)
                raise AccountDisabled
            if only_linked and owner.link is None:
                self.failed(account.account_id)
                raise KeyNotEnough
            if await self._note_use(owner):
                self._audit.note(Event.SIGNED_IN, account_id=account.account_id, factor=FACTOR)
                return SignedInByKey(owner.account, restricted=owner.link is None)
        raise Overloaded("The account is being changed elsewhere: try again")

    def failed(self, account_id: str | None = None) -> None:
        """Note that somebody could not sign in with a key."""
        self._audit.note(Event.SIGN_IN_FAILED, account_id=account_id, factor=FACTOR)

    async def _owner(self, public_key: str) -> KeyOwner:
        """Raises KeyUnknown, KeyAmbiguous."""
        try:
            owner = await self._owners.find(public_key)
        except KeyAmbiguous:
            self.failed()
            raise
        if owner is None:
            self.failed()
            raise KeyUnknown
        return owner

    async def _note_use(self, owner: KeyOwner) -> bool:
        """False if the account or its link has changed meanwhile."""
        return owner.link is None or await self._links.note_use(owner.link, owner.account)
