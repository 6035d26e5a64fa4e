"""``/idp/recover``: a person who has lost the password chooses a new one with a recovery code.

The response is the same for an unknown name, an account without codes, and a wrong code. A second
factor is asked for afterwards as after any password, and another recovery code is none, also when
the person signs in later. Wrong codes count for the address they come from: a code cannot be
guessed, and nobody keeps the owner of an account from using theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import RequestRefused
from podstead.idp.accounts import Accounts
from podstead.idp.passwords import UnusablePassword, check_password
from podstead.idp.records import MAX_EMAIL_CHARACTERS, name_key
from podstead.idp.sign_in import Attempts, attempt_at
from podstead.idp.two_factor.service import TwoFactors, WrongCode
from podstead.web.browsers import json_response, see_other
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, PasswordsDiffer, read_submission
from podstead.web.idp.browser_sign_in import BrowserSignIn, SecondFactorNeeded
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

RECOVERY_PATH: Final = "/idp/recover"


@dataclass(frozen=True, slots=True)
class RecoveryPage:
    """Shows and accepts the form."""

    site: Site
    accounts: Accounts
    two_factors: TwoFactors
    attempts: Attempts
    sign_in: BrowserSignIn

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
        except SecondFactorNeeded as needed:
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
        await self.attempts.check(attempt)
        try:
            if found is None or found.value.disabled:
                raise WrongCode
            await self.two_factors.use_recovery_code(
                found, sent.text("code"), source, for_password=True
            )
        except WrongCode:
            await self.attempts.failed(attempt)
            raise
        await self.attempts.succeeded(attempt)
        await self.accounts.set_password(found.value.account_id, password, source=source)
        account = await self.accounts.read(found.value.account_id)
        if account is None:
            raise WrongCode
        await self.two_factors.note_recovered(account)
        await self.sign_in.check_second_factor(
            account,
            browser=page.browser,
            path=ACCOUNT,
            password=password,
            by_recovery=True,
        )
        signed_in = await self.sign_in.begin(page, account, lasting=False, password=password)
        if page.wants_page:
            return see_other(ACCOUNT, *signed_in.cookies)
        return json_response(200, {"location": ACCOUNT}, *signed_in.cookies)

    def _form(
        self, page: PageRequest, sent: FormSubmission, error: RequestRefused | None
    ) -> Response:
        return self.site.sign_in_page(
            page,
            "recover.html",
            status=200 if error is None else status_of(error)[0],
            username=sent.text("username"),
            wrong=isinstance(error, WrongCode),
            unusable=isinstance(error, UnusablePassword),
            differ=isinstance(error, PasswordsDiffer),
        )
