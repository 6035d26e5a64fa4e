"""``/idp/interaction/{uid}``: the steps before an application gets its response.

The person signs in, and consents unless they did so before (A-56 to A-59). Both pages name the
application, where it is, and the URL that the person is sent to afterwards.
"""

from __future__ import annotations

from typing import Final

from podstead.core.errors import AccessDenied
from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.authorizations import Authorizations, Pending
from podstead.idp.client_metadata import permissions
from podstead.idp.grants import Stage, signing_in_consents
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.records import Account
from podstead.idp.sign_in import SignInFailed
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import read_query, read_submission
from podstead.web.idp.browser_sign_in import BrowserSignIn, SecondFactorNeeded
from podstead.web.idp.client_display import ClientDisplay, client_display
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.replies import INTERACTION_PATH, next_response
from podstead.web.idp.session_guard import BrowserRequest, path_segment
from podstead.web.response import Response
from podstead.web.routes import route

UID_SEGMENT: Final = 3


class InteractionPages:
    """Shows the next step, and accepts the person's answers."""

    def __init__(
        self,
        *,
        authorizations: Authorizations,
        sign_in: BrowserSignIn,
        renderer: Renderer,
        audit: Audit,
        base_url: str,
        pods_url: str,
        registration_open: bool,
        passkeys: Passkeys | None,
        nostr: bool,
    ) -> None:
        self._authorizations = authorizations
        self._sign_in = sign_in
        self._renderer = renderer
        self._audit = audit
        self._base_url = base_url
        self._pods_url = pods_url
        self._registration_open = registration_open
        self._passkeys = passkeys
        self._nostr = nostr

    @route(INTERACTION_PATH + "/{uid}", "GET")
    async def get(self, browser_request: BrowserRequest) -> Response:
        """The page of the next step. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self._pending(browser_request)
        if pending.stage is Stage.SIGN_IN or not _is_theirs(pending, browser_request):
            return self._sign_in_page(browser_request, pending)
        if "switch" in read_query(browser_request.request):
            return self._sign_in_page(browser_request, pending)
        if pending.stage is Stage.CONSENT:
            return await self._consent_page(browser_request, pending)
        return see_other(resumption(pending))

    @route(INTERACTION_PATH + "/{uid}", "POST")
    @route(INTERACTION_PATH + "/{uid}/login", "POST")
    async def login(self, browser_request: BrowserRequest) -> Response:
        """Sign in, in this interaction. Raises RateLimited, BadRequest, NotFound, AccessDenied."""
        pending = await self._pending(browser_request)
        sent = await read_submission(browser_request.request)
        try:
            signed_in = await self._sign_in.by_password(
                browser_request, sent, path=resumption(pending), uid=pending.uid
            )
        except SecondFactorNeeded as needed:
            return self._sign_in.second_step(browser_request, needed)
        except SignInFailed as error:
            back = f"{INTERACTION_PATH}/{pending.uid}"
            return self._sign_in.failed(browser_request, sent, error, path=back)
        await self._authorizations.signed_in(pending, signed_in.session)
        return self._sign_in.succeeded(browser_request, signed_in, path=resumption(pending))

    @route(INTERACTION_PATH + "/{uid}/confirm", "POST")
    async def confirm(self, browser_request: BrowserRequest) -> Response:
        """The person consents. Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(browser_request)
        sent = await read_submission(browser_request.request)
        if not _is_theirs(pending, browser_request):
            raise AccessDenied(WebCodes.OTHER_ACCOUNT_SIGNED_IN)
        interaction = pending.interaction
        may_state_identity = IDENTITY_SCOPE in interaction.request.scopes and sent.ticked(
            IDENTITY_SCOPE
        )
        await self._authorizations.consented(pending, may_state_identity=may_state_identity)
        self._audit.note(
            AuditEvent.CONSENT_GIVEN,
            account_id=interaction.account_id,
            client_id=interaction.request.client_id,
            **({"also": IDENTITY_SCOPE} if may_state_identity else {}),
        )
        path = resumption(pending)
        if browser_request.wants_page:
            return see_other(path)
        return json_response(200, {"location": self._base_url + path})

    @route(INTERACTION_PATH + "/{uid}/abort", "POST")
    async def abort(self, browser_request: BrowserRequest) -> Response:
        """The person declines (A-59). Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(browser_request)
        return next_response(await self._authorizations.aborted(pending), self._renderer)

    async def _pending(self, browser_request: BrowserRequest) -> Pending:
        uid = path_segment(browser_request, UID_SEGMENT)
        return await self._authorizations.pending(uid, browser=browser_request.browser)

    def _sign_in_page(self, browser_request: BrowserRequest, pending: Pending) -> Response:
        session = browser_request.open_session
        typed = browser_request.flash_message.typed if browser_request.flash_message else ""
        hint = pending.interaction.request.login_hint or (session.account.pod if session else "")
        return self._renderer.page(
            "sign_in.html",
            form_targets=[pending.interaction.request.redirect_uri],
            flash_message=browser_request.flash_message.name
            if browser_request.flash_message
            else None,
            typed=typed or hint,
            action=f"{INTERACTION_PATH}/{pending.uid}",
            again=None,
            client=self._client_display(pending),
            permissions=permissions(pending.interaction.request.scopes),
            consents=signing_in_consents(pending.interaction),
            registration=self._registration_open,
            uid=pending.uid,
            passkeys=self._passkeys is not None,
            nostr=self._nostr,
            nostr_address=f"{self._base_url}{INTERACTION_PATH}/{pending.uid}/schnorr-login",
            afterwards=None,
        )

    async def _consent_page(self, browser_request: BrowserRequest, pending: Pending) -> Response:
        account = browser_request.owner().account
        return self._renderer.page(
            "consent.html",
            form_targets=[pending.interaction.request.redirect_uri],
            client=self._client_display(pending),
            scopes=pending.interaction.request.scopes,
            permissions=permissions(pending.interaction.request.scopes),
            identity_scope=IDENTITY_SCOPE,
            account=account,
            uid=pending.uid,
            offer_passkey=await self._has_no_passkey(account),
        )

    def _client_display(self, pending: Pending) -> ClientDisplay:
        redirect_uri = pending.interaction.request.redirect_uri
        return client_display(pending.client, redirect_uri, base_url=self._pods_url)

    async def _has_no_passkey(self, account: Account) -> bool:
        """Whether a passkey can be added to an account that has none (A-124)."""
        if self._passkeys is None:
            return False
        return not await self._passkeys.of_account(account.account_id)


def _is_theirs(pending: Pending, browser_request: BrowserRequest) -> bool:
    """Whether the account of the interaction is signed in to in this browser."""
    session = browser_request.open_session
    return session is not None and session.account.account_id == pending.interaction.account_id


def resumption(pending: Pending) -> str:
    """The URL at which an interaction continues after a step."""
    return f"{AUTHORIZATION_PATH}/{pending.uid}"
