"""The pages and endpoints of Nostr keys at the identity provider.

``/idp/account/nostr`` and ``/idp/account/profile-keys``: a person's keys (A-128). To link a key, a
person signs in again and signs a challenge with the key. The script of the page about security does
so with the browser's extension (NIP-07); programs can do it, too. A key that only the profile names
authenticates requests, but cannot sign in unless the owner allows it here. ``/idp/nostr``: signing
in with a key (A-125). ``/.well-known/did/nostr``: whose a published key is (A-129).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, NotFound, RateLimited, RequestRefused, ServerTrouble
from podstead.core.identity import Identity
from podstead.features.nostr import keys as nostr_keys
from podstead.features.nostr import sign_in as nostr_sign_ins
from podstead.features.nostr.links import NostrLinks, ProvenKeys
from podstead.features.nostr.profile_keys import AllowedKeys, ProfileKeys
from podstead.features.nostr.records import NostrCodes, NostrEvents, NostrLink
from podstead.idp.accounts import Accounts
from podstead.idp.authorizations import Authorizations
from podstead.idp.challenges import Challenges
from podstead.idp.records import Account
from podstead.idp.sessions import OpenSession
from podstead.storage.record_store import Versioned
from podstead.storage.records import EntryId
from podstead.web.account.collections import Collection, Removed
from podstead.web.account.event_texts import add_event_texts
from podstead.web.browsers import json_response
from podstead.web.cors import CorsPolicy
from podstead.web.description_endpoints import public_document
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, read_submission
from podstead.web.pages.addresses import ACCOUNT, AGAIN
from podstead.web.pages.cookies import BROWSER, FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import machine_time
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.request import Request, with_checked_content
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import INTERACTION_PATH, UID_SEGMENT, VerifiedSignIn
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, RequestLimit, typed_login
from podstead.web.sign_in.registration import registration_path

KEYS_PATH: Final = f"{ACCOUNT}/nostr"
REQUESTS_PER_MINUTE: Final = 30
"""The maximum number of requests to link a Nostr key or to sign in with one that an address may
send in a minute. Each of the two operations takes two requests."""

AGAIN["nostr"] = f"{ACCOUNT}#nostr-keys"
add_flash_messages(
    Tone.DONE,
    nostr_key_linked=N_("The Nostr key has been linked."),
    nostr_key_unlinked=N_(
        "The Nostr key has been unlinked. Browsers and applications that were signed in "
        "with it are signed out."
    ),
    nostr_key_stated=N_(
        "The Nostr key has been unlinked. However, your profile still names it, so "
        "requests signed with it still act as you. Remove it from your profile."
    ),
    profile_key_allowed=N_("You can now sign in with this key of your profile."),
    profile_key_ended=N_(
        "You can no longer sign in with this key. Requests signed with it still act as "
        "you for as long as your profile names it."
    ),
)
add_event_texts(
    {
        NostrEvents.KEY_LINKED: N_("Nostr key linked"),
        NostrEvents.KEY_UNLINKED: N_("Nostr key unlinked"),
        NostrEvents.PROFILE_KEY_NAMED: N_("Nostr key named by the profile"),
        NostrEvents.PROFILE_KEY_UNNAMED: N_("Nostr key no longer named by the profile"),
        NostrEvents.PROFILE_KEY_ALLOWED: N_("Nostr key of the profile allowed to sign in"),
        NostrEvents.PROFILE_KEY_ENDED: N_("Nostr key of the profile no longer signs in"),
    }
)


@dataclass(frozen=True)
class NostrKeyCollection(Collection[Versioned[NostrLink]]):
    """The keys that are linked to the account."""

    below = KEYS_PATH
    name = "keys"
    shown_as = "nostr_keys"
    missing = NostrCodes.NO_SUCH_KEY
    purpose = "nostr"
    credential = N_("Nostr key")

    links: NostrLinks
    stated: ProfileKeys
    events: nostr_sign_ins.SignedEvents
    limit: RequestLimit

    async def entries(self, owner: OpenSession) -> Sequence[Versioned[NostrLink]]:
        return await self.links.of_account(owner.account.account_id)

    def key(self, entry: Versioned[NostrLink]) -> str:
        return entry.key

    def title(self, entry: Versioned[NostrLink]) -> str:
        return nostr_keys.npub(entry.key)

    def as_json(self, entry: Versioned[NostrLink]) -> dict[str, object]:
        link = entry.value
        used_s = link.last_used_s
        return {
            "pubkey": link.public_key,
            "npub": nostr_keys.npub(link.public_key),
            "did": nostr_keys.did_of(link.public_key),
            "published": link.published,
            "linked": machine_time(link.created_s),
            "lastUsed": None if used_s is None else machine_time(used_s),
        }

    @route("", "POST", is_page=False)
    async def link(self, page: PageRequest) -> Response:
        """Link the key that signed the request, and publish it unless the request says not to.

        Raises NotAuthenticated, SignInAgain, EventInvalid, ChallengeInvalid, BadRequest,
        RateLimited, and what :meth:`NostrLinks.link` raises.
        """
        await self.limit.count(page)
        owner = page.recent_owner()
        request = page.request
        proof = await self.events.verify_answer(
            request.fields.authorization,
            url=self.site.base_url + KEYS_PATH,
            purpose=nostr_sign_ins.LINKING,
            holder=owner.stored.key,
            account_id=owner.account.account_id,
            has_content=request.body.announced,
        )
        if proof.content_digest is not None:
            request = await with_checked_content(request, proof.content_digest)
        publish = _choice(await read_submission(request), "publish")
        link = await self.links.link(
            owner.owner, proof.public_key, source=page.source, publish=publish
        )
        body = {"pubkey": link.public_key, "did": nostr_keys.did_of(link.public_key)}
        return json_response(
            201, body, self.site.cookies.set_flash_message(FlashMessage("nostr-key-linked"))
        )

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Unlink a key. Raises NotFound, LastFactor."""
        owner = page.owner()
        method = await self.links.unlink(owner.owner, key, source=page.source)
        if await self._is_stated(owner.account, key):
            return Removed("nostr-key-stated", method, {"inProfile": True})
        return Removed("nostr-key-unlinked", method)

    async def _is_stated(self, account: Account, public_key: str) -> bool:
        """Whether the profile may still name a key that was unlinked."""
        try:
            return await self.stated.states(account, public_key)
        except ServerTrouble:
            return True  # a profile that cannot be read may still name it


def _choice(sent: FormSubmission, name: str) -> bool:
    value = sent.fields.get(name, True)
    if not isinstance(value, bool):
        raise BadRequest(f"The field {name} must be true or false")
    return value


@dataclass(frozen=True, slots=True)
class ListedProfileKey:
    """A key that is not linked: whether the profile names it, and since when it may sign in."""

    public_key: str
    is_stated: bool
    allowed_s: int | None
    sign_in_method: EntryId | None


@dataclass(frozen=True)
class ProfileKeyCollection(Collection[ListedProfileKey]):
    """The keys that are not linked to the account and that its profile names, or that may sign in
    while it does."""

    below = f"{ACCOUNT}/profile-keys"
    name = "keys"
    shown_as = "profile_keys"
    missing = NostrCodes.NO_SUCH_KEY
    credential = N_("Nostr key of your profile")

    stated: ProfileKeys
    links: NostrLinks
    allowed: AllowedKeys

    async def entries(self, owner: OpenSession) -> Sequence[ListedProfileKey]:
        account = owner.account
        linked = {each.key for each in await self.links.of_account(account.account_id)}
        stated = await self.stated.keys_of(account)
        allowed = {
            each.value.public_key: each
            for each in await self.allowed.of_account(account.account_id)
        }
        keys = sorted((stated - linked) | allowed.keys())
        return [
            ListedProfileKey(
                key,
                is_stated=key in stated,
                allowed_s=allowed[key].value.created_s if key in allowed else None,
                sign_in_method=allowed[key].entry if key in allowed else None,
            )
            for key in keys
        ]

    async def shown(self, owner: OpenSession) -> object:
        try:
            return await self.entries(owner)
        except ServerTrouble:
            return None

    def key(self, entry: ListedProfileKey) -> str:
        return entry.public_key

    def title(self, entry: ListedProfileKey) -> str:
        return nostr_keys.npub(entry.public_key)

    def may_remove(self, entry: ListedProfileKey) -> bool:
        return entry.allowed_s is not None

    def as_json(self, entry: ListedProfileKey) -> dict[str, object]:
        allowed_s = entry.allowed_s
        return {
            "pubkey": entry.public_key,
            "npub": nostr_keys.npub(entry.public_key),
            "did": nostr_keys.did_of(entry.public_key),
            "inProfile": entry.is_stated,
            "signsInSince": None if allowed_s is None else machine_time(allowed_s),
        }

    @route("", "POST", is_page=False)
    async def allow(self, page: PageRequest) -> Response:
        """Allow a key to sign in. Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound,
        Conflict, StorageError, Overloaded."""
        sent = await page.submission()
        owner = page.recent_owner("nostr")
        await self.allowed.allow(owner.owner, sent.text("key"), page.source)
        return self.site.done(page, "profile-key-allowed")

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Withdraw the permission of a key."""
        owner = page.owner()
        for each in await self.entries(owner):
            if each.public_key == key:
                await self.allowed.end(owner.account, key, page.source)
                return Removed("profile-key-ended", each.sign_in_method or "")
        raise NotFound(NostrCodes.NO_SUCH_KEY)


CHALLENGE_PATH: Final = "/idp/nostr/challenge"
SIGN_IN_PATH: Final = "/idp/nostr/login"
_PATHS: Final = {nostr_sign_ins.LINKING: KEYS_PATH, nostr_sign_ins.SIGNING_IN: SIGN_IN_PATH}
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
    events: nostr_sign_ins.SignedEvents
    nostr_sign_in: nostr_sign_ins.NostrSignIn
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
        purpose = (await read_submission(page.request)).text("purpose") or nostr_sign_ins.SIGNING_IN
        if purpose not in _PATHS:
            raise BadRequest(f"The purpose of a challenge must be one of {', '.join(_PATHS)}")
        if purpose == nostr_sign_ins.LINKING:
            owner = page.recent_owner()
            issued = await self.challenges.issue(
                purpose, holder=owner.stored.key, account_id=owner.account.account_id
            )
        else:
            issued = await self.challenges.issue(purpose, holder=page.browser)
        has_cookie = self.site.cookies.secret(page.request, BROWSER) is not None
        cookies = [] if has_cookie else [self.site.cookies.set(BROWSER, page.browser)]
        return json_response(
            200,
            nostr_sign_ins.described(issued, url=self.site.base_url + _PATHS[purpose]),
            *cookies,
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
            factor=nostr_sign_ins.FACTOR,
            amr=nostr_sign_ins.AMR,
            lasting=sent.ticked("remember"),
            restricted=signed_in.restricted,
            sign_in_method=signed_in.sign_in_method,
        )
        return _succeeded(f"{path}/schnorr-complete")

    @route(INTERACTION_PATH + "/{uid}/schnorr-complete", "GET")
    async def complete(self, page: PageRequest) -> Response:
        """``schnorr-complete``: continue an interaction in which this browser's key was verified.
        Raises AccessDenied without that, NotFound, BadRequest."""
        return await self.verified.complete(page, factor=nostr_sign_ins.FACTOR)

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
            factor=nostr_sign_ins.FACTOR,
            amr=nostr_sign_ins.AMR,
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
        if isinstance(refusal, nostr_sign_ins.KeyUnknown) and not self.site.registration.is_closed:
            body["registerUrl"] = registration_path(_interaction(page))
        return json_response(status, body, *headers)

    async def _proof(
        self, page: PageRequest, path: str, *, answers_challenge: bool
    ) -> nostr_sign_ins.KeyProof:
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
                purpose=nostr_sign_ins.SIGNING_IN,
                holder=page.browser,
                has_content=has_content,
            )
        except nostr_sign_ins.EventInvalid:
            self.nostr_sign_in.failed()
            raise

    async def _account(
        self,
        page: PageRequest,
        proof: nostr_sign_ins.KeyProof,
        sent: FormSubmission,
        *,
        only_linked: bool = False,
    ) -> nostr_sign_ins.SignedInByKey:
        """Raises what :meth:`NostrSignIn.sign_in` does; the browser has proven to hold the key,
        whatever comes of it."""
        try:
            return await self.nostr_sign_in.sign_in(
                proof, name=typed_login(sent), only_linked=only_linked
            )
        except nostr_sign_ins.KeyUnknown:
            if not self.site.registration.is_closed:
                await self.proven.keep(proof.public_key, browser=page.browser)
            raise


async def _content(page: PageRequest, proof: nostr_sign_ins.KeyProof) -> FormSubmission:
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


DOCUMENT_AGE_S: Final = 60
"""How long a document may be cached; after that, an unlinked key is gone everywhere."""


@dataclass(frozen=True, slots=True)
class DidDocumentEndpoint:
    """Serves the documents of keys that are linked and published."""

    links: NostrLinks
    accounts: Accounts

    @route(nostr_keys.DID_PATH + "/{key}", "GET", "HEAD", sharing=CorsPolicy.ANYONE)
    async def get(self, request: Request, _: Identity | None) -> Response:
        public_key = nostr_keys.key_named(request.path.rpartition("/")[2])
        if public_key is None:
            raise BadRequest("A Nostr key must be 64 lowercase hexadecimal digits")
        document = nostr_keys.did_document(public_key, web_id=await self._web_id_of(public_key))
        content = msgspec.json.encode(document)
        return public_document(
            request, content, media_type=nostr_keys.DID_MEDIA_TYPE, age_s=DOCUMENT_AGE_S
        )

    async def _web_id_of(self, public_key: str) -> str:
        link = await self.links.find(public_key)
        if link is not None and link.value.published:
            account = await self.accounts.read(link.value.account_id)
            if account is not None and not account.value.disabled:
                return account.value.web_id
        raise NotFound("No account on this server has published this key")
