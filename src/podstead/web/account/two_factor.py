"""``/idp/account/two-factor``: people add and remove what they need besides the password.

Each change requires a recent sign-in, which itself took the second factor where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from podstead.idp.sessions import OpenSession
from podstead.idp.two_factor.service import TwoFactors, WrongCode
from podstead.web.browsers import json_response
from podstead.web.pages.addresses import SECURITY, TWO_FACTOR
from podstead.web.pages.cookies import Notice
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

REMOVE_PATH: Final = f"{TWO_FACTOR}/remove"
CODES_PATH: Final = f"{TWO_FACTOR}/recovery-codes"
PASSKEY_FACTOR_PATH: Final = f"{TWO_FACTOR}/passkey"


@dataclass(frozen=True, slots=True)
class TwoFactorPages:
    """Shows the page for an authenticator app, and changes second factors."""

    site: Site
    two_factors: TwoFactors

    @route(TWO_FACTOR, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page with a new secret, for an app. Raises NotAuthenticated, SignInAgain."""
        owner = self._recent(page)
        return self._app_page(page, owner, self.two_factors.new_secret())

    @route(TWO_FACTOR, "POST")
    async def add_app(self, page: PageRequest) -> Response:
        """Store the app whose code was typed. Raises NotAuthenticated, WrongFormToken, SignInAgain,
        BadRequest."""
        sent = await page.submission()
        owner = self._recent(page)
        secret = sent.text("secret")
        try:
            codes = await self.two_factors.add_app(
                owner.owner, secret, sent.text("code"), page.source, replacing=True
            )
        except WrongCode:
            if not page.wants_page:
                raise
            return self._app_page(page, owner, secret, wrong=True)
        return self._changed(page, "totp-added", codes)

    @route(REMOVE_PATH, "POST")
    async def remove_app(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, SecondFactorDemanded."""
        await page.submission()
        owner = self._recent(page)
        await self.two_factors.remove_app(owner.owner, page.source)
        return self._changed(page, "totp-removed")

    @route(CODES_PATH, "POST")
    async def renew_codes(self, page: PageRequest) -> Response:
        """New recovery codes. Raises NotAuthenticated, WrongFormToken, SignInAgain."""
        await page.submission()
        owner = self._recent(page)
        codes = await self.two_factors.renew_codes(owner.owner, page.source)
        return self._changed(page, "codes-renewed", codes)

    @route(PASSKEY_FACTOR_PATH, "POST")
    async def require_passkey(self, page: PageRequest) -> Response:
        """Ask for a passkey besides the password, or no longer. Raises NotAuthenticated,
        WrongFormToken, SignInAgain, BadRequest without a passkey."""
        sent = await page.submission()
        owner = self._recent(page)
        required = sent.ticked("required")
        codes = await self.two_factors.require_passkey(owner.owner, page.source, required=required)
        name = "passkey-required" if required else "passkey-not-required"
        return self._changed(page, name, codes)

    # --- parts --------------------------------------------------------------------------------

    def _recent(self, page: PageRequest) -> OpenSession:
        return page.recent_owner("two-factor")

    def _app_page(
        self,
        page: PageRequest,
        owner: OpenSession,
        secret: str,
        *,
        wrong: bool = False,
    ) -> Response:
        back = page.back
        return self.site.account_page(
            page,
            "account/authenticator_app.html",
            status=400 if wrong else 200,
            action=TWO_FACTOR if back is None else f"{TWO_FACTOR}?next={quote(back)}",
            afterwards=page.back or SECURITY,
            secret=secret,
            picture=self.two_factors.picture(
                secret, owner.account, server_name=self.site.renderer.server_name
            ),
            wrong=wrong,
        )

    def _changed(
        self,
        page: PageRequest,
        flash_message: str,
        codes: Sequence[str] = (),
    ) -> Response:
        back = page.back or SECURITY
        if not page.wants_page:
            return json_response(200, {"recoveryCodes": list(codes)} if codes else {})
        if codes:
            return self.site.account_page(
                page, "account/recovery_codes.html", codes=codes, afterwards=back
            )
        return self.site.see_other(back, Notice(flash_message))
