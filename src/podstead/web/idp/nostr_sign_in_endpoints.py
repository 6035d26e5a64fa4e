"""How does a person sign in with a Nostr key? (A-125, A-126, A-131)

The script of the sign-in page has the browser's extension (NIP-07) sign an event for the URL that
it is sent to. In an interaction that URL can be used only once; otherwise the event also answers a
challenge. A body is optional: it says whether the person wants to stay signed in (``remember``),
whether they sign in again for something that only a linked key allows (``again``), and which name
they typed (``username``), without which a key that only a profile names cannot sign in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Final

from podstead.core.errors import BadRequest, RateLimited, RequestRefused
from podstead.idp.authorizations import Authorizations
from podstead.idp.challenges import Challenges
from podstead.idp.nostr.challenges import LINKING, SIGNING_IN, described
from podstead.idp.nostr.events import EventInvalid, KeyProof, SignedEvents
from podstead.idp.nostr.proven_keys import ProvenKeys
from podstead.idp.nostr.sign_in import FACTOR, KeyUnknown, NostrSignIn, SignedInByKey
from podstead.idp.sign_in import NOSTR_KEY
from podstead.web.browsers import json_response
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, read_submission
from podstead.web.idp.browser_sign_in import BrowserSignIn, typed_login
from podstead.web.idp.interaction_pages import UID_SEGMENT
from podstead.web.idp.nostr_key_endpoints import KEYS_PATH
from podstead.web.idp.registration_pages import registration_path
from podstead.web.idp.replies import INTERACTION_PATH
from podstead.web.idp.request_limit import RequestLimit
from podstead.web.idp.verified_sign_in import VerifiedSignIn
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.cookies import BROWSER
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.request import with_checked_content
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route

CHALLENGE_PATH: Final = "/idp/nostr/challenge"
SIGN_IN_PATH: Final = "/idp/nostr/login"
_PATHS: Final = {LINKING: KEYS_PATH, SIGNING_IN: SIGN_IN_PATH}
"""The URL of the events that answer a challenge, by its purpose."""

_Handler = Callable[["NostrSignInEndpoints", PageRequest], Awaitable[Response]]


def _answering(handler: _Handler) -> _Handler:
    """Errors in the format of A-125."""

    @wraps(handler)
    async def answer(self: NostrSignInEndpoints, page: PageRequest) -> Response:
        try:
            return await handler(self, page)
        except RequestRefused as refusal:
            return self.refused(page, refusal)

    return answer


@dataclass(frozen=True, slots=True)
class NostrSignInEndpoints:
    """Accepts signed events instead of passwords."""

    site: Site
    events: SignedEvents
    nostr_sign_in: NostrSignIn
    proven: ProvenKeys
    authorizations: Authorizations
    browser_sign_in: BrowserSignIn
    verified: VerifiedSignIn
    challenges: Challenges
    limit: RequestLimit

    @route(CHALLENGE_PATH, "POST")
    async def challenge(self, page: PageRequest) -> Response:
        """What the event must contain; a browser that has no cookie gets one. Raises BadRequest for
        an unknown purpose, RateLimited, Overloaded; for linking also NotAuthenticated and
        SignInAgain."""
        await self.limit.count(page)
        purpose = (await read_submission(page.request)).text("purpose") or SIGNING_IN
        if purpose not in _PATHS:
            raise BadRequest(f"The purpose of a challenge must be one of {', '.join(_PATHS)}")
        if purpose == LINKING:
            owner = page.recent_owner()
            issued = await self.challenges.issue(
                purpose, holder=owner.stored.key, account_id=owner.account.account_id
            )
        else:
            issued = await self.challenges.issue(purpose, holder=page.browser)
        has_cookie = self.site.cookies.secret(page.request, BROWSER) is not None
        cookies = [] if has_cookie else [self.site.cookies.set(BROWSER, page.browser)]
        return json_response(
            200, described(issued, url=self.site.base_url + _PATHS[purpose]), *cookies
        )

    @_answering
    @route(INTERACTION_PATH + "/{uid}/schnorr-login", "POST")
    async def sign_in_to_interaction(self, page: PageRequest) -> Response:
        """``schnorr-login``: record the key's account in the interaction, and return where to
        continue."""
        await self.limit.count(page)
        uid = page.path_segment(UID_SEGMENT)
        pending = await self.authorizations.pending(uid, browser=page.browser)
        path = f"{INTERACTION_PATH}/{pending.uid}"
        proof = await self._proof(page, f"{path}/schnorr-login", answers_challenge=False)
        sent = await _content(page, proof)
        signed_in = await self._account(page, proof, sent)
        await self.verified.note(
            pending,
            signed_in.account,
            factor=FACTOR,
            amr=NOSTR_KEY,
            lasting=sent.ticked("remember"),
            restricted=signed_in.restricted,
            sign_in_method=signed_in.sign_in_method,
        )
        return _succeeded(f"{path}/schnorr-complete")

    @route(INTERACTION_PATH + "/{uid}/schnorr-complete", "GET")
    async def complete(self, page: PageRequest) -> Response:
        """``schnorr-complete``: continue an interaction in which this browser's key was verified.
        Raises AccessDenied without that, NotFound, BadRequest."""
        return await self.verified.complete(page, factor=FACTOR)

    @_answering
    @route(SIGN_IN_PATH, "POST")
    async def sign_in(self, page: PageRequest) -> Response:
        """Sign in without an application, or sign in again."""
        await self.limit.count(page)
        proof = await self._proof(page, SIGN_IN_PATH, answers_challenge=True)
        sent = await _content(page, proof)
        signed_in = await self._account(page, proof, sent, only_linked=sent.ticked("again"))
        begun = await self.browser_sign_in.begin(
            page,
            signed_in.account,
            lasting=sent.ticked("remember"),
            factor=FACTOR,
            amr=NOSTR_KEY,
            restricted=signed_in.restricted,
            sign_in_method=signed_in.sign_in_method,
        )
        return _succeeded(ACCOUNT, *begun.cookies)

    def refused(self, page: PageRequest, refusal: RequestRefused) -> Response:
        """What the script shows, and where an account can be created with a key that has none."""
        status, _ = status_of(refusal)
        body: dict[str, object] = {"success": False, "error": str(refusal)}
        headers: list[HeaderField] = []
        if isinstance(refusal, RateLimited):
            body["retryAfter"] = refusal.retry_after_s
            headers.append((b"retry-after", str(refusal.retry_after_s).encode("ascii")))
        if status == 401:
            realm = f'Nostr realm="{self.site.base_url}"'
            headers.append((b"www-authenticate", realm.encode("ascii")))
        if isinstance(refusal, KeyUnknown) and not self.site.registration.is_closed:
            body["registerUrl"] = registration_path(_interaction(page))
        return json_response(status, body, *headers)

    async def _proof(self, page: PageRequest, path: str, *, answers_challenge: bool) -> KeyProof:
        """Raises EventInvalid, ChallengeInvalid, BadRequest, HeadersTooLarge, Overloaded,
        StorageError."""
        request, url = page.request, self.site.base_url + path
        fields, has_content = request.fields.authorization, request.body.announced
        try:
            if not answers_challenge:
                return await self.events.verify(fields, url=url, has_content=has_content)
            return await self.events.verify_answer(
                fields,
                url=url,
                purpose=SIGNING_IN,
                holder=page.browser,
                has_content=has_content,
            )
        except EventInvalid:
            self.nostr_sign_in.failed()
            raise

    async def _account(
        self,
        page: PageRequest,
        proof: KeyProof,
        sent: FormSubmission,
        *,
        only_linked: bool = False,
    ) -> SignedInByKey:
        """Raises what :meth:`NostrSignIn.sign_in` does; the browser has proven to hold the key,
        whatever comes of it."""
        try:
            return await self.nostr_sign_in.sign_in(
                proof, name=typed_login(sent), only_linked=only_linked
            )
        except KeyUnknown:
            if not self.site.registration.is_closed:
                await self.proven.keep(proof, browser=page.browser)
            raise


async def _content(page: PageRequest, proof: KeyProof) -> FormSubmission:
    """What was sent with the event, mostly nothing. Raises what is wrong with it."""
    request = page.request
    if proof.content_digest is not None:
        request = await with_checked_content(request, proof.content_digest)
    return await read_submission(request)


def _interaction(page: PageRequest) -> str | None:
    """The uid of the interaction that the request is about, if it is about one."""
    is_in_one = page.request.path.startswith(f"{INTERACTION_PATH}/")
    return page.path_segment(UID_SEGMENT) if is_in_one else None


def _succeeded(path: str, *headers: HeaderField) -> Response:
    return json_response(200, {"success": True, "redirectUrl": path}, *headers)
