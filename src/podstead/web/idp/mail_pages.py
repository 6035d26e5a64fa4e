"""Pages about mail: the one for a lost password, and the one that confirms an address.

Opening a link changes nothing, since mail programs open links as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, NotFound
from podstead.idp.email_verification import EmailVerification
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.idp.records import MAX_EMAIL_CHARACTERS, name_key
from podstead.storage.record_store import RecordStore, secret_key
from podstead.web.codes import WebCodes
from podstead.web.limits import address_key, take
from podstead.web.pages import addresses
from podstead.web.pages.addresses import FORGOT, verify_url
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

REQUESTS_PER_HOUR: Final = 10
"""How many links one address may ask for."""
REQUESTS_FOR_NAME_PER_HOUR: Final = 3
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class ForgotPage:
    """``/.pages/forgot``: people who have lost their password ask for a link.

    The response is the same whether or not there is an account: nothing is looked up for it.
    """

    site: Site
    records: RecordStore
    sends_mail: bool

    @route(addresses.FORGOT, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The form; without mail, whom to ask."""
        return self._page(page)

    @route(addresses.FORGOT, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Queue a message. Raises NotFound without mail, RateLimited, WrongFormToken."""
        if not self.sends_mail:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        sent = await page.form()
        login = sent.text("login").strip()
        if not login or len(login) > MAX_EMAIL_CHARACTERS or not login.isprintable():
            raise BadRequest(WebCodes.LOGIN_MISSING)
        await take(
            self.records.store,
            f"forgot:{address_key(page.request.client_address)}",
            capacity=REQUESTS_PER_HOUR,
            period_s=_HOUR_S,
            clock=self.records.clock,
        )
        if await self._is_within_limit(login):
            language = page.texts.language
            subject = MailSubject.PASSWORD_RESET
            queued = await MailQueue(self.records).joining(subject, login=login, language=language)
            await self.records.commit(queued)
        return self._page(page, sent=True)

    async def _is_within_limit(self, login: str) -> bool:
        key = f"forgot-name:{secret_key(name_key(login))}"
        wait_s = await self.records.take(key, capacity=REQUESTS_FOR_NAME_PER_HOUR, period_s=_HOUR_S)
        return wait_s is None

    def _page(self, page: PageRequest, *, sent: bool = False) -> Response:
        return self.site.page(
            page,
            "mail/forgot.html",
            sends_mail=self.sends_mail,
            sent=sent,
            operator=self.site.registration.about,
            action=FORGOT,
            max_characters=MAX_EMAIL_CHARACTERS,
        )


@dataclass(frozen=True, slots=True)
class VerifyPage:
    """``/.pages/verify/<secret>``: somebody confirms that they read the mail of an address."""

    site: Site
    verification: EmailVerification

    @route(addresses.VERIFY + "/{secret}", "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The question. Raises ProofUsed."""
        secret = page.path_segment(3)
        account = await self.verification.find(secret)
        return self.site.page(
            page,
            "mail/verify.html",
            email=account.email,
            name=account.pod,
            action=verify_url(secret),
            confirmed=False,
        )

    @route(addresses.VERIFY + "/{secret}", "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Confirm the address. Raises ProofUsed, WrongFormToken."""
        await page.form()
        secret = page.path_segment(3)
        account = await self.verification.confirm(secret, page.texts.language)
        return self.site.page(
            page,
            "mail/verify.html",
            email=account.email,
            name=account.pod,
            action="",
            confirmed=True,
        )
