"""``/idp/second-factor``: the second step of a sign-in with a password.

``/idp/second-factor/set-up`` is for people of whom the operator demands a second factor and who
have none yet. Both pages belong to the browser in which the password was typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.errors import NotAuthenticated
from podstead.idp import sign_in
from podstead.idp.authorizations import Authorizations
from podstead.idp.codes import IdpCodes
from podstead.idp.records import Account, PendingSecondFactor
from podstead.idp.two_factor.second_step import NoPendingSecondFactor, SecondStep
from podstead.idp.two_factor.service import TwoFactors, WrongCode, accepts_recovery_codes
from podstead.storage.record_store import Versioned
from podstead.web.browsers import json_response, see_other
from podstead.web.forms import read_submission
from podstead.web.idp.browser_sign_in import (
    SECOND_FACTOR_PATH,
    SET_UP_PATH,
    BrowserSignIn,
    SignedInHere,
)
from podstead.web.pages.addresses import LOGIN
from podstead.web.pages.cookies import Notice
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route


@dataclass(frozen=True, slots=True)
class SecondStepPages:
    """Shows the forms, and finishes sign-ins."""

    site: Site
    second_step: SecondStep
    two_factors: TwoFactors
    authorizations: Authorizations
    sign_in: BrowserSignIn
    passkeys: bool

    @route(SECOND_FACTOR_PATH, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form for a code. Without the password before, the browser is led to the sign-in."""
        try:
            half, account = await self.second_step.find(page.browser)
        except NoPendingSecondFactor:
            return self._from_the_start(page, "sign-in-first")
        found = await self.two_factors.of(account.value.account_id)
        if found.missing:
            return see_other(SET_UP_PATH)
        if not found.asked_for:  # an operator has reset it meanwhile
            return self._from_the_start(page, "sign-in-first")
        flash = page.notice
        return self.site.sign_in_page(
            page,
            "second_factor.html",
            form_targets=await self._form_targets(page, half.value),
            wrong=flash is not None and flash.name == "wrong-code",
            account=account.value,
            has_app=found.record.totp_secret is not None,
            has_recovery_codes=accepts_recovery_codes(found.record, account.value),
            passkeys=self.passkeys and found.has_passkeys,
            uid=half.value.uid,
            afterwards="" if half.value.uid else half.value.path,
        )

    @route(SECOND_FACTOR_PATH, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Accept a code. Raises RateLimited, WrongCode for programs, NoPendingSecondFactor."""
        sent = await read_submission(page.request)
        recovery = sent.text("recovery")
        try:
            half, account = await self.second_step.verify(
                page.browser,
                recovery or sent.text("code"),
                recovery=bool(recovery),
                marks=self.site.cookies.marks(page.request),
                source=page.source,
            )
        except WrongCode as error:
            return await self._wrong(page, error)
        except NoPendingSecondFactor:
            if not page.wants_page:
                raise
            return self._from_the_start(page, "sign-in-first")
        signed_in = await self._begin(page, half, account)
        return self.sign_in.succeeded(page, signed_in, path=half.path)

    @route(SET_UP_PATH, "GET")
    async def set_up(self, page: PageRequest) -> Response:
        """The page on which a person adds an authenticator app during the sign-in."""
        try:
            _half, account = await self.second_step.find(page.browser)
        except NoPendingSecondFactor:
            return self._from_the_start(page, "sign-in-first")
        if not (await self.two_factors.of(account.value.account_id)).missing:
            return see_other(SECOND_FACTOR_PATH)
        return self._set_up_page(page, account.value, self.two_factors.new_secret())

    @route(SET_UP_PATH, "POST")
    async def finish_set_up(self, page: PageRequest) -> Response:
        """Store the app, and finish the sign-in. Raises NoPendingSecondFactor, NotAuthenticated."""
        sent = await read_submission(page.request)
        half, account = await self.second_step.find(page.browser)
        if not (await self.two_factors.of(account.value.account_id)).missing:
            raise NotAuthenticated(IdpCodes.SECOND_FACTOR_EXISTS)
        secret = sent.text("secret")
        try:
            codes = await self.two_factors.add_app(
                account, secret, sent.text("code"), page.source, replacing=False
            )
        except WrongCode:
            return self._set_up_page(page, account.value, secret, wrong=True)
        await self.second_step.end(half)
        signed_in = await self._begin(page, half.value, account)
        return self._codes_page(page, codes, half.value.path, signed_in)

    # --- parts --------------------------------------------------------------------------------

    async def _begin(
        self, page: PageRequest, half: PendingSecondFactor, account: Versioned[Account]
    ) -> SignedInHere:
        signed_in = await self.sign_in.begin(
            page,
            account,
            lasting=half.lasting,
            amr=sign_in.PASSWORD_AND_CODE,
            common_password=half.common_password,
        )
        if half.uid:
            pending = await self.authorizations.pending(half.uid, browser=page.browser)
            await self.authorizations.signed_in(pending, signed_in.session)
        return signed_in

    async def _wrong(self, page: PageRequest, error: WrongCode) -> Response:
        try:
            await self.second_step.find(page.browser)
        except NoPendingSecondFactor:
            path, name = LOGIN, "too-many-codes"
        else:
            path, name = SECOND_FACTOR_PATH, "wrong-code"
        if page.wants_page:
            return self.site.see_other(path, Notice(name))
        body = {
            "error": "invalid_grant",
            "error_description": str(error),
            "location": self.site.base_url + path,
        }
        return json_response(401, body)

    async def _form_targets(self, page: PageRequest, half: PendingSecondFactor) -> Sequence[str]:
        """Where the browser may be led after the form: to the application of the interaction."""
        if not half.uid:
            return ()
        pending = await self.authorizations.pending(half.uid, browser=page.browser)
        return (pending.interaction.request.redirect_uri,)

    def _from_the_start(self, page: PageRequest, name: str) -> Response:
        if page.open_session is not None:
            return see_other(LOGIN)
        return self.site.see_other(LOGIN, Notice(name))

    def _set_up_page(
        self, page: PageRequest, account: Account, secret: str, *, wrong: bool = False
    ) -> Response:
        return self.site.sign_in_page(
            page,
            "set_up_second_factor.html",
            status=400 if wrong else 200,
            account=account,
            secret=secret,
            picture=self.two_factors.picture(
                secret, account, server_name=self.site.renderer.server_name
            ),
            wrong=wrong,
        )

    def _codes_page(
        self, page: PageRequest, codes: Sequence[str], path: str, signed_in: SignedInHere
    ) -> Response:
        if not codes:
            return see_other(path, *signed_in.cookies)
        return self.site.sign_in_page(
            page, "recovery_codes.html", codes=codes, afterwards=path, headers=signed_in.cookies
        )
