"""``/idp/register``: a person creates an account and a pod (A-95, A-96); ``/idp/terms``: a person
who is signed in accepts terms that have changed or are new.

Until the terms are accepted, every page leads there (:mod:`podstead.web.pages.guard`). Whoever
declines signs out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from podstead.core.errors import BadRequest, NotFound, PodsteadError, RequestRefused
from podstead.core.identifiers import parse_path
from podstead.idp.account_creation import FurtherRecords, FurtherRecordsRefused, NewAccount
from podstead.idp.accounts import Accounts
from podstead.idp.authorizations import Authorizations, PendingAuthorization
from podstead.idp.client_metadata import permissions
from podstead.idp.grants import signing_in_consents
from podstead.idp.passwords import UnusablePassword, check_password
from podstead.idp.records import Account, EmailTaken, UnusableEmail
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.pods import names
from podstead.storage.invitations import UnusableInvitation
from podstead.web.browsers import is_navigation, json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, PasswordsDiffer, only, read_query, read_submission
from podstead.web.pages import addresses, guard, rendering
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.registration import TermsNotAccepted
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import INTERACTION_PATH, ClientDisplay, client_display
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, SecondFactorNeeded

REGISTRATION_PATH: Final = "/idp/register"
MAX_CODE_CHARACTERS: Final = 64


def registration_path(uid: str | None) -> str:
    """The page, which leads back to an interaction if there is one."""
    return REGISTRATION_PATH if uid is None else f"{REGISTRATION_PATH}?uid={uid}"


_FIELDS: Final[Mapping[type[PodsteadError], str]] = {
    names.UnusablePodName: "username",
    names.PodNameTaken: "username",
    UnusableEmail: "email",
    EmailTaken: "email",
    UnusablePassword: "password",
    PasswordsDiffer: "confirmPassword",
    FurtherRecordsRefused: "further",
    UnusableInvitation: "invitation",
    TermsNotAccepted: "acceptTerms",
}
"""The field of the form at which an error is shown."""


class RegistrationPart:
    """A part of the registration form that a feature adds."""

    template: str
    """It gets what :meth:`facts` returns, and is left out once :meth:`joined` has refused."""
    remedy: str
    """What a person can do then; translated."""

    async def facts(self, page: PageRequest, sent: FormSubmission) -> Mapping[str, object]:
        """What the template shows; ``sent`` has no fields before the form is sent. Raises
        StorageError."""
        raise NotImplementedError

    async def joined(
        self, page: PageRequest, sent: FormSubmission
    ) -> Callable[[Account], FurtherRecords] | None:
        """What joins the write that creates the account, if anything. Raises
        FurtherRecordsRefused, StorageError."""
        raise NotImplementedError

    def created(self, sent: FormSubmission, account: Account) -> None:
        """Learn that the account has been created from this form. Raises nothing."""


@dataclass(frozen=True, slots=True)
class RegistrationPages:
    """Shows and accepts the form."""

    site: Site
    accounts: Accounts
    authorizations: Authorizations
    sign_in: BrowserSignIn
    part: RegistrationPart | None = None

    @route(REGISTRATION_PATH, "GET", rule=guard.Rule.OURS_OR_NO_COOKIE)
    async def get(self, page: PageRequest) -> Response:
        """The form or, if only the operator creates accounts, a page that says so."""
        if self.site.registration.is_closed:
            return self.site.sign_in_page(
                page,
                "sign_in/registration_closed.html",
                status=403,
                operator=self.site.registration.about,
            )
        query = read_query(page.request)
        pending = await self._pending(page, only(query, "uid"))
        invitation = (only(query, "invitation") or "")[:MAX_CODE_CHARACTERS]
        # Programs, and pages elsewhere that name this address as a picture, try no codes.
        code = invitation if is_navigation(page.request) else ""
        note = await self.site.registration.note(code, page.request.client_address)
        return await self._form(page, pending, FormSubmission({}), invitation=invitation, note=note)

    @route(REGISTRATION_PATH, "POST", rule=guard.Rule.OURS_OR_NO_COOKIE)
    async def post(self, page: PageRequest) -> Response:
        """Create the account and sign in to it, once the person has set up a second factor if the
        operator demands one.

        Raises RegistrationClosed, RateLimited, and for programs everything that creating an account
        raises.
        """
        self.site.registration.check_open()
        sent = await read_submission(page.request)
        pending = await self._pending(page, sent.text("uid") or None)
        try:
            created = await self._create(page, sent)
        except tuple(_FIELDS) as error:
            if not page.wants_page:
                raise
            field = next(name for kind, name in _FIELDS.items() if isinstance(error, kind))
            status, _ = status_of(error)
            # A refused code has been counted, and is not tried again to show the form.
            code = "" if field == "invitation" else sent.text("invitation")[:MAX_CODE_CHARACTERS]
            note = await self.site.registration.note(code, page.request.client_address)
            return await self._form(
                page,
                pending,
                sent,
                errors={field: rendering.refusal_text(error)},
                status=status,
                note=note,
            )
        if self.part is not None:
            self.part.created(sent, created.account)
        return await self._created(page, created, pending, sent.text("password"))

    async def _create(self, page: PageRequest, sent: FormSubmission) -> NewAccount:
        username = names.check_name(sent.text("username"))
        password = check_password(sent.text("password"))
        if sent.text("confirmPassword") != sent.text("password"):
            raise PasswordsDiffer
        registration, address = self.site.registration, page.request.client_address
        registration.check_terms(accepted=sent.ticked("acceptTerms"))
        joined = None if self.part is None else await self.part.joined(page, sent)
        admitted = await registration.admission(sent.text("invitation"), address)
        await registration.count(address)
        return await self.accounts.create(
            name=username,
            email=sent.text("email") or None,
            password=password,
            needs_email=False,
            source=page.source,
            joined=joined,
            admitted=admitted,
            terms_hash=registration.terms_hash,
        )

    async def _created(
        self,
        page: PageRequest,
        created: NewAccount,
        pending: PendingAuthorization | None,
        password: str,
    ) -> Response:
        stored = await self.accounts.read(created.account.account_id)
        if stored is None:
            raise NotFound(WebCodes.ACCOUNT_DELETED_MEANWHILE)
        uid = "" if pending is None else pending.uid
        path = f"{INTERACTION_PATH}/{uid}" if uid else addresses.ACCOUNT
        if not uid and page.wants_page:
            path = addresses.with_next(
                addresses.WELCOME, None if page.back == addresses.HOME else page.back
            )
        cookies: Sequence[HeaderField] = ()
        try:
            await self.sign_in.check_second_factor(
                stored, browser=page.browser, path=path, uid=uid, password=password
            )
        except SecondFactorNeeded as needed:
            path = needed.path
        else:
            signed_in = await self.sign_in.begin(page, stored, lasting=False, password=password)
            cookies = signed_in.cookies
            if pending is not None:
                await self.authorizations.signed_in(pending, signed_in.session)
        if page.wants_page:
            return see_other(path, *cookies)
        body = {
            "webId": created.account.web_id,
            "podUri": created.pod_uri,
            "location": self.site.base_url + path,
        }
        location = (b"location", created.pod_uri.encode("ascii"))
        return json_response(201, body, location, *cookies)

    async def _pending(self, page: PageRequest, uid: str | None) -> PendingAuthorization | None:
        """The interaction to return to. Raises NotFound, AccessDenied, BadRequest."""
        if uid is None:
            return None
        return await self.authorizations.pending(uid, browser=page.browser)

    def _client_display(self, pending: PendingAuthorization) -> ClientDisplay:
        redirect_uri = pending.interaction.request.redirect_uri
        return client_display(pending.client, redirect_uri, base_url=self.site.pods_url)

    async def _form(
        self,
        page: PageRequest,
        pending: PendingAuthorization | None,
        sent: FormSubmission,
        *,
        errors: Mapping[str, str] = MappingProxyType({}),
        status: int = 200,
        invitation: str = "",
        note: str = "",
    ) -> Response:
        targets = [] if pending is None else [pending.interaction.request.redirect_uri]
        facts: Mapping[str, Any] = {}
        code = sent.text("invitation")[:MAX_CODE_CHARACTERS] or invitation
        if self.part is not None and "further" not in errors:
            facts = await self.part.facts(page, sent)
        return self.site.sign_in_page(
            page,
            "sign_in/register.html",
            status=status,
            form_targets=targets,
            errors=errors,
            username=sent.text("username"),
            name_pattern=names.NAME_PATTERN,
            max_name_characters=names.MAX_NAME_CHARACTERS,
            email=sent.text("email"),
            client=None if pending is None else self._client_display(pending),
            consents=pending is not None and signing_in_consents(pending.interaction),
            permissions=() if pending is None else permissions(pending.interaction.request.scopes),
            uid=None if pending is None else pending.uid,
            afterwards=page.back,
            part=self.part,
            by_invitation=self.site.registration.by_invitation,
            invitation=code,
            note=note,
            max_code_characters=MAX_CODE_CHARACTERS,
            operator=self.site.registration.about,
            terms_accepted=sent.ticked("acceptTerms"),
            base_url=self.site.pods_url,
            **facts,
        )


_PROVIDER: Final = "/idp/"
_INTERACTION: Final = re.compile(
    rf"(?:{re.escape(AUTHORIZATION_PATH)}|{re.escape(INTERACTION_PATH)})/(?P<uid>[^/?]+)"
)


@dataclass(frozen=True, slots=True)
class NewTermsPage:
    """Shows the terms, and records who accepts them."""

    site: Site
    accounts: Accounts
    authorizations: Authorizations
    terms_text: str

    @route(addresses.NEW_TERMS, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. Raises NotAuthenticated."""
        owner, afterwards = page.owner(), _afterwards(page)
        if self.site.registration.terms_hash in ("", owner.account.terms_hash):
            return see_other(afterwards)
        return self.site.sign_in_page(
            page,
            "sign_in/new_terms.html",
            form_targets=await self._form_targets(page, afterwards),
            account=owner.account,
            csrf_token=owner.session.csrf_token,
            text=self.terms_text,
            terms_hash=self.site.registration.terms_hash,
            action=addresses.new_terms_url(afterwards),
            is_first=not owner.account.terms_hash,
            operator=self.site.registration.about,
        )

    @route(addresses.NEW_TERMS, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Record that the person accepts the terms that the page showed. If they have changed
        since, the page is shown again. Raises NotAuthenticated, WrongFormToken."""
        sent = await page.submission()
        owner, afterwards = page.owner(), _afterwards(page)
        if sent.text("terms") != self.site.registration.terms_hash:
            return see_other(addresses.new_terms_url(afterwards))
        await self.accounts.accept_terms(
            owner.account.account_id, self.site.registration.terms_hash
        )
        if not page.wants_page:
            return json_response(200, {})
        return see_other(afterwards)

    async def _form_targets(self, page: PageRequest, afterwards: str) -> Sequence[str]:
        """Where the form may lead besides this server: to the application that the person signs in
        to."""
        found = _INTERACTION.match(afterwards)
        if found is None:
            return ()
        try:
            pending = await self.authorizations.pending(found["uid"], browser=page.browser)
        except RequestRefused:
            return ()  # it has expired, which the next page explains
        return (pending.interaction.request.redirect_uri,)


def _afterwards(page: PageRequest) -> str:
    """The page of this server that the person wanted to see. Raises BadRequest."""
    text = only(read_query(page.request), "next") or ""
    local = addresses.local_address(text)
    if local is not None:
        return local
    path, question_mark, query = text.partition("?")
    if not text.isascii() or not path.startswith(_PROVIDER) or not query.isprintable():
        return addresses.ACCOUNT
    try:
        canonical = parse_path(path.encode("ascii"))
    except BadRequest:
        return addresses.ACCOUNT
    is_ours = canonical.startswith(_PROVIDER) and canonical != addresses.NEW_TERMS
    return canonical + question_mark + query if is_ours else addresses.ACCOUNT
