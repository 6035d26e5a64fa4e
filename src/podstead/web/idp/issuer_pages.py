"""``/idp/account/issuer``: whether the profile names this provider, and adding it again."""

from __future__ import annotations

from typing import Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.errors import Conflict
from podstead.idp.sessions import Sessions
from podstead.idp.token_issuing import IssuerRestoration, ProfileIssuer
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.login_page import again_path
from podstead.web.idp.session_guard import ACCOUNT_PATH, BrowserRequest
from podstead.web.idp.step_up import check_recent
from podstead.web.response import Response
from podstead.web.routes import route

ISSUER_PATH: Final = f"{ACCOUNT_PATH}/issuer"


class IssuerPages:
    """Reports whether the statement exists, and restores it."""

    def __init__(
        self,
        *,
        profile_issuer: ProfileIssuer,
        restoration: IssuerRestoration,
        sessions: Sessions,
        cookies: Cookies,
    ) -> None:
        self._profile_issuer = profile_issuer
        self._restoration = restoration
        self._sessions = sessions
        self._cookies = cookies

    @route(ISSUER_PATH, "GET", is_page=False)
    async def get(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, Conflict if the profile cannot be read."""
        try:
            named = await self._profile_issuer.is_named_by(browser_request.owner().account.web_id)
        except UnusableDocument as error:
            raise Conflict(WebCodes.OWN_PROFILE_UNREADABLE) from error
        return json_response(200, {"issuer": self._profile_issuer.issuer, "named": named})

    @route(ISSUER_PATH, "POST", is_page=False)
    async def restore(self, browser_request: BrowserRequest) -> Response:
        """Requires a recent sign-in: afterwards tokens of this provider are accepted again.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, and what changing the profile raises.
        """
        await browser_request.submission()
        owner = browser_request.owner()
        check_recent(self._sessions, owner, again_at=again_path("issuer", browser_request.back))
        await self._restoration.restore(owner.account)
        if browser_request.wants_page:
            return see_other(
                browser_request.account_address,
                self._cookies.set_flash_message(FlashMessage("issuer-restored")),
            )
        return json_response(204, None)
