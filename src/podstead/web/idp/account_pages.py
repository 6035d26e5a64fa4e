"""``/idp/account``: a person views and changes their account (A-86).

People are led to ``/.pages/security``, whose forms come here; each changes one thing. A form that
names no page to go back to gets a page with everything, as ``?view=all`` does. Programs that are
signed in send JSON to the same URLs. To change how they sign in, people must prove again that they
can, with the current password or by signing in again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.errors import (
    AccessDenied,
    BadRequest,
    NotFound,
    PodsteadError,
    RemoteUnavailable,
)
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.accounts import Accounts
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.certificates import CertificateKeys
from podstead.idp.credentials import ClientCredentials, PodTokens
from podstead.idp.email_verification import EmailVerification
from podstead.idp.grants import ConnectedClients
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.passwords import UnusablePassword
from podstead.idp.records import Account, EmailTaken, UnusableEmail
from podstead.idp.sessions import OpenSession, Sessions
from podstead.idp.sign_in import SignInFailed
from podstead.idp.token_issuing import ProfileIssuer
from podstead.idp.two_factor.service import TwoFactors
from podstead.nostr.npub import npub
from podstead.rdf.rsa_keys import OwnKey
from podstead.web.browsers import browser_name, json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission, PasswordsDiffer, only
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.display import format_day, machine_time, shown_time
from podstead.web.idp.profile_key_endpoints import ProfileKeyEndpoints
from podstead.web.idp.remaining_credentials import RemainingCredentials
from podstead.web.idp.self_service import SESSIONS_PATH, EventsOf
from podstead.web.idp.shown_applications import shown_applications
from podstead.web.pages.addresses import ACCOUNT, LOGIN, SECURITY, again_url
from podstead.web.pages.cookies import SESSION, Cookies, Notice
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.pod_pages.account.security_views import view_of
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route

LOGOUT_PATH: Final = "/idp/logout"


class WrongCurrentPassword(SignInFailed):
    """The current password, which a change requires, is wrong; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("The current password is wrong, so nothing was changed")


_NOTICES: Final[Mapping[type[PodsteadError], str]] = {
    UnusableEmail: "email-unusable",
    EmailTaken: "email-taken",
    UnusablePassword: "password-unusable",
    PasswordsDiffer: "passwords-differ",
    WrongCurrentPassword: "wrong-current-password",
}
"""What the pages of pods say about an error."""


class AccountPages:
    """Shows the account and changes it."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        sessions: Sessions,
        connected_clients: ConnectedClients,
        credentials: ClientCredentials,
        passkeys: Passkeys | None,
        nostr_links: NostrLinks | None,
        profile_keys: ProfileKeyEndpoints | None,
        certificates: CertificateKeys | None,
        profile_issuer: ProfileIssuer,
        pod_tokens: PodTokens,
        pod_sessions: PodSessions,
        remaining: RemainingCredentials,
        events: EventsOf,
        two_factors: TwoFactors,
        sign_in: BrowserSignIn,
        cookies: Cookies,
        renderer: PageRenderer,
        audit: Audit,
        verification: EmailVerification | None,
        base_url: str,
    ) -> None:
        """``verification`` is ``None`` if the server sends no mail."""
        self._verification = verification
        self._accounts = accounts
        self._sessions = sessions
        self._connected_clients = connected_clients
        self._credentials = credentials
        self._passkeys = passkeys
        self._nostr_links = nostr_links
        self._profile_keys = profile_keys
        self._certificates = certificates
        self._profile_issuer = profile_issuer
        self._pod_tokens = pod_tokens
        self._pod_sessions = pod_sessions
        self._remaining = remaining
        self._events = events
        self._two_factors = two_factors
        self._sign_in = sign_in
        self._cookies = cookies
        self._renderer = renderer
        self._audit = audit
        self._base_url = base_url

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
        if self._verification is None:
            raise NotFound(WebCodes.NO_MAIL)
        account = page.owner().account
        await self._verification.ask(account, page.source.language)
        return self._changed(page, "email-asked")

    @route(ACCOUNT + "/mail", "POST")
    async def change_mail(self, page: PageRequest) -> Response:
        """Change which messages the person wants. Raises NotAuthenticated, WrongFormToken."""
        sent = await page.submission()
        account_id = page.owner().account.account_id
        wanted = sent.text("requests") == "yes"
        await self._accounts.set_mails_requests(account_id, wanted=wanted)
        return self._changed(page, "mail-changed")

    @route(ACCOUNT + "/email", "POST")
    async def change_email(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, RateLimited, and what is wrong with the form."""
        sent = await page.submission()
        owner = page.owner()
        try:
            await self._check_current(page, owner, sent)
            await self._accounts.set_email(
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
            await self._accounts.set_password(
                owner.account.account_id, sent.text("new"), source=page.source
            )
        except (UnusablePassword, PasswordsDiffer, WrongCurrentPassword) as error:
            return self._form_error(page, error)
        await self._pod_sessions.end_all(owner.account.web_id, _root_of(owner.account))
        stored = await self._accounts.read(owner.account.account_id)
        if stored is None:
            raise NotFound(WebCodes.ACCOUNT_DELETED)
        signed_in = await self._sign_in.begin(
            page, stored, lasting=owner.session.lasting, password=sent.text("new")
        )
        return self._changed(page, "password-changed", *signed_in.cookies)

    @route(LOGOUT_PATH, "POST")
    async def sign_out(self, page: PageRequest) -> Response:
        """``/idp/logout``. Raises WrongFormToken."""
        if page.open_session is None:
            return self._signed_out(page)
        await page.submission()
        await self._sessions.end(page.open_session.stored)
        account_id = page.open_session.account.account_id
        self._audit.note(AuditEvent.SIGNED_OUT, account_id=account_id)
        return self._signed_out(page)

    @route(SESSIONS_PATH, "POST", "DELETE", is_page=False)
    async def sign_out_everywhere(self, page: PageRequest) -> Response:
        """End every session, including this one. Raises NotAuthenticated, WrongFormToken."""
        await page.submission()
        owner = page.owner()
        account = owner.account
        endings = await self._pod_sessions.endings(account.web_id, _root_of(account))
        await self._sessions.end_all(account, endings)
        self._audit.note(AuditEvent.SIGNED_OUT_EVERYWHERE, account_id=owner.account.account_id)
        return self._signed_out(page)

    @route(ACCOUNT + "/delete", "GET", needs_terms=False)
    async def confirm_deletion(self, page: PageRequest) -> Response:
        """The page that says what will be deleted; requires a recent sign-in. Raises
        NotAuthenticated."""
        owner = page.owner()
        if not self._sessions.is_recent(owner):
            return see_other(again_url("delete"))
        return self._deletion_page(page, owner)

    @route(ACCOUNT + "/delete", "POST", needs_terms=False)
    async def delete(self, page: PageRequest) -> Response:
        """Delete the account and its pod.

        Raises NotAuthenticated, WrongFormToken, and AccessDenied without a recent sign-in.
        """
        sent = await page.submission()
        owner = page.owner()
        if not self._sessions.is_recent(owner):
            if page.wants_page:
                return see_other(again_url("delete"))
            raise AccessDenied(WebCodes.SIGN_IN_AGAIN_TO_DELETE)
        if sent.text("pod") != owner.account.pod:
            if page.wants_page:
                return self._deletion_page(page, owner, status=400)
            raise BadRequest(WebCodes.POD_NAME_MISSING)
        account = owner.account
        await self._accounts.delete(account.account_id, agent=account.web_id)
        if not page.wants_page:
            return json_response(204, None, self._cookies.clear(SESSION))
        return self._renderer.sign_in_page(
            page, "signed_out.html", headers=[self._cookies.clear(SESSION)], deleted=True
        )

    # --- parts --------------------------------------------------------------------------------

    async def _check_current(
        self, page: PageRequest, owner: OpenSession, sent: FormSubmission
    ) -> None:
        """Raises WrongCurrentPassword unless the form has the current password; RateLimited."""
        try:
            await self._sign_in.confirm(page, owner, sent.text("current"))
        except SignInFailed as error:
            raise WrongCurrentPassword from error

    def _form_error(
        self,
        page: PageRequest,
        error: PodsteadError,
        *,
        typed_email: str = "",
    ) -> Response:
        if not page.wants_page:
            raise error
        notice = Notice(_NOTICES[type(error)], typed_email)
        return see_other(page.back or SECURITY, self._cookies.set_notice(notice))

    def _changed(self, page: PageRequest, flash_message: str, *headers: HeaderField) -> Response:
        if not page.wants_page:
            return json_response(204, None, *headers)
        return see_other(
            page.back or SECURITY,
            self._cookies.set_notice(Notice(flash_message)),
            *headers,
        )

    def _signed_out(self, page: PageRequest) -> Response:
        forget = self._cookies.clear(SESSION)
        if not page.wants_page:
            return json_response(204, None, forget)
        return see_other(LOGIN, self._cookies.set_notice(Notice("signed-out")), forget)

    def _deletion_page(
        self, page: PageRequest, owner: OpenSession, *, status: int = 200
    ) -> Response:
        return self._renderer.account_page(
            page,
            "delete.html",
            status=status,
            pod_uri=self._pod_uri(owner),
            mistyped=status != 200,
        )

    async def facts(self, owner: OpenSession, *, changed: str | None) -> dict[str, Any]:
        """Everything that pages show about the account, by the names of the templates; ``changed``
        is what the person has just changed. Raises StorageError."""
        account = owner.account
        sessions = await self._sessions.of_account(account)
        return {
            "account": account,
            "pod_uri": self._pod_uri(owner),
            "asks_for_confirmation": (
                self._verification is not None
                and account.email is not None
                and not account.email_verified_s
            ),
            "sends_mail": self._verification is not None,
            "current": owner.session.public_id,
            "sessions": [(each.value, browser_name(each.value.user_agent)) for each in sessions],
            "applications": shown_applications(
                await self._connected_clients.of_account(account.account_id),
                base_url=self._base_url,
            ),
            "credentials": await self._credentials.of(account.account_id),
            "passkeys": (
                None
                if self._passkeys is None
                else await self._passkeys.of_account(account.account_id)
            ),
            "nostr_keys": (
                None
                if self._nostr_links is None
                else await self._nostr_links.of_account(account.account_id)
            ),
            "second_factors": await self._two_factors.of(account.account_id),
            "npub": npub,
            "identity_scope": IDENTITY_SCOPE,
            "issuer": self._profile_issuer.issuer,
            "issuer_is_named": await self._issuer_is_named(owner),
            "profile_keys": (
                () if self._profile_keys is None else await self._profile_keys.if_readable(account)
            ),
            "pod_tokens": await self._pod_tokens.of(account),
            "common_password": owner.session.common_password,
            "remaining": (
                await self._remaining.of(account) if changed == "password-changed" else ()
            ),
            "events": [
                (each, each.by or browser_name(each.user_agent))
                for each in await self._events(account.account_id)
            ],
            "certificates": self._certificates is not None,
            "certificate_keys": await self._certificate_keys(owner),
            "machine_time": machine_time,
            "format_day": format_day,
            "shown_time": shown_time,
        }

    async def _certificate_keys(self, owner: OpenSession) -> Sequence[OwnKey] | None:
        """``None`` if the profile cannot be read; the rest of the page still works."""
        if self._certificates is None:
            return ()
        try:
            return await self._certificates.of(owner.account)
        except (UnusableDocument, RemoteUnavailable):
            return None

    async def _issuer_is_named(self, owner: OpenSession) -> bool | None:
        """``None`` if the profile cannot be read."""
        try:
            return await self._profile_issuer.is_named_by(owner.account.web_id)
        except (UnusableDocument, RemoteUnavailable):
            return None

    def _pod_uri(self, owner: OpenSession) -> str:
        return f"{self._base_url}/{owner.account.pod}/"


def _root_of(account: Account) -> ResourcePath:
    """The root container of the pod of an account."""
    return ResourcePath(f"/{account.pod}/")


def _page_of_pods(view: str | None) -> str:
    return SECURITY if view is None else f"{SECURITY}?view={view_of(view).value}"
