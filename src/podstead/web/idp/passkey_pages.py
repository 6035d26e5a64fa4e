"""``/idp/account/passkeys``: a person views and changes their passkeys (A-124)."""

from __future__ import annotations

from typing import Final

from podstead.core.errors import NotFound
from podstead.idp.codes import IdpCodes
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.records import Passkey
from podstead.idp.sessions import Sessions
from podstead.idp.two_factor.service import TwoFactors
from podstead.storage.record_store import Versioned
from podstead.web.browsers import json_response, see_other
from podstead.web.idp.display import machine_time
from podstead.web.idp.removed_sign_in_methods import sign_in_method_removed
from podstead.web.pages.addresses import ACCOUNT, SECURITY
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

PASSKEYS_PATH: Final = f"{ACCOUNT}/passkeys"
_KEY_SEGMENT: Final = 4


class PasskeyPages:
    """Lists, renames and removes passkeys, for the forms of the account page and for programs."""

    def __init__(
        self,
        *,
        passkeys: Passkeys,
        sessions: Sessions,
        two_factors: TwoFactors,
        cookies: Cookies,
    ) -> None:
        self._passkeys = passkeys
        self._sessions = sessions
        self._two_factors = two_factors
        self._cookies = cookies

    @route(PASSKEYS_PATH, "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        stored = await self._passkeys.of_account(page.owner().account.account_id)
        return json_response(200, {"passkeys": [_as_json(each) for each in stored]})

    @route(PASSKEYS_PATH + "/{id}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        for each in await self._passkeys.of_account(page.owner().account.account_id):
            if each.key == page.segment:
                return json_response(200, _as_json(each))
        raise NotFound(IdpCodes.NO_SUCH_PASSKEY)

    @route(PASSKEYS_PATH + "/{id}", "PATCH", is_page=False)
    @route(PASSKEYS_PATH + "/{id}/name", "POST")
    async def rename(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, NotFound, BadRequest."""
        sent = await page.submission()
        account_id = page.owner().account.account_id
        key = page.path_segment(_KEY_SEGMENT)
        await self._passkeys.rename(account_id, key, sent.text("name"))
        return self._done(page, "passkey-renamed")

    @route(PASSKEYS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def remove(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound, Conflict."""
        await page.submission()
        owner = page.recent_owner("passkeys")
        key = page.path_segment(_KEY_SEGMENT)
        preconditions = await self._two_factors.passkey_removal(owner.account, key)
        method = await self._passkeys.remove(
            owner.owner, key, page.source, preconditions=preconditions
        )
        return sign_in_method_removed(page, self._cookies, method, flash_message="passkey-removed")

    def _done(self, page: PageRequest, flash_message: str) -> Response:
        if page.wants_page:
            return see_other(
                page.back or SECURITY,
                self._cookies.set_notice(Notice(flash_message)),
            )
        return json_response(204, None)


def _as_json(stored: Versioned[Passkey]) -> dict[str, object]:
    passkey = stored.value
    used_s, suspected_s = passkey.last_used_s, passkey.suspected_s
    return {
        "id": stored.key,
        "name": passkey.name,
        "created": machine_time(passkey.created_s),
        "lastUsed": None if used_s is None else machine_time(used_s),
        "synced": passkey.backup_eligible,
        "suspected": None if suspected_s is None else machine_time(suspected_s),
    }
