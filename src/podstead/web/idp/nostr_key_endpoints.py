"""``/idp/account/nostr``: listing and linking a person's Nostr keys (A-128).

To link a key, a person signs in again and signs a challenge with the key. The script of the account
page does so with the browser's extension (NIP-07); programs can do it, too.
"""

from __future__ import annotations

from typing import Final

from podstead.core.errors import BadRequest, NotFound, ServerTrouble
from podstead.idp.challenges import Challenges
from podstead.idp.codes import IdpCodes
from podstead.idp.nostr.challenges import LINKING, SIGNING_IN, described
from podstead.idp.nostr.events import SignedEvents
from podstead.idp.nostr.links import NostrLinks, did_of
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import Account, NostrLink
from podstead.idp.sessions import OpenSession, Sessions
from podstead.nostr.npub import npub
from podstead.web.browsers import json_response
from podstead.web.forms import FormSubmission, read_submission
from podstead.web.idp.display import machine_time
from podstead.web.idp.removed_sign_in_methods import sign_in_method_removed
from podstead.web.idp.request_limit import RequestLimit
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.cookies import BROWSER, Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.request import with_checked_content
from podstead.web.response import Response
from podstead.web.routes import route

CHALLENGE_PATH: Final = "/idp/nostr/challenge"
SIGN_IN_PATH: Final = "/idp/nostr/login"
KEYS_PATH: Final = f"{ACCOUNT}/nostr"
_PATHS: Final = {LINKING: KEYS_PATH, SIGNING_IN: SIGN_IN_PATH}
"""The URL of the events that answer a challenge, by its purpose."""


class NostrKeyEndpoints:
    """Issues challenges; lists, links and unlinks keys, for the account page and for programs."""

    def __init__(
        self,
        *,
        links: NostrLinks,
        stated: ProfileKeys,
        events: SignedEvents,
        challenges: Challenges,
        sessions: Sessions,
        cookies: Cookies,
        limit: RequestLimit,
        base_url: str,
    ) -> None:
        self._links = links
        self._stated = stated
        self._events = events
        self._challenges = challenges
        self._sessions = sessions
        self._cookies = cookies
        self._limit = limit
        self._base_url = base_url

    @route(CHALLENGE_PATH, "POST")
    async def challenge(self, page: PageRequest) -> Response:
        """What the event must contain; a browser that has no cookie gets one. Raises BadRequest for
        an unknown purpose, RateLimited, Overloaded; for linking also NotAuthenticated and
        SignInAgain."""
        await self._limit.count(page)
        purpose = (await read_submission(page.request)).text("purpose") or SIGNING_IN
        if purpose not in _PATHS:
            raise BadRequest(f"The purpose of a challenge must be one of {', '.join(_PATHS)}")
        if purpose == LINKING:
            owner = self._recent_owner(page)
            issued = await self._challenges.issue(
                purpose, holder=owner.stored.key, account_id=owner.account.account_id
            )
        else:
            issued = await self._challenges.issue(purpose, holder=page.browser)
        has_cookie = self._cookies.secret(page.request, BROWSER) is not None
        cookies = [] if has_cookie else [self._cookies.set(BROWSER, page.browser)]
        return json_response(200, described(issued, url=self._base_url + _PATHS[purpose]), *cookies)

    @route(KEYS_PATH, "POST", is_page=False)
    async def link(self, page: PageRequest) -> Response:
        """Link the key that signed the request, and publish it unless the request says not to.

        Raises NotAuthenticated, SignInAgain, EventInvalid, ChallengeInvalid, BadRequest,
        RateLimited, and what :meth:`NostrLinks.link` raises.
        """
        await self._limit.count(page)
        owner = self._recent_owner(page)
        request = page.request
        proof = await self._events.verify_answer(
            request.fields.authorization,
            url=self._base_url + KEYS_PATH,
            purpose=LINKING,
            holder=owner.stored.key,
            account_id=owner.account.account_id,
            has_content=request.body.announced,
        )
        if proof.content_digest is not None:
            request = await with_checked_content(request, proof.content_digest)
        publish = _choice(await read_submission(request), "publish")
        link = await self._links.link(
            owner.owner, proof.public_key, source=page.source, publish=publish
        )
        body = {"pubkey": link.public_key, "did": did_of(link.public_key)}
        return json_response(201, body, self._cookies.set_notice(Notice("nostr-key-linked")))

    @route(KEYS_PATH, "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        stored = await self._links.of_account(page.owner().account.account_id)
        return json_response(200, {"keys": [_as_json(each.value) for each in stored]})

    @route(KEYS_PATH + "/{key}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        stored = await self._links.find(page.segment)
        if stored is None or stored.value.account_id != page.owner().account.account_id:
            raise NotFound(IdpCodes.NO_SUCH_KEY)
        return json_response(200, _as_json(stored.value))

    @route(KEYS_PATH + "/{key}", "POST", "DELETE", is_page=False)
    async def unlink(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound, LastFactor."""
        await page.submission()
        owner = page.recent_owner("nostr")
        method = await self._links.unlink(owner.owner, page.segment, source=page.source)
        is_stated = await self._is_stated(owner.account, page.segment)
        flash_message = "nostr-key-stated" if is_stated else "nostr-key-unlinked"
        response = sign_in_method_removed(page, self._cookies, method, flash_message=flash_message)
        if is_stated and not page.wants_page:
            return json_response(200, {"inProfile": True}, *response.headers)
        return response

    def _recent_owner(self, page: PageRequest) -> OpenSession:
        return page.recent_owner()

    async def _is_stated(self, account: Account, public_key: str) -> bool:
        """Whether the profile may still name a key that was unlinked."""
        try:
            return await self._stated.states(account, public_key)
        except ServerTrouble:
            return True  # a profile that cannot be read may still name it


def _choice(sent: FormSubmission, name: str) -> bool:
    value = sent.fields.get(name, True)
    if not isinstance(value, bool):
        raise BadRequest(f"The field {name} must be true or false")
    return value


def _as_json(link: NostrLink) -> dict[str, object]:
    used_s = link.last_used_s
    return {
        "pubkey": link.public_key,
        "npub": npub(link.public_key),
        "did": did_of(link.public_key),
        "published": link.published,
        "linked": machine_time(link.created_s),
        "lastUsed": None if used_s is None else machine_time(used_s),
    }
