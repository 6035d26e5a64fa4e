"""``/idp/account/nostr`` and ``/idp/account/profile-keys``: a person's Nostr keys (A-128).

To link a key, a person signs in again and signs a challenge with the key. The script of the page
about security does so with the browser's extension (NIP-07); programs can do it, too. A key that
only the profile names authenticates requests, but cannot sign in unless the owner allows it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, NotFound, ServerTrouble
from podstead.idp.codes import IdpCodes
from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.challenges import LINKING
from podstead.idp.nostr.events import SignedEvents
from podstead.idp.nostr.links import NostrLinks, did_of
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import Account, NostrLink
from podstead.idp.sessions import OpenSession
from podstead.nostr.npub import npub
from podstead.storage.record_store import Versioned
from podstead.storage.records import EntryId
from podstead.web.browsers import json_response
from podstead.web.forms import FormSubmission, read_submission
from podstead.web.idp.collections import Collection, Removed
from podstead.web.idp.display import machine_time
from podstead.web.idp.request_limit import RequestLimit
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.cookies import Notice
from podstead.web.pages.request import PageRequest
from podstead.web.request import with_checked_content
from podstead.web.response import Response
from podstead.web.routes import route

KEYS_PATH: Final = f"{ACCOUNT}/nostr"


@dataclass(frozen=True)
class NostrKeyCollection(Collection[Versioned[NostrLink]]):
    """The keys that are linked to the account."""

    below = KEYS_PATH
    name = "keys"
    shown_as = "nostr_keys"
    missing = IdpCodes.NO_SUCH_KEY
    purpose = "nostr"
    credential = "Nostr key"

    links: NostrLinks
    stated: ProfileKeys
    events: SignedEvents
    limit: RequestLimit

    async def entries(self, owner: OpenSession) -> Sequence[Versioned[NostrLink]]:
        return await self.links.of_account(owner.account.account_id)

    def key(self, entry: Versioned[NostrLink]) -> str:
        return entry.key

    def title(self, entry: Versioned[NostrLink]) -> str:
        return npub(entry.key)

    def as_json(self, entry: Versioned[NostrLink]) -> dict[str, object]:
        link = entry.value
        used_s = link.last_used_s
        return {
            "pubkey": link.public_key,
            "npub": npub(link.public_key),
            "did": did_of(link.public_key),
            "published": link.published,
            "linked": machine_time(link.created_s),
            "lastUsed": None if used_s is None else machine_time(used_s),
        }

    @route("", "POST", is_page=False)
    async def link(self, page: PageRequest) -> Response:
        """Link the key that signed the request, and publish it unless the request says not to.

        Raises NotAuthenticated, SignInAgain, EventInvalid, ChallengeInvalid, BadRequest,
        RateLimited, and what :meth:`NostrLinks.link` raises.
        """
        await self.limit.count(page)
        owner = page.recent_owner()
        request = page.request
        proof = await self.events.verify_answer(
            request.fields.authorization,
            url=self.site.base_url + KEYS_PATH,
            purpose=LINKING,
            holder=owner.stored.key,
            account_id=owner.account.account_id,
            has_content=request.body.announced,
        )
        if proof.content_digest is not None:
            request = await with_checked_content(request, proof.content_digest)
        publish = _choice(await read_submission(request), "publish")
        link = await self.links.link(
            owner.owner, proof.public_key, source=page.source, publish=publish
        )
        body = {"pubkey": link.public_key, "did": did_of(link.public_key)}
        return json_response(201, body, self.site.cookies.set_notice(Notice("nostr-key-linked")))

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Unlink a key. Raises NotFound, LastFactor."""
        owner = page.owner()
        method = await self.links.unlink(owner.owner, key, source=page.source)
        if await self._is_stated(owner.account, key):
            return Removed("nostr-key-stated", method, {"inProfile": True})
        return Removed("nostr-key-unlinked", method)

    async def _is_stated(self, account: Account, public_key: str) -> bool:
        """Whether the profile may still name a key that was unlinked."""
        try:
            return await self.stated.states(account, public_key)
        except ServerTrouble:
            return True  # a profile that cannot be read may still name it


def _choice(sent: FormSubmission, name: str) -> bool:
    value = sent.fields.get(name, True)
    if not isinstance(value, bool):
        raise BadRequest(f"The field {name} must be true or false")
    return value


@dataclass(frozen=True, slots=True)
class ListedProfileKey:
    """A key that is not linked: whether the profile names it, and since when it may sign in."""

    public_key: str
    is_stated: bool
    allowed_s: int | None
    sign_in_method: EntryId | None


@dataclass(frozen=True)
class ProfileKeyCollection(Collection[ListedProfileKey]):
    """The keys that are not linked to the account and that its profile names, or that may sign in
    while it does."""

    below = f"{ACCOUNT}/profile-keys"
    name = "keys"
    shown_as = "profile_keys"
    missing = IdpCodes.NO_SUCH_KEY
    credential = "Nostr key of your profile"

    stated: ProfileKeys
    links: NostrLinks
    allowed: AllowedKeys

    async def entries(self, owner: OpenSession) -> Sequence[ListedProfileKey]:
        account = owner.account
        linked = {each.key for each in await self.links.of_account(account.account_id)}
        stated = await self.stated.keys_of(account)
        allowed = {
            each.value.public_key: each
            for each in await self.allowed.of_account(account.account_id)
        }
        keys = sorted((stated - linked) | allowed.keys())
        return [
            ListedProfileKey(
                key,
                is_stated=key in stated,
                allowed_s=allowed[key].value.created_s if key in allowed else None,
                sign_in_method=allowed[key].entry if key in allowed else None,
            )
            for key in keys
        ]

    async def shown(self, owner: OpenSession) -> object:
        try:
            return await self.entries(owner)
        except ServerTrouble:
            return None

    def key(self, entry: ListedProfileKey) -> str:
        return entry.public_key

    def title(self, entry: ListedProfileKey) -> str:
        return npub(entry.public_key)

    def may_remove(self, entry: ListedProfileKey) -> bool:
        return entry.allowed_s is not None

    def as_json(self, entry: ListedProfileKey) -> dict[str, object]:
        allowed_s = entry.allowed_s
        return {
            "pubkey": entry.public_key,
            "npub": npub(entry.public_key),
            "did": did_of(entry.public_key),
            "inProfile": entry.is_stated,
            "signsInSince": None if allowed_s is None else machine_time(allowed_s),
        }

    @route("", "POST", is_page=False)
    async def allow(self, page: PageRequest) -> Response:
        """Allow a key to sign in. Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound,
        Conflict, StorageError, Overloaded."""
        sent = await page.submission()
        owner = page.recent_owner("nostr")
        await self.allowed.allow(owner.owner, sent.text("key"), page.source)
        return self.site.done(page, "profile-key-allowed")

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Withdraw the permission of a key."""
        owner = page.owner()
        for each in await self.entries(owner):
            if each.public_key == key:
                await self.allowed.end(owner.account, key, page.source)
                return Removed("profile-key-ended", each.sign_in_method or "")
        raise NotFound(IdpCodes.NO_SUCH_KEY)
