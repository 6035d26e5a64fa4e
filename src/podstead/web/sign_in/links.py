"""Pages that links in messages lead to: ``/.pages/link/<secret>`` for a lost password or for the
first operator, ``/.pages/verify/<secret>`` to confirm an address, and ``/.pages/forgot``, where
people ask for a link.

Opening a link changes nothing, since mail programs and chats open links as well. The secret of a
one-time link is in the address, so its page leads nowhere that would learn it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, NotFound, PodsteadError
from podstead.idp import records, sign_in
from podstead.idp.accounts import Accounts
from podstead.idp.administration.service import LinkUsed, OneTimeLinks
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.email_verification import EmailVerification
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.idp.passwords import UnusablePassword, check_password, is_common
from podstead.idp.sessions import Sessions
from podstead.idp.sign_in_methods import SecondStep
from podstead.pods import names
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, PasswordsDiffer
from podstead.web.limits import address_key, take
from podstead.web.pages import addresses, cookies, rendering
from podstead.web.pages.addresses import ACCOUNT, CONSOLE, FORGOT, LINK, link_url, verify_url
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.browser_sign_in import PASSWORD, PasswordRecovery

_FIELDS: Final[Mapping[type[PodsteadError], str]] = {
    names.UnusablePodName: "username",
    names.PodNameTaken: "username",
    records.UnusableEmail: "email",
    records.EmailTaken: "email",
    UnusablePassword: "password",
    PasswordsDiffer: "confirm",
}
"""The field of the form at which an error is shown."""


_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class LinkPage:
    """Shows and accepts the form that a link leads to."""

    site: Site
    accounts: Accounts
    links: OneTimeLinks
    sessions: Sessions
    audit: Audit
    second_step: SecondStep | None

    @route(f"{LINK}/{{secret}}", "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The form. Raises LinkUsed."""
        link = await self.links.find(page.path_segment(3))
        return self._form(page, await self._account(link), FormSubmission({}))

    @route(f"{LINK}/{{secret}}", "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Choose a new password, or create the first operator's account, and sign in, with the
        second factor if the account has one. Raises LinkUsed, WrongFormToken."""
        sent = await page.form()
        link = await self.links.find(page.path_segment(3))
        account = await self._account(link)
        try:
            changed = await self._use(page, link, account, sent)
        except tuple(_FIELDS) as error:
            field = next(name for kind, name in _FIELDS.items() if isinstance(error, kind))
            status, _reason = status_of(error)
            return self._form(
                page, account, sent, errors={field: rendering.refusal_text(error)}, status=status
            )
        return await self._signed_in(page, changed, sent.text("password"))

    # --- parts --------------------------------------------------------------------------------

    async def _account(self, link: Versioned[records.OneTimeLink]) -> records.Account | None:
        """The account that the link lets a person in to, ``None`` if it creates one. Raises
        LinkUsed if that account is gone or disabled."""
        if link.value.account_id is None:
            return None
        stored = await self.accounts.read(link.value.account_id)
        if stored is None or stored.value.disabled:
            raise LinkUsed
        return stored.value

    async def _use(
        self,
        page: PageRequest,
        link: Versioned[records.OneTimeLink],
        account: records.Account | None,
        sent: FormSubmission,
    ) -> records.Account:
        """Raises the errors in ``_FIELDS``, and LinkUsedMeanwhile."""
        source = page.source
        name = None if account is not None else names.check_name(sent.text("username"))
        password = check_password(sent.text("password"))
        if sent.text("confirm") != password:
            raise PasswordsDiffer
        if account is not None:
            account_id = account.account_id
            changed = await self.accounts.set_password(
                account_id, password, source=source, permission=link
            )
            self.audit.note(AuditEvent.SIGN_IN_LINK_USED, account_id=account_id)
            return changed
        created = await self.accounts.create(
            name=name,
            email=sent.text("email") or None,
            password=password,
            needs_email=False,
            source=source,
            joined=self.links.using_up(link),
            operator=True,
        )
        account_id = created.account.account_id
        self.audit.note(AuditEvent.OPERATOR_PROMOTED, account_id=account_id)
        return created.account

    async def _signed_in(
        self, page: PageRequest, account: records.Account, password: str
    ) -> Response:
        stored = await self.accounts.read(account.account_id)
        if stored is None:
            raise NotFound(WebCodes.ACCOUNT_DELETED_MEANWHILE)
        address = CONSOLE if stored.value.operator else ACCOUNT
        if self.second_step is not None:
            browser = self.site.cookies.secret(page.request, cookies.BROWSER)
            secret = browser or self.site.randomness.token_hex(_SECRET_BYTES)
            path = await self.second_step.begin(
                stored.value, browser=secret, path=address, common_password=is_common(password)
            )
            if path is not None:
                return see_other(path, self.site.cookies.set(cookies.BROWSER, secret))
        begun = await self.sessions.begin(
            stored,
            factor=PASSWORD,
            lasting=False,
            user_agent=page.source.user_agent,
            amr=sign_in.PASSWORD,
            common_password=is_common(password),
        )
        self.audit.note(AuditEvent.SIGNED_IN, account_id=account.account_id)
        return see_other(address, self.site.cookies.set(cookies.SESSION, begun.secret))

    def _form(
        self,
        page: PageRequest,
        account: records.Account | None,
        sent: FormSubmission,
        *,
        errors: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        return self.site.page(
            page,
            "console/link.html",
            status=status,
            name=None if account is None else account.pod,
            action=link_url(page.path_segment(3)),
            errors=errors or {},
            username=sent.text("username"),
            email=sent.text("email"),
            name_pattern=names.NAME_PATTERN,
            max_name_characters=names.MAX_NAME_CHARACTERS,
            pods_url=self.site.pods_url,
        )


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
    sends_mail: Callable[[], bool]
    recoveries: Sequence[PasswordRecovery]

    @route(addresses.FORGOT, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The form; without mail, whom to ask."""
        return self._page(page)

    @route(addresses.FORGOT, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Queue a message. Raises NotFound without mail, RateLimited, WrongFormToken."""
        if not self.sends_mail():
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        sent = await page.form()
        login = sent.text("login").strip()
        if not login or len(login) > records.MAX_EMAIL_CHARACTERS or not login.isprintable():
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
        key = f"forgot-name:{secret_key(records.name_key(login))}"
        wait_s = await self.records.take(key, capacity=REQUESTS_FOR_NAME_PER_HOUR, period_s=_HOUR_S)
        return wait_s is None

    def _page(self, page: PageRequest, *, sent: bool = False) -> Response:
        return self.site.page(
            page,
            "sign_in/forgot.html",
            sends_mail=self.sends_mail(),
            sent=sent,
            operator=self.site.registration.about,
            action=FORGOT,
            recoveries=self.recoveries,
            max_characters=records.MAX_EMAIL_CHARACTERS,
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
            "sign_in/verify.html",
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
            "sign_in/verify.html",
            email=account.email,
            name=account.pod,
            action="",
            confirmed=True,
        )
