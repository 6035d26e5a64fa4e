"""The second step after a password (``/idp/second-factor``), and ``/idp/recover`` for a lost one.

The pages of the second step belong to the browser in which the password was typed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import NotAuthenticated, RequestRefused
from podstead.features.two_factor import second_step as sign_in_step
from podstead.features.two_factor.codes import PendingSecondFactor, TwoFactorCodes
from podstead.features.two_factor.service import TwoFactors, WrongCode, accepts_recovery_codes
from podstead.idp import sign_in
from podstead.idp.accounts import Accounts
from podstead.idp.authorizations import Authorizations
from podstead.idp.passwords import UnusablePassword, check_password, is_common
from podstead.idp.records import MAX_EMAIL_CHARACTERS, Account, name_key
from podstead.idp.sign_in import Attempts, attempt_at
from podstead.storage.record_store import Versioned
from podstead.web.browsers import json_response, see_other
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, PasswordsDiffer, read_submission
from podstead.web.pages.addresses import ACCOUNT, LOGIN
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages, add_refusals
from podstead.web.pages.rendering import refusal_message, refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in import browser_sign_in

add_flash_messages(
    Tone.PROBLEM,
    too_many_codes=N_("Too many wrong codes. Type your password again."),
)
add_refusals(TwoFactorCodes.WRONG_CODE)


@dataclass(frozen=True, slots=True)
class SecondStepPages:
    """Shows the forms, and finishes sign-ins."""

    site: Site
    second_step: sign_in_step.CodeStep
    two_factors: TwoFactors
    authorizations: Authorizations
    sign_in: browser_sign_in.BrowserSignIn
    forms: Sequence[browser_sign_in.SignInForm]

    @route(sign_in_step.SECOND_FACTOR_PATH, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form for a code. Without the password before, the browser is led to the sign-in."""
        try:
            half, account = await self.second_step.find(page.browser)
        except sign_in_step.NoPendingSecondFactor:
            return self._from_the_start(page, "sign-in-first")
        found = await self.two_factors.of(account.value.account_id)
        if found.missing:
            return see_other(sign_in_step.SET_UP_PATH)
        if not found.asked_for:  # an operator has reset it meanwhile
            return self._from_the_start(page, "sign-in-first")
        flash = page.flash_message
        return self.site.sign_in_page(
            page,
            "two_factor/second_factor.html",
            form_targets=await self._form_targets(page, half.value),
            wrong=flash is not None and flash.name == TwoFactorCodes.WRONG_CODE.name,
            account=account.value,
            has_app=found.record.totp_secret is not None,
            has_recovery_codes=accepts_recovery_codes(found.record, account.value),
            forms=[each for each in self.forms if each.is_second_factor and found.has_passkeys],
            second_step=True,
            uid=half.value.uid,
            afterwards="" if half.value.uid else half.value.path,
        )

    @route(sign_in_step.SECOND_FACTOR_PATH, "POST")
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
        except sign_in_step.NoPendingSecondFactor:
            if not page.wants_page:
                raise
            return self._from_the_start(page, "sign-in-first")
        signed_in = await self._begin(page, half, account)
        return self.sign_in.succeeded(page, signed_in, path=half.path)

    @route(sign_in_step.SET_UP_PATH, "GET")
    async def set_up(self, page: PageRequest) -> Response:
        """The page on which a person adds an authenticator app during the sign-in."""
        try:
            _half, account = await self.second_step.find(page.browser)
        except sign_in_step.NoPendingSecondFactor:
            return self._from_the_start(page, "sign-in-first")
        if not (await self.two_factors.of(account.value.account_id)).missing:
            return see_other(sign_in_step.SECOND_FACTOR_PATH)
        return self._set_up_page(page, account.value, self.two_factors.new_secret())

    @route(sign_in_step.SET_UP_PATH, "POST")
    async def finish_set_up(self, page: PageRequest) -> Response:
        """Store the app, and finish the sign-in. Raises NoPendingSecondFactor, NotAuthenticated."""
        sent = await read_submission(page.request)
        half, account = await self.second_step.find(page.browser)
        if not (await self.two_factors.of(account.value.account_id)).missing:
            raise NotAuthenticated(TwoFactorCodes.SECOND_FACTOR_EXISTS)
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
    ) -> browser_sign_in.SignedInHere:
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
        except sign_in_step.NoPendingSecondFactor:
            path, notice = LOGIN, FlashMessage("too-many-codes")
        else:
            path, notice = sign_in_step.SECOND_FACTOR_PATH, refusal_message(error)
        if page.wants_page:
            return self.site.see_other(path, notice)
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
        return self.site.see_other(LOGIN, FlashMessage(name))

    def _set_up_page(
        self, page: PageRequest, account: Account, secret: str, *, wrong: bool = False
    ) -> Response:
        return self.site.sign_in_page(
            page,
            "two_factor/set_up_second_factor.html",
            status=400 if wrong else 200,
            account=account,
            secret=secret,
            picture=self.two_factors.picture(
                secret, account, server_name=self.site.renderer.server_name
            ),
            wrong=wrong,
        )

    def _codes_page(
        self,
        page: PageRequest,
        codes: Sequence[str],
        path: str,
        signed_in: browser_sign_in.SignedInHere,
    ) -> Response:
        if not codes:
            return see_other(path, *signed_in.cookies)
        return self.site.sign_in_page(
            page,
            "two_factor/recovery_codes.html",
            layout="pods/sign_in/page.html",
            codes=codes,
            afterwards=path,
            headers=signed_in.cookies,
        )


RECOVERY_PATH: Final = "/idp/recover"


@dataclass(frozen=True, slots=True)
class RecoveryPage:
    """Shows and accepts the form."""

    site: Site
    accounts: Accounts
    two_factors: TwoFactors
    second_step: sign_in_step.CodeStep
    attempts: Attempts
    sign_in: browser_sign_in.BrowserSignIn

    @route(RECOVERY_PATH, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form."""
        return self._form(page, FormSubmission({}), None)

    @route(RECOVERY_PATH, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Use a code up, set the password, and sign in. Raises RateLimited, BadRequest."""
        sent = await read_submission(page.request)
        try:
            return await self._recover(page, sent)
        except browser_sign_in.SecondFactorNeeded as needed:
            return self.sign_in.second_step(page, needed)
        except (UnusablePassword, PasswordsDiffer, WrongCode) as error:
            if not page.wants_page:
                raise
            return self._form(page, sent, error)

    async def _recover(self, page: PageRequest, sent: FormSubmission) -> Response:
        password = check_password(sent.text("password"))
        if sent.text("confirm") != password:
            raise PasswordsDiffer
        login, source = sent.text("username"), page.source
        found = None
        if len(login) <= MAX_EMAIL_CHARACTERS:
            found = await self.accounts.find(login)
        subject = f"recovery of {name_key(login)} from {source.network}"
        attempt = attempt_at(subject, found, address=source.network)

        async def compare() -> str:
            if found is None or found.value.disabled:
                raise WrongCode
            code = sent.text("code")
            await self.two_factors.use_recovery_code(found, code, source, for_password=True)
            return found.value.account_id

        account_id = await self.attempts.counted(attempt, compare)
        await self.accounts.set_password(account_id, password, source=source)
        account = await self.accounts.read(account_id)
        if account is None:
            raise WrongCode
        await self.two_factors.note_recovered(account)
        path = await self.second_step.begin(
            account.value,
            browser=page.browser,
            path=ACCOUNT,
            common_password=is_common(password),
            by_recovery=True,
        )
        if path is not None:
            raise browser_sign_in.SecondFactorNeeded(path)
        signed_in = await self.sign_in.begin(page, account, lasting=False, password=password)
        if page.wants_page:
            return see_other(ACCOUNT, *signed_in.cookies)
        return json_response(200, {"location": ACCOUNT}, *signed_in.cookies)

    def _form(
        self, page: PageRequest, sent: FormSubmission, error: RequestRefused | None
    ) -> Response:
        return self.site.sign_in_page(
            page,
            "two_factor/recover.html",
            status=200 if error is None else status_of(error)[0],
            username=sent.text("username"),
            wrong=isinstance(error, WrongCode),
            unusable=refusal_text(error) if isinstance(error, UnusablePassword) else None,
            differ=refusal_text(error) if isinstance(error, PasswordsDiffer) else None,
        )
