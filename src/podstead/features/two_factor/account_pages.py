"""``/idp/account/two-factor``: people add and remove what they need besides the password.

Each change requires a recent sign-in, which itself took the second factor where there is one.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pyotp
import segno

from podstead.features import WorkerFeature
from podstead.features.two_factor import TwoFactorSettings
from podstead.features.two_factor.codes import STEP_S, TwoFactorEvents
from podstead.features.two_factor.second_step import CodeStep
from podstead.features.two_factor.service import TwoFactors, WrongCode
from podstead.features.two_factor.sign_in_pages import RECOVERY_PATH, RecoveryPage, SecondStepPages
from podstead.idp.sessions import OpenSession
from podstead.web.account import event_texts, security_page
from podstead.web.browsers import json_response
from podstead.web.pages.addresses import ACCOUNT, AGAIN, SECURITY
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.browser_sign_in import PasswordRecovery

if TYPE_CHECKING:
    from podstead.app.provider import Provider


class PyotpPasswords:
    """Implements :class:`podstead.features.two_factor.codes.OneTimePasswords`."""

    def code(self, secret: str, step: int) -> str:
        """The code of a time step."""
        return pyotp.TOTP(secret, interval=STEP_S).at(step * STEP_S)

    def address(self, secret: str, *, name: str, issuer: str) -> str:
        """The address that an app reads."""
        return pyotp.TOTP(secret, interval=STEP_S).provisioning_uri(name=name, issuer_name=issuer)

    def picture(self, address: str) -> str:
        """An SVG image, black on white in any colour scheme: apps read no other."""
        written = io.BytesIO()
        segno.make(address, error="m", micro=False).save(
            written,
            kind="svg",
            xmldecl=False,
            svgns=True,
            dark="#000",
            light="#fff",
            border=4,
            omitsize=True,
        )
        return written.getvalue().decode("ascii")


TWO_FACTOR: Final = f"{ACCOUNT}/two-factor"
REMOVE_PATH: Final = f"{TWO_FACTOR}/remove"
CODES_PATH: Final = f"{TWO_FACTOR}/recovery-codes"
PASSKEY_FACTOR_PATH: Final = f"{TWO_FACTOR}/passkey"

AGAIN["two-factor"] = TWO_FACTOR
add_flash_messages(
    Tone.DONE,
    second_factor_reset=N_("The second factor of %(subject)s has been reset."),
    totp_added=N_("The authenticator app has been added."),
    totp_removed=N_("The authenticator app has been removed."),
    passkey_required=N_("From now on, your password signs you in only together with a passkey."),
    passkey_not_required=N_("Your password alone signs you in again."),
)
event_texts.add_event_texts(
    {
        TwoFactorEvents.TOTP_ADDED: N_("Authenticator app added"),
        TwoFactorEvents.TOTP_REMOVED: N_("Authenticator app removed"),
        TwoFactorEvents.PASSKEY_REQUIRED: N_("Passkey required besides the password"),
        TwoFactorEvents.PASSKEY_NOT_REQUIRED: N_("Passkey no longer required besides the password"),
        TwoFactorEvents.RECOVERY_CODES_CREATED: N_("Recovery codes created"),
        TwoFactorEvents.RECOVERY_CODE_USED: N_("Recovery code used"),
        TwoFactorEvents.FAILED: N_("Second factor failed after the right password"),
        TwoFactorEvents.RESET: N_("Second factor reset"),
    }
)


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
            "two_factor/authenticator_app.html",
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
                page,
                "two_factor/recovery_codes.html",
                layout="pods/layout.html",
                codes=codes,
                afterwards=back,
            )
        return self.site.see_other(back, FlashMessage(flash_message))


class TwoFactorSection(security_page.SecuritySection):
    """What an account needs besides its password."""

    def __init__(self, two_factors: TwoFactors) -> None:
        super().__init__("pods/two_factor/section.html", comes_first=True)
        self._two_factors = two_factors

    async def facts(self, owner: OpenSession) -> Mapping[str, object]:
        return {"second_factors": await self._two_factors.of(owner.account.account_id)}


class RecoveryCodes(PasswordRecovery):
    """Recovery codes for a lost password."""

    address = RECOVERY_PATH
    title = N_("Use a recovery code")
    template = "pods/two_factor/welcome.html"

    def __init__(self, two_factors: TwoFactors) -> None:
        self._two_factors = two_factors

    async def facts(self, owner: OpenSession) -> Mapping[str, object]:
        return {"has_recovery_codes": await self.is_ready(owner)}

    async def is_ready(self, owner: OpenSession) -> bool:
        found = await self._two_factors.of(owner.account.account_id)
        return bool(found.record.recovery_hashes)


class TwoFactorInWorker(WorkerFeature):
    """Two-factor authentication at the identity provider of this server."""

    def __init__(self, provider: Provider) -> None:
        settings = provider.settings.of(TwoFactorSettings)
        self._provider = provider
        self._two_factors = TwoFactors(
            records=provider.records,
            methods=provider.sign_in_methods,
            passwords=PyotpPasswords(),
            audit=provider.audit,
            demanded=settings.require_two_factor,
        )
        self.second_step = self._step = CodeStep(
            records=provider.records,
            accounts=provider.accounts.accounts,
            two_factors=self._two_factors,
            attempts=provider.accounts.attempts,
            known_browsers=provider.accounts.known_browsers,
            audit=provider.audit,
        )
        self.security_sections = (TwoFactorSection(self._two_factors),)
        self.password_recovery = RecoveryCodes(self._two_factors)

    @cached_property
    def provider_pages(self) -> Sequence[object]:  # type: ignore[override]
        provider, pages, two_factors = self._provider, self._provider.pages, self._two_factors
        site, sign_in, accounts = pages.site, pages.sign_in, provider.accounts
        return (
            TwoFactorPages(site, two_factors),
            SecondStepPages(
                site, self._step, two_factors, provider.authorizations, sign_in, pages.forms
            ),
            RecoveryPage(
                site, accounts.accounts, two_factors, self._step, accounts.attempts, sign_in
            ),
        )
