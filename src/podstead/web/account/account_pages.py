"""``/idp/account``: a person views and changes their account (A-86), exports their pod, and has
their profile name this server again.

People are led to ``/.pages/security``, whose forms come here; each changes one thing. Programs that
are signed in send JSON to the same URLs. To change how they sign in, people must prove again that
they can, with the current password or by signing in again. An export requires a recent sign-in and
leads to the archive, which can then be downloaded in this session for a day, in parts if the
connection breaks.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from podstead.authn.web_ids import UnusableDocument
from podstead.core import errors, header_fields, identifiers, identity
from podstead.idp.accounts import Accounts
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.email_verification import EmailVerification
from podstead.idp.passwords import UnusablePassword
from podstead.idp.records import Account, EmailTaken, SecurityEvent, UnusableEmail
from podstead.idp.sessions import OpenSession, PodExports, Sessions
from podstead.idp.sign_in import SignInFailed
from podstead.idp.token_issuing import IssuerRestoration, ProfileIssuer
from podstead.resources.exporting.archive import PodDownloads
from podstead.web.account import collections as account_collections
from podstead.web.account.event_texts import event_text, source_text
from podstead.web.account.first_steps import FirstSteps
from podstead.web.account.security_page import SecuritySection, SecurityView, view_of
from podstead.web.browsers import FORGET_STORAGE, browser_name, json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission, PasswordsDiffer, only
from podstead.web.pages.addresses import ACCOUNT, LOGIN, SECURITY, again_url
from podstead.web.pages.cookies import SESSION, FlashMessage
from podstead.web.pages.formats import machine_time
from podstead.web.pages.rendering import refusal_message
from podstead.web.pages.request import PageRequest, SignInAgain
from podstead.web.pages.site import Site
from podstead.web.response import HeaderField, Response, content_response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import ClientTerms, ConsentExtension
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, PasswordRecovery
from podstead.web.sign_in.people import PodBrowser, PodSessions, end_browser_session

EventsOf = Callable[[str], Awaitable[Sequence[SecurityEvent]]]
"""The events of an account, the newest first. Raises StorageError."""

LOGOUT_PATH: Final = "/idp/logout"


class WrongCurrentPassword(SignInFailed):
    """The current password, which a change requires, is wrong; nothing was changed."""

    code = WebCodes.WRONG_CURRENT_PASSWORD


@dataclass(frozen=True, slots=True)
class AccountPages:
    """Shows the account and changes it."""

    site: Site
    collections: Sequence[account_collections.Collection[Any]]
    sections: Sequence[SecuritySection]
    accounts: Accounts
    sessions: Sessions
    profile_issuer: ProfileIssuer
    pod_sessions: PodSessions
    events: EventsOf
    recoveries: Sequence[PasswordRecovery]
    sign_in: BrowserSignIn
    audit: Audit
    verification: EmailVerification
    sends_mail: Callable[[], bool]

    @route(ACCOUNT, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page, or the one that takes its place; JSON for programs. Raises NotAuthenticated."""
        owner = page.owner()
        if page.wants_page:
            return see_other(_page_of_pods(only(page.query, "view")))
        account = owner.account
        body = {
            "webId": account.web_id,
            "podUri": self._pod_uri(owner),
            "email": account.email,
            "csrfToken": owner.session.csrf_token,
        }
        return json_response(200, body)

    @route(ACCOUNT + "/email/confirm", "POST")
    async def confirm_email(self, page: PageRequest) -> Response:
        """Send another message with which the person confirms the e-mail address. Raises NotFound
        where no mail is sent, NotAuthenticated, WrongFormToken."""
        await page.submission()
        if not self.sends_mail():
            raise errors.NotFound(WebCodes.NO_MAIL)
        account = page.owner().account
        await self.verification.ask(account, page.source.language)
        return self._changed(page, "email-asked")

    @route(ACCOUNT + "/mail", "POST")
    async def change_mail(self, page: PageRequest) -> Response:
        """Change which messages the person wants. Raises NotAuthenticated, WrongFormToken."""
        sent = await page.submission()
        account_id = page.owner().account.account_id
        wanted = sent.text("requests") == "yes"
        await self.accounts.set_mails_requests(account_id, wanted=wanted)
        return self._changed(page, "mail-changed")

    @route(ACCOUNT + "/email", "POST")
    async def change_email(self, page: PageRequest) -> Response:
        sent = await page.submission()
        owner = page.owner()
        try:
            await self._check_current(page, owner, sent)
            await self.accounts.set_email(
                owner.account.account_id, sent.text("email"), source=page.source
            )
        except (UnusableEmail, EmailTaken, WrongCurrentPassword) as error:
            return self._form_error(page, error, typed_email=sent.text("email"))
        return self._changed(page, "email-changed")

    @route(ACCOUNT + "/password", "POST")
    async def change_password(self, page: PageRequest) -> Response:
        """Change the password, which ends all other sessions and all grants.

        Raises NotAuthenticated, WrongFormToken, RateLimited, and what is wrong with the form.
        """
        sent = await page.submission()
        owner = page.owner()
        try:
            await self._check_current(page, owner, sent)
            if sent.fields.get("confirm", sent.text("new")) != sent.text("new"):
                raise PasswordsDiffer
            await self.accounts.set_password(
                owner.account.account_id, sent.text("new"), source=page.source
            )
        except (UnusablePassword, PasswordsDiffer, WrongCurrentPassword) as error:
            return self._form_error(page, error)
        await self.pod_sessions.end_all(owner.account.web_id, _root_of(owner.account))
        stored = await self.accounts.read(owner.account.account_id)
        if stored is None:
            raise errors.NotFound(WebCodes.ACCOUNT_DELETED)
        signed_in = await self.sign_in.begin(
            page, stored, lasting=owner.session.lasting, password=sent.text("new")
        )
        return self._changed(page, "password-changed", *signed_in.cookies)

    @route(ACCOUNT + "/events", "GET", is_page=False)
    async def list_events(self, page: PageRequest) -> Response:
        """What has happened to the account. Raises NotAuthenticated."""
        account_id = page.owner().account.account_id
        listed = [_event_json(each) for each in await self.events(account_id)]
        return json_response(200, {"events": listed})

    @route(LOGOUT_PATH, "POST")
    async def sign_out(self, page: PageRequest) -> Response:
        """``/idp/logout``. Raises WrongFormToken."""
        if page.open_session is None:
            return self._signed_out(page)
        await page.submission()
        await end_browser_session(
            page.open_session,
            self.site.base_url,
            sessions=self.sessions,
            pod_sessions=self.pod_sessions,
            audit=self.audit,
        )
        return self._signed_out(page)

    @route(account_collections.SESSIONS_PATH, "POST", "DELETE", is_page=False)
    async def sign_out_everywhere(self, page: PageRequest) -> Response:
        """End every session, including this one. Raises NotAuthenticated, WrongFormToken."""
        await page.submission()
        owner = page.owner()
        account = owner.account
        endings = await self.pod_sessions.endings(account.web_id, _root_of(account))
        await self.sessions.end_all(account, endings)
        self.audit.note(AuditEvent.SIGNED_OUT_EVERYWHERE, account_id=owner.account.account_id)
        return self._signed_out(page)

    @route(ACCOUNT + "/delete", "GET", needs_terms=False)
    async def confirm_deletion(self, page: PageRequest) -> Response:
        """The page that says what will be deleted; requires a recent sign-in. Raises
        NotAuthenticated."""
        owner = page.owner()
        if not self.sessions.is_recent(owner):
            return see_other(again_url("delete"))
        return self._deletion_page(page, owner)

    @route(ACCOUNT + "/delete", "POST", needs_terms=False)
    async def delete(self, page: PageRequest) -> Response:
        """Delete the account and its pod.

        Raises NotAuthenticated, WrongFormToken, and AccessDenied without a recent sign-in.
        """
        sent = await page.submission()
        owner = page.owner()
        if not self.sessions.is_recent(owner):
            if page.wants_page:
                return see_other(again_url("delete"))
            raise errors.AccessDenied(WebCodes.SIGN_IN_AGAIN_TO_DELETE)
        if sent.text("pod") != owner.account.pod:
            if page.wants_page:
                return self._deletion_page(page, owner, status=400)
            raise errors.BadRequest(WebCodes.POD_NAME_MISSING)
        account = owner.account
        await self.accounts.delete(account.account_id, agent=account.web_id)
        if not page.wants_page:
            return json_response(204, None, self.site.cookies.clear(SESSION))
        return self.site.signed_out(page, self.site.cookies.clear(SESSION), deleted=True)

    # --- parts --------------------------------------------------------------------------------

    async def _check_current(
        self, page: PageRequest, owner: OpenSession, sent: FormSubmission
    ) -> None:
        """Raises WrongCurrentPassword unless the form has the current password; RateLimited."""
        try:
            await self.sign_in.confirm(page, owner, sent.text("current"))
        except SignInFailed as error:
            raise WrongCurrentPassword from error

    def _form_error(
        self,
        page: PageRequest,
        error: errors.PodsteadError,
        *,
        typed_email: str = "",
    ) -> Response:
        if not page.wants_page:
            raise error
        return self.site.see_other(page.back or SECURITY, refusal_message(error, typed_email))

    def _changed(self, page: PageRequest, flash_message: str, *headers: HeaderField) -> Response:
        return self.site.done(page, flash_message, *headers)

    def _signed_out(self, page: PageRequest) -> Response:
        forget = self.site.cookies.clear(SESSION)
        if not page.wants_page:
            return json_response(204, None, forget)
        if self.site.forgetting_page is not None:
            return self.site.signed_out(page, forget)
        return self.site.see_other(LOGIN, FlashMessage("signed-out"), forget, FORGET_STORAGE)

    def _deletion_page(
        self, page: PageRequest, owner: OpenSession, *, status: int = 200
    ) -> Response:
        return self.site.account_page(
            page,
            "account/delete.html",
            status=status,
            pod_uri=self._pod_uri(owner),
            mistyped=status != 200,
        )

    async def facts(self, owner: OpenSession, *, changed: str | None) -> dict[str, Any]:
        """Everything that pages show about the account, by the names of the templates; ``changed``
        is what the person has just changed. Raises StorageError."""
        account = owner.account
        shown = {each.shown_as: await each.shown(owner) for each in self.collections}
        sessions = await self.sessions.of_account(account)
        remaining: list[account_collections.RemainingCredential] = []
        if changed == "password-changed":
            remaining += [
                found for each in self.collections for found in await each.remaining(owner)
            ]
        return {
            **shown,
            "account": account,
            "pod_uri": self._pod_uri(owner),
            "asks_for_confirmation": (
                self.sends_mail() and account.email is not None and not account.email_verified_s
            ),
            "sends_mail": self.sends_mail(),
            "current": owner.session.public_id,
            "sessions": [(each.value, browser_name(each.value.user_agent)) for each in sessions],
            "identity_scope": identity.IDENTITY_SCOPE,
            "issuer": self.profile_issuer.issuer,
            "issuer_is_named": await self._issuer_is_named(owner),
            "common_password": owner.session.common_password,
            "remaining": remaining,
            "events": [
                (
                    each,
                    event_text(each.what),
                    source_text(each.by) if each.by else browser_name(each.user_agent),
                )
                for each in await self.events(account.account_id)
            ],
            "machine_time": machine_time,
            "format_day": account_collections.format_day,
        }

    async def _issuer_is_named(self, owner: OpenSession) -> bool | None:
        """``None`` if the profile cannot be read."""
        try:
            return await self.profile_issuer.is_named_by(owner.account.web_id)
        except (UnusableDocument, errors.RemoteUnavailable):
            return None

    def _pod_uri(self, owner: OpenSession) -> str:
        return f"{self.site.pods_url}/{owner.account.pod}/"


def _root_of(account: Account) -> identifiers.ResourcePath:
    """The root container of the pod of an account."""
    return identifiers.ResourcePath(f"/{account.pod}/")


def _event_json(event: SecurityEvent) -> dict[str, object]:
    return {
        "at": machine_time(event.at_s),
        "what": event.what,
        "subject": event.subject,
        "address": event.address or None,
        "userAgent": event.user_agent,
        "by": event.by or None,
    }


def _page_of_pods(view: str | None) -> str:
    return SECURITY if view is None else f"{SECURITY}?view={view_of(view).value}"


@dataclass(frozen=True, slots=True)
class OwnAccountPages:
    """Renders these pages for people who are signed in to an account."""

    site: Site
    account: AccountPages
    first_steps: FirstSteps
    consent: ConsentExtension | None = None
    issues_tokens: bool = False

    async def apps(self, page: PageRequest, sections: Mapping[str, Any]) -> Response:
        """``/.pages/apps``, with what features add. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        return self.site.page(page, "account/apps.html", **{**facts, **sections})

    async def welcome(self, page: PageRequest) -> Response:
        """``/.pages/welcome``. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        recoveries = self.account.recoveries
        for each in recoveries:
            facts |= await each.facts(page.owner())
        return self.site.page(
            page,
            "account/welcome.html",
            recoveries=recoveries,
            steps=await self.first_steps.of(page),
            wanted=page.back,
            **facts,
        )

    async def hide_first_steps(self, page: PageRequest) -> None:
        """Raises NotAuthenticated, StorageError, Overloaded."""
        await self.first_steps.hide(page)

    async def security(
        self, page: PageRequest, view: SecurityView, browsers: Sequence[PodBrowser]
    ) -> Response:
        """``/.pages/security``. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        sections = [each for each in self.account.sections if each.view is view]
        for each in sections:
            facts |= await each.facts(page.owner())
        return self.site.page(
            page,
            "account/security.html",
            view=view.value,
            sections=sections,
            pod_browsers=browsers,
            current_browsers=(),
            browser_name=browser_name,
            credential_fields=await self._credential_fields(page, view),
            issues_tokens=self.issues_tokens,
            **facts,
        )

    async def _credential_fields(self, page: PageRequest, view: SecurityView) -> Markup | None:
        if self.consent is None or view is not SecurityView.PROGRAMS:
            return None
        return await self.consent.credential_fields(page.owner().account)

    async def _facts(self, page: PageRequest) -> dict[str, Any]:
        owner = page.owner()
        notice = page.flash_message
        facts = await self.account.facts(owner, changed=None if notice is None else notice.name)
        further: Mapping[str, ClientTerms] = {}
        if self.consent is not None:
            clients = [each for app in facts["applications"] for each in app.client_ids]
            clients += [each.credential_id for each in facts["credentials"]]
            tokens = [each.token_id for each in facts["pod_tokens"]]
            further = await self.consent.shown(page.signed_in(), clients, tokens)
        typed = "" if notice is None else notice.subject
        return {**facts, "typed": typed, "further": further}


EXPORT_PATH: Final = f"{ACCOUNT}/export"
_SUFFIX: Final = ".zip"
_WITH_VERSIONS: Final = "?versions=yes"


@dataclass(frozen=True, slots=True)
class ExportPages:
    """Allows downloads, and sends them."""

    exports: PodExports
    downloads: PodDownloads

    @route(EXPORT_PATH, "POST", needs_terms=False)
    async def allow(self, page: PageRequest) -> Response:
        sent = await page.submission()
        owner = page.recent_owner("export")
        await self.exports.allow(owner, page.source)
        address = f"{EXPORT_PATH}/{owner.account.pod}{_SUFFIX}"
        if sent.text("versions") == "yes":
            address += _WITH_VERSIONS
        if page.wants_page:
            return see_other(address)
        return json_response(200, {"archive": address})

    @route(EXPORT_PATH + "/{file}", "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The archive, or a part of it. Raises NotAuthenticated, SignInAgain, NotFound,
        RangeNotSatisfiable, Overloaded, StorageError."""
        owner, request = page.owner(), page.request
        name = owner.account.pod + _SUFFIX
        if page.segment != name:
            raise errors.NotFound(WebCodes.OTHER_POD_NAME)
        if not await self.exports.is_allowed(owner):
            raise SignInAgain(again_url("export"))
        with_versions = page.query_text("versions") == "yes"
        archive = await self.downloads.open(owner.account.pod, with_versions=with_versions)
        etag = f'"{archive.tag}"'
        fields = request.fields
        asked = fields.get(b"range") if request.method == "GET" else None
        if not header_fields.if_range_holds(fields.get(b"if-range"), etag, None):
            asked = None
        part = header_fields.select_range(asked, archive.size_bytes)
        headers = [
            (b"etag", etag.encode("ascii")),
            (b"accept-ranges", b"bytes"),
            (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii")),
            (b"cache-control", b"private, no-cache"),
        ]
        return content_response(
            archive,
            "application/zip",
            method="GET",
            status=200 if part is None else 206,
            headers=headers,
            size_bytes=archive.size_bytes,
            byte_range=part,
        )


ISSUER_PATH: Final = f"{ACCOUNT}/issuer"


@dataclass(frozen=True, slots=True)
class IssuerPages:
    """Reports whether the statement exists, and restores it."""

    site: Site
    profile_issuer: ProfileIssuer
    restoration: IssuerRestoration

    @route(ISSUER_PATH, "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        try:
            named = await self.profile_issuer.is_named_by(page.owner().account.web_id)
        except UnusableDocument as error:
            raise errors.Conflict(WebCodes.OWN_PROFILE_UNREADABLE) from error
        return json_response(200, {"issuer": self.profile_issuer.issuer, "named": named})

    @route(ISSUER_PATH, "POST", is_page=False)
    async def restore(self, page: PageRequest) -> Response:
        """Requires a recent sign-in: afterwards tokens of this provider are accepted again.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, and what changing the profile raises.
        """
        await page.submission()
        owner = page.recent_owner("issuer")
        await self.restoration.restore(owner.account)
        return self.site.done(page, "issuer-restored")
