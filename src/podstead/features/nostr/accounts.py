"""The Nostr keys of accounts in a worker of the identity provider: services, forms and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from podstead.features.nostr import pages as nostr_pages
from podstead.features.nostr.keys import npub
from podstead.features.nostr.links import NostrLinks, ProofGone, ProvenKeys
from podstead.features.nostr.profile_keys import AllowedKeys, KeyOwners, ProfileKeys
from podstead.features.nostr.sign_in import NostrSignIn, SignedEvents, nostr_challenges
from podstead.features.nostr.worker import NostrInWorker
from podstead.idp.account_creation import FurtherRecords
from podstead.idp.records import Account
from podstead.idp.sessions import OpenSession
from podstead.web.account import collections, security_page
from podstead.web.forms import FormSubmission
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import N_
from podstead.web.routes import Route, plain_routes
from podstead.web.sign_in.browser_sign_in import RequestLimit, SignInForm
from podstead.web.sign_in.registration import RegistrationPart

if TYPE_CHECKING:
    from podstead.app.provider import Provider
    from podstead.app.services import Services


class NostrForm(SignInForm):
    """The button on the sign-in form."""

    template = "pods/nostr/sign_in.html"
    is_folded = True

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        """That of the addresses that events are signed for."""


class KeySection(security_page.SecuritySection):
    """The keys on the page about security."""

    async def facts(self, owner: OpenSession) -> Mapping[str, object]:  # noqa: ARG002
        return {"npub": npub}


class ProvenKeyPart(RegistrationPart):
    """Offers to link the key that the browser has proven to hold to the new account (A-131)."""

    template = "pods/nostr/registration.html"
    remedy = N_("You can create the account without the key.")

    def __init__(self, proven: ProvenKeys) -> None:
        self._proven = proven

    async def facts(self, page: PageRequest, sent: FormSubmission) -> Mapping[str, object]:
        proven = await self._proven.of(page.browser)
        return {
            "nostr_key": None if proven is None else proven.value.public_key,
            "npub": npub,
            # If the box was unticked, it stays so when the form is shown again.
            "link_nostr_key": not sent.fields or bool(sent.text("nostrKey")),
        }

    async def joined(
        self, page: PageRequest, sent: FormSubmission
    ) -> Callable[[Account], FurtherRecords] | None:
        wanted = sent.text("nostrKey")
        if not wanted:
            return None
        proven = await self._proven.of(page.browser)
        if proven is None or proven.value.public_key != wanted:
            raise ProofGone
        return partial(self._proven.joined, proven, page.source)

    def created(self, sent: FormSubmission, account: Account) -> None:
        public_key = sent.text("nostrKey")
        if public_key:
            self._proven.linked(public_key, account)


class NostrWithAccounts(NostrInWorker):
    """Verifies signed requests, and has the keys of accounts."""

    security_sections = (KeySection("pods/nostr/section.html", script="nostr.js"),)

    def __init__(self, services: Services, provider: Provider) -> None:
        super().__init__(services)
        self._provider = provider
        self._records, self._audit = provider.records, provider.audit
        self._accounts = provider.accounts.accounts
        self._challenges = nostr_challenges(self._records)
        self._proven = ProvenKeys(records=self._records, audit=self._audit)
        self.sign_in_forms = (NostrForm(provider.issuer),)
        self.registration_part = ProvenKeyPart(self._proven)

    @cached_property
    def _links(self) -> NostrLinks:
        return NostrLinks(
            records=self._records,
            profiles=self._provider.own_profiles,
            methods=self._provider.sign_in_methods,
            audit=self._audit,
        )

    @cached_property
    def _stated(self) -> ProfileKeys:
        """The keys that profiles name."""
        return ProfileKeys(
            base_url=self.services.base_url,
            records=self._records,
            accounts=self._accounts,
            parse=self.services.parse,
        )

    @cached_property
    def _allowed(self) -> AllowedKeys:
        return AllowedKeys(records=self._records, stated=self._stated, audit=self._audit)

    @cached_property
    def linked(self) -> KeyOwners:
        """The accounts that requests signed with keys act as."""
        return KeyOwners(links=self._links, stated=self._stated, accounts=self._accounts)

    @cached_property
    def _events(self) -> SignedEvents:
        return SignedEvents(uses=self.uses, challenges=self._challenges, clock=self.services.clock)

    @cached_property
    def _limit(self) -> RequestLimit:
        return self._provider.pages.limit("nostr", nostr_pages.REQUESTS_PER_MINUTE)

    @cached_property
    def account_collections(self) -> Sequence[collections.Collection[Any]]:  # type: ignore[override]
        site = self._provider.pages.site
        return (
            nostr_pages.NostrKeyCollection(
                site, self._links, self._stated, self._events, self._limit
            ),
            nostr_pages.ProfileKeyCollection(site, self._stated, self._links, self._allowed),
        )

    @cached_property
    def provider_pages(self) -> Sequence[object]:  # type: ignore[override]
        pages = self._provider.pages
        sign_in = NostrSignIn(
            links=self._links,
            allowed=self._allowed,
            accounts=self._accounts,
            records=self._records,
            audit=self._audit,
        )
        return (
            nostr_pages.NostrSignInEndpoints(
                pages.site,
                self._events,
                sign_in,
                self._proven,
                self._provider.authorizations,
                pages.sign_in,
                pages.verified_sign_in,
                self._challenges,
                self._limit,
            ),
        )

    @cached_property
    def provider_routes(self) -> Sequence[Route]:  # type: ignore[override]
        return plain_routes(
            nostr_pages.DidDocumentEndpoint(links=self._links, accounts=self._accounts)
        )
