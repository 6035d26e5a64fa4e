"""The services for the Nostr keys of accounts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.challenges import nostr_challenges
from podstead.idp.nostr.events import SignedEvents
from podstead.idp.nostr.key_owners import KeyOwners
from podstead.idp.nostr.linked import LinkedWebIds
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.nostr.proven_keys import ProvenKeys
from podstead.idp.nostr.sign_in import NostrSignIn

if TYPE_CHECKING:
    from podstead.app.provider import Provider


class NostrServices:
    """The services for keys, if the server accepts signed events."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._records, self._audit = provider.records, provider.audit
        self._accounts = provider.accounts.accounts
        self.challenges = nostr_challenges(self._records)
        self.proven = ProvenKeys(records=self._records, audit=self._audit)

    @cached_property
    def links(self) -> NostrLinks:
        return NostrLinks(
            records=self._records,
            profiles=self._provider.own_profiles,
            methods=self._provider.sign_in_methods,
            audit=self._audit,
        )

    @cached_property
    def stated(self) -> ProfileKeys:
        """The keys that profiles name."""
        services = self._provider.services
        return ProfileKeys(
            base_url=services.base_url,
            records=self._records,
            accounts=self._accounts,
            parse=services.parse,
        )

    @cached_property
    def allowed(self) -> AllowedKeys:
        return AllowedKeys(records=self._records, stated=self.stated, audit=self._audit)

    @cached_property
    def linked(self) -> LinkedWebIds:
        owners = KeyOwners(links=self.links, stated=self.stated, accounts=self._accounts)
        return LinkedWebIds(owners)

    @cached_property
    def events(self) -> SignedEvents:
        services = self._provider.services
        return SignedEvents(
            uses=services.event_uses, challenges=self.challenges, clock=services.clock
        )

    @cached_property
    def sign_in(self) -> NostrSignIn:
        return NostrSignIn(
            links=self.links,
            allowed=self.allowed,
            accounts=self._accounts,
            records=self._records,
            audit=self._audit,
        )
