"""``/idp/account/profile-keys``: the Nostr keys that a profile names and that are not linked.

Such a key authenticates requests, but cannot sign in unless the owner allows it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import NotFound, ServerTrouble
from podstead.idp.codes import IdpCodes
from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.links import NostrLinks, did_of
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import Account
from podstead.idp.sessions import Sessions
from podstead.nostr.npub import npub
from podstead.storage.records import EntryId
from podstead.web.browsers import json_response, see_other
from podstead.web.idp.display import machine_time
from podstead.web.idp.removed_sign_in_methods import sign_in_method_removed
from podstead.web.pages.addresses import ACCOUNT, SECURITY
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

PROFILE_KEYS_PATH: Final = f"{ACCOUNT}/profile-keys"


@dataclass(frozen=True, slots=True)
class ListedProfileKey:
    """A key that is not linked: whether the profile names it, and since when it may sign in."""

    public_key: str
    is_stated: bool
    allowed_s: int | None
    sign_in_method: EntryId | None


class ProfileKeyEndpoints:
    """Lists the keys, and allows them to sign in, for the account page and for programs."""

    def __init__(
        self,
        *,
        stated: ProfileKeys,
        links: NostrLinks,
        allowed: AllowedKeys,
        sessions: Sessions,
        cookies: Cookies,
    ) -> None:
        self._stated = stated
        self._links = links
        self._allowed = allowed
        self._sessions = sessions
        self._cookies = cookies

    async def of(self, account: Account) -> Sequence[ListedProfileKey]:
        """The keys that are not linked to the account and that its profile names, or that may sign
        in while it does. Raises StorageError, Overloaded."""
        linked = {each.key for each in await self._links.of_account(account.account_id)}
        stated = await self._stated.keys_of(account)
        allowed = {
            each.value.public_key: each
            for each in await self._allowed.of_account(account.account_id)
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

    async def if_readable(self, account: Account) -> Sequence[ListedProfileKey] | None:
        """The same for the account page; ``None`` if the profile cannot be read, so that the rest
        of the page still works."""
        try:
            return await self.of(account)
        except ServerTrouble:
            return None

    @route(PROFILE_KEYS_PATH, "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError, Overloaded."""
        listed = await self.of(page.owner().account)
        return json_response(200, {"keys": [_as_json(each) for each in listed]})

    @route(PROFILE_KEYS_PATH + "/{key}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound, StorageError, Overloaded."""
        return json_response(200, _as_json(await self._named(page)))

    @route(PROFILE_KEYS_PATH, "POST", is_page=False)
    async def allow(self, page: PageRequest) -> Response:
        """Allow a key to sign in. Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound,
        Conflict, StorageError, Overloaded."""
        sent = await page.submission()
        owner = page.recent_owner("nostr")
        await self._allowed.allow(owner.owner, sent.text("key"), page.source)
        if page.wants_page:
            flash_message = Notice("profile-key-allowed")
            return see_other(page.back or SECURITY, self._cookies.set_notice(flash_message))
        return json_response(204, None)

    @route(PROFILE_KEYS_PATH + "/{key}", "POST", "DELETE", is_page=False)
    async def end(self, page: PageRequest) -> Response:
        """Withdraw the permission of a key. Raises NotAuthenticated, WrongFormToken, NotFound,
        StorageError, Overloaded."""
        await page.submission()
        account = page.owner().account
        key = await self._named(page)
        await self._allowed.end(account, key.public_key, page.source)
        return sign_in_method_removed(
            page,
            self._cookies,
            key.sign_in_method or "",
            flash_message="profile-key-ended",
        )

    async def _named(self, page: PageRequest) -> ListedProfileKey:
        for each in await self.of(page.owner().account):
            if each.public_key == page.segment:
                return each
        raise NotFound(IdpCodes.NO_SUCH_KEY)


def _as_json(key: ListedProfileKey) -> dict[str, object]:
    allowed_s = key.allowed_s
    return {
        "pubkey": key.public_key,
        "npub": npub(key.public_key),
        "did": did_of(key.public_key),
        "inProfile": key.is_stated,
        "signsInSince": None if allowed_s is None else machine_time(allowed_s),
    }
