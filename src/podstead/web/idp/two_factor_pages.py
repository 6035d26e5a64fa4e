"""``/idp/account/two-factor``: people add and remove what they need besides the password.

Each change requires a recent sign-in, which itself took the second factor where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from podstead.idp.sessions import OpenSession, Sessions
from podstead.idp.two_factor.service import TwoFactors, WrongCode
from podstead.web.browsers import json_response, see_other
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.login_page import TWO_FACTOR_PATH, again_path
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.session_guard import BrowserRequest
from podstead.web.idp.step_up import check_recent
from podstead.web.response import Response
from podstead.web.routes import route

REMOVE_PATH: Final = f"{TWO_FACTOR_PATH}/remove"
CODES_PATH: Final = f"{TWO_FACTOR_PATH}/recovery-codes"
PASSKEY_FACTOR_PATH: Final = f"{TWO_FACTOR_PATH}/passkey"


class TwoFactorPages:
    """Shows the page for an authenticator app, and changes second factors."""

    def __init__(
        self, *, two_factors: TwoFactors, sessions: Sessions, cookies: Cookies, renderer: Renderer
    ) -> None:
        self._two_factors = two_factors
        self._sessions = sessions
        self._cookies = cookies
        self._renderer = renderer

    @route(TWO_FACTOR_PATH, "GET")
    async def get(self, browser_request: BrowserRequest) -> Response:
        """The page with a new secret, for an app. Raises NotAuthenticated, SignInAgain."""
        owner = self._recent(browser_request)
        return self._app_page(browser_request, owner, self._two_factors.new_secret())

    @route(TWO_FACTOR_PATH, "POST")
    async def add_app(self, browser_request: BrowserRequest) -> Response:
        """Store the app whose code was typed. Raises NotAuthenticated, WrongFormToken, SignInAgain,
        BadRequest."""
        sent = await browser_request.submission()
        owner = self._recent(browser_request)
        secret = sent.text("secret")
        try:
            codes = await self._two_factors.add_app(
                owner.owner, secret, sent.text("code"), browser_request.source, replacing=True
            )
        except WrongCode:
            if not browser_request.wants_page:
                raise
            return self._app_page(browser_request, owner, secret, wrong=True)
        return self._changed(browser_request, owner, "totp-added", codes)

    @route(REMOVE_PATH, "POST")
    async def remove_app(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, SecondFactorDemanded."""
        await browser_request.submission()
        owner = self._recent(browser_request)
        await self._two_factors.remove_app(owner.owner, browser_request.source)
        return self._changed(browser_request, owner, "totp-removed")

    @route(CODES_PATH, "POST")
    async def renew_codes(self, browser_request: BrowserRequest) -> Response:
        """New recovery codes. Raises NotAuthenticated, WrongFormToken, SignInAgain."""
        await browser_request.submission()
        owner = self._recent(browser_request)
        codes = await self._two_factors.renew_codes(owner.owner, browser_request.source)
        return self._changed(browser_request, owner, "codes-renewed", codes)

    @route(PASSKEY_FACTOR_PATH, "POST")
    async def require_passkey(self, browser_request: BrowserRequest) -> Response:
        """Ask for a passkey besides the password, or no longer. Raises NotAuthenticated,
        WrongFormToken, SignInAgain, BadRequest without a passkey."""
        sent = await browser_request.submission()
        owner = self._recent(browser_request)
        required = sent.ticked("required")
        codes = await self._two_factors.require_passkey(
            owner.owner, browser_request.source, required=required
        )
        name = "passkey-required" if required else "passkey-not-required"
        return self._changed(browser_request, owner, name, codes)

    # --- parts --------------------------------------------------------------------------------

    def _recent(self, browser_request: BrowserRequest) -> OpenSession:
        owner = browser_request.owner()
        again = again_path("two-factor", browser_request.back)
        check_recent(self._sessions, owner, again_at=again)
        return owner

    def _app_page(
        self,
        browser_request: BrowserRequest,
        owner: OpenSession,
        secret: str,
        *,
        wrong: bool = False,
    ) -> Response:
        back = browser_request.back
        return self._renderer.page_of_person(
            "authenticator_app.html",
            owner,
            status=400 if wrong else 200,
            action=TWO_FACTOR_PATH if back is None else f"{TWO_FACTOR_PATH}?next={quote(back)}",
            afterwards=browser_request.account_address,
            secret=secret,
            picture=self._two_factors.picture(
                secret, owner.account, server_name=self._renderer.server_name
            ),
            wrong=wrong,
        )

    def _changed(
        self,
        browser_request: BrowserRequest,
        owner: OpenSession,
        flash_message: str,
        codes: Sequence[str] = (),
    ) -> Response:
        back = browser_request.account_address
        if not browser_request.wants_page:
            return json_response(200, {"recoveryCodes": list(codes)} if codes else {})
        if codes:
            return self._renderer.page_of_person(
                "recovery_codes.html", owner, codes=codes, afterwards=back
            )
        return see_other(back, self._cookies.set_flash_message(FlashMessage(flash_message)))
