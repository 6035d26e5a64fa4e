"""``/idp/interaction/{uid}``: the steps before an application gets its response.

The person signs in, and consents unless they did so before (A-56 to A-59). Both pages name the
application, where it is, and the URL that the person is sent to afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.authorizations import Authorizations, PendingAuthorization
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
from podstead.web.idp.replies import INTERACTION_PATH, next_response
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

UID_SEGMENT: Final = 3


@dataclass(frozen=True, slots=True)
class InteractionPages:
    """Shows the next step, and accepts the person's answers."""

    site: Site
    authorizations: Authorizations
    sign_in: BrowserSignIn
    audit: Audit
    passkeys: Passkeys | None
    nostr: bool

    @route(INTERACTION_PATH + "/{uid}", "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page of the next step. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self._pending(page)
        if pending.stage is Stage.SIGN_IN or not _is_theirs(pending, page):
            return self._sign_in_page(page, pending)
        if "switch" in read_query(page.request):
            return self._sign_in_page(page, pending)
        if pending.stage is Stage.CONSENT:
            return await self._consent_page(page, pending)
        return see_other(resumption(pending))

    @route(INTERACTION_PATH + "/{uid}", "POST")
    @route(INTERACTION_PATH + "/{uid}/login", "POST")
    async def login(self, page: PageRequest) -> Response:
        """Sign in, in this interaction. Raises RateLimited, BadRequest, NotFound, AccessDenied."""
        pending = await self._pending(page)
        sent = await read_submission(page.request)
        try:
            signed_in = await self.sign_in.by_password(
                page, sent, path=resumption(pending), uid=pending.uid
            )
        except SecondFactorNeeded as needed:
            return self.sign_in.second_step(page, needed)
        except SignInFailed as error:
            back = f"{INTERACTION_PATH}/{pending.uid}"
            return self.sign_in.failed(page, sent, error, path=back)
        await self.authorizations.signed_in(pending, signed_in.session)
        return self.sign_in.succeeded(page, signed_in, path=resumption(pending))

    @route(INTERACTION_PATH + "/{uid}/confirm", "POST")
    async def confirm(self, page: PageRequest) -> Response:
        """The person consents. Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(page)
        sent = await read_submission(page.request)
        if not _is_theirs(pending, page):
            raise AccessDenied(WebCodes.OTHER_ACCOUNT_SIGNED_IN)
        interaction = pending.interaction
        may_state_identity = IDENTITY_SCOPE in interaction.request.scopes and sent.ticked(
            IDENTITY_SCOPE
        )
        await self.authorizations.consented(pending, may_state_identity=may_state_identity)
        self.audit.note(
            AuditEvent.CONSENT_GIVEN,
            account_id=interaction.account_id,
            client_id=interaction.request.client_id,
            **({"also": IDENTITY_SCOPE} if may_state_identity else {}),
        )
        path = resumption(pending)
        if page.wants_page:
            return see_other(path)
        return json_response(200, {"location": self.site.base_url + path})

    @route(INTERACTION_PATH + "/{uid}/abort", "POST")
    async def abort(self, page: PageRequest) -> Response:
        """The person declines (A-59). Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(page)
        return next_response(page, await self.authorizations.aborted(pending), self.site.renderer)

    async def _pending(self, page: PageRequest) -> PendingAuthorization:
        uid = page.path_segment(UID_SEGMENT)
        return await self.authorizations.pending(uid, browser=page.browser)

    def _sign_in_page(self, page: PageRequest, pending: PendingAuthorization) -> Response:
        session = page.open_session
        typed = page.notice.subject if page.notice else ""
        hint = pending.interaction.request.login_hint or (session.account.pod if session else "")
        return self.site.sign_in_page(
            page,
            "sign_in.html",
            form_targets=[pending.interaction.request.redirect_uri],
            typed=typed or hint,
            action=f"{INTERACTION_PATH}/{pending.uid}",
            again=None,
            client=self._client_display(pending),
            permissions=permissions(pending.interaction.request.scopes),
            consents=signing_in_consents(pending.interaction),
            registration=not self.site.registration.is_closed,
            uid=pending.uid,
            passkeys=self.passkeys is not None,
            nostr=self.nostr,
            nostr_address=f"{self.site.base_url}{INTERACTION_PATH}/{pending.uid}/schnorr-login",
            afterwards=None,
        )

    async def _consent_page(self, page: PageRequest, pending: PendingAuthorization) -> Response:
        account = page.owner().account
        return self.site.sign_in_page(
            page,
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

    def _client_display(self, pending: PendingAuthorization) -> ClientDisplay:
        redirect_uri = pending.interaction.request.redirect_uri
        return client_display(pending.client, redirect_uri, base_url=self.site.pods_url)

    async def _has_no_passkey(self, account: Account) -> bool:
        """Whether a passkey can be added to an account that has none (A-124)."""
        if self.passkeys is None:
            return False
        return not await self.passkeys.of_account(account.account_id)


def _is_theirs(pending: PendingAuthorization, page: PageRequest) -> bool:
    """Whether the account of the interaction is signed in to in this browser."""
    session = page.open_session
    return session is not None and session.account.account_id == pending.interaction.account_id


def resumption(pending: PendingAuthorization) -> str:
    """The URL at which an interaction continues after a step."""
    return f"{AUTHORIZATION_PATH}/{pending.uid}"
