"""``/idp/account/issuer``: whether the profile names this provider, and adding it again."""

from __future__ import annotations

from typing import Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.errors import Conflict
from podstead.idp.sessions import Sessions
from podstead.idp.token_issuing import IssuerRestoration, ProfileIssuer
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import ACCOUNT, SECURITY
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

ISSUER_PATH: Final = f"{ACCOUNT}/issuer"


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
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, Conflict if the profile cannot be read."""
        try:
            named = await self._profile_issuer.is_named_by(page.owner().account.web_id)
        except UnusableDocument as error:
            raise Conflict(WebCodes.OWN_PROFILE_UNREADABLE) from error
        return json_response(200, {"issuer": self._profile_issuer.issuer, "named": named})

    @route(ISSUER_PATH, "POST", is_page=False)
    async def restore(self, page: PageRequest) -> Response:
        """Requires a recent sign-in: afterwards tokens of this provider are accepted again.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, and what changing the profile raises.
        """
        await page.submission()
        owner = page.recent_owner("issuer")
        await self._restoration.restore(owner.account)
        if page.wants_page:
            return see_other(
                page.back or SECURITY,
                self._cookies.set_notice(Notice("issuer-restored")),
            )
        return json_response(204, None)
