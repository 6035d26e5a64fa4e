"""The pages of passkeys. ``/idp/account/passkeys``: a person views and changes their passkeys
(A-124); ``/idp/passkey``: a browser adds a passkey, and signs in with one (A-115 to A-121).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from podstead.core.errors import AccessDenied, BadRequest
from podstead.features import WorkerFeature
from podstead.features.passkeys import PasskeySettings, ceremonies
from podstead.features.passkeys.service import FACTOR, Passkeys, SignedInByPasskey
from podstead.features.passkeys.verifier import WebAuthnVerifier
from podstead.idp import challenges, records, sessions
from podstead.idp.authorizations import Authorizations
from podstead.idp.sign_in_methods import SecondStep
from podstead.storage.record_store import Versioned
from podstead.storage.records import Precondition
from podstead.web.account.collections import Collection, Removed
from podstead.web.account.event_texts import add_event_texts
from podstead.web.account.security_page import SecuritySection
from podstead.web.browsers import browser_name, json_response
from podstead.web.forms import FormSubmission, read_submission
from podstead.web.pages.addresses import ACCOUNT, AGAIN
from podstead.web.pages.cookies import BROWSER, Tone, add_flash_messages
from podstead.web.pages.formats import machine_time
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import INTERACTION_PATH, VerifiedSignIn
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, RequestLimit, SignInForm

if TYPE_CHECKING:
    from podstead.app.provider import Provider

logger = logging.getLogger("podstead.app")

AGAIN["passkeys"] = f"{ACCOUNT}#sign-in"
add_flash_messages(
    Tone.DONE,
    passkey_removed=N_(
        "The passkey has been removed. Browsers and applications that were signed in "
        "with it are signed out. You can now delete it from your device as well."
    ),
    passkey_renamed=N_("The passkey has been renamed."),
)
add_event_texts(
    {
        ceremonies.PasskeyEvents.ADDED: N_("Passkey added"),
        ceremonies.PasskeyEvents.REMOVED: N_("Passkey removed"),
        ceremonies.PasskeyEvents.COPIED: N_("Possible copy of a passkey"),
    }
)

_KEY_SEGMENT: Final = 4


@dataclass(frozen=True)
class PasskeyCollection(Collection[Versioned[ceremonies.Passkey]]):
    """The passkeys of the account."""

    below = f"{ACCOUNT}/passkeys"
    name = "passkeys"
    shown_as = "passkeys"
    missing = ceremonies.PasskeyCodes.NO_SUCH_PASSKEY
    purpose = "passkeys"
    credential = N_("Passkey")

    passkeys: Passkeys
    second_step: SecondStep | None

    async def entries(self, owner: sessions.OpenSession) -> Sequence[Versioned[ceremonies.Passkey]]:
        return await self.passkeys.of_account(owner.account.account_id)

    def key(self, entry: Versioned[ceremonies.Passkey]) -> str:
        return entry.key

    def title(self, entry: Versioned[ceremonies.Passkey]) -> str:
        return entry.value.name

    def as_json(self, entry: Versioned[ceremonies.Passkey]) -> dict[str, object]:
        passkey = entry.value
        used_s, suspected_s = passkey.last_used_s, passkey.suspected_s
        return {
            "id": entry.key,
            "name": passkey.name,
            "created": machine_time(passkey.created_s),
            "lastUsed": None if used_s is None else machine_time(used_s),
            "synced": passkey.backup_eligible,
            "suspected": None if suspected_s is None else machine_time(suspected_s),
        }

    @route("/{id}", "PATCH", is_page=False)
    @route("/{id}/name", "POST")
    async def rename(self, page: PageRequest) -> Response:
        sent = await page.submission()
        account_id = page.owner().account.account_id
        await self.passkeys.rename(account_id, page.path_segment(_KEY_SEGMENT), sent.text("name"))
        return self.site.done(page, "passkey-renamed")

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        preconditions: Sequence[Precondition] = ()
        if self.second_step is not None:
            entry = ceremonies.PASSKEYS.entry_of(key)
            preconditions = await self.second_step.method_removal(owner.account, entry)
        method = await self.passkeys.remove(
            owner.owner, key, page.source, preconditions=preconditions
        )
        return Removed("passkey-removed", method)


PASSKEY_PATH: Final = "/idp/passkey"


class MissingFields(BadRequest):
    """A required field is missing or has the wrong type."""

    known_text = "Missing required fields"

    def __init__(self) -> None:
        super().__init__("The fields challengeKey and credential are required")


class AccountMismatch(AccessDenied):
    """The request names an account other than that of the session."""

    known_text = "Account mismatch"
    code = ceremonies.PasskeyCodes.OTHER_ACCOUNT


@dataclass(frozen=True, slots=True)
class PasskeyEndpoints:
    """Provides the server's side of the ceremonies."""

    site: Site
    party: ceremonies.RelyingParty
    passkeys: Passkeys
    authorizations: Authorizations
    browser_sign_in: BrowserSignIn
    verified: VerifiedSignIn
    limit: RequestLimit

    # --- adding one ---------------------------------------------------------------------------

    @route(PASSKEY_PATH + "/register/options", "POST")
    async def creation_options(self, page: PageRequest) -> Response:
        await self.limit.count(page)
        owner = self._recent_owner(page, await read_submission(page.request))
        offer = await self.passkeys.offer(owner)
        options = ceremonies.creation_options(
            offer, owner.account, self.party, server_name=self.site.server_name
        )
        return json_response(200, options)

    @route(PASSKEY_PATH + "/register/verify", "POST")
    async def add(self, page: PageRequest) -> Response:
        await self.limit.count(page)
        sent = await read_submission(page.request)
        owner = self._recent_owner(page, sent)
        challenge_key, credential = _answer(sent)
        await self.passkeys.add(
            owner,
            challenge_key=challenge_key,
            credential=credential,
            name=sent.text("name") or browser_name(page.user_agent),
            source=page.source,
        )
        return json_response(200, {"success": True})

    def _recent_owner(self, page: PageRequest, sent: FormSubmission) -> sessions.OpenSession:
        owner = page.owner()
        if sent.fields.get("accountId") not in (None, owner.account.account_id):
            raise AccountMismatch
        page.recent_owner()
        return owner

    # --- signing in ---------------------------------------------------------------------------

    @route(PASSKEY_PATH + "/login/options", "POST")
    async def request_options(self, page: PageRequest) -> Response:
        """The options for signing in, which are the same whatever name was typed (A-120). Raises
        RateLimited, and what is wrong with the interaction."""
        await self.limit.count(page)
        sent = await read_submission(page.request)
        uid = sent.text("interaction")
        if uid:
            await self.authorizations.pending(uid, browser=page.browser)
        issued = await self.passkeys.ask(browser=page.browser, uid=uid)
        has_cookie = self.site.cookies.secret(page.request, BROWSER) is not None
        cookies = [] if has_cookie else [self.site.cookies.set(BROWSER, page.browser)]
        return json_response(200, ceremonies.request_options(issued, self.party), *cookies)

    @route(PASSKEY_PATH + "/login/verify", "POST")
    async def sign_in(self, page: PageRequest) -> Response:
        """Sign in, or return where the sign-in continues. Raises RateLimited, and what is wrong
        with the passkey or the interaction."""
        await self.limit.count(page)
        sent = await read_submission(page.request)
        challenge_key, credential = _answer(sent)
        verified = await self.passkeys.verify(challenge_key, credential, browser=page.browser)
        lasting = sent.ticked("remember")
        if verified.uid:
            return await self._on_to_interaction(page, verified, lasting=lasting)
        signed_in = await self.browser_sign_in.begin(
            page,
            verified.stored,
            lasting=lasting,
            factor=FACTOR,
            amr=verified.amr,
            sign_in_method=verified.sign_in_method,
        )
        return self._succeeded(verified, ACCOUNT, *signed_in.cookies)

    @route(INTERACTION_PATH + "/{uid}/passkey-complete", "GET")
    async def complete(self, page: PageRequest) -> Response:
        """``passkey-complete``: continue an interaction in which this browser's passkey was
        verified (A-118). Raises AccessDenied without that, NotFound, BadRequest."""
        return await self.verified.complete(page, factor=FACTOR)

    async def _on_to_interaction(
        self, page: PageRequest, verified: SignedInByPasskey, *, lasting: bool
    ) -> Response:
        pending = await self.authorizations.pending(verified.uid, browser=page.browser)
        await self.verified.note(
            pending,
            verified.stored,
            factor=FACTOR,
            lasting=lasting,
            amr=verified.amr,
            sign_in_method=verified.sign_in_method,
        )
        return self._succeeded(verified, f"{INTERACTION_PATH}/{pending.uid}/passkey-complete")

    def _succeeded(
        self, verified: SignedInByPasskey, path: str, *headers: tuple[bytes, bytes]
    ) -> Response:
        body = {
            "success": True,
            "webId": verified.stored.value.web_id,
            "redirectUrl": self.site.base_url + path,
        }
        return json_response(200, body, *headers)


def _answer(sent: FormSubmission) -> tuple[str, ceremonies.Credential]:
    key, credential = sent.fields.get("challengeKey"), sent.fields.get("credential")
    if not isinstance(key, str) or not key or not isinstance(credential, dict):
        raise MissingFields
    return key, credential


class PasskeyForm(SignInForm):
    """The button on the sign-in form, and the suggestions of the browser in its field."""

    template = "pods/passkeys/sign_in.html"
    autocomplete = "webauthn"
    is_second_factor = True

    def __init__(self, passkeys: Passkeys) -> None:
        self._passkeys = passkeys

    async def hint(self, account: records.Account) -> str | None:
        """A link to add a passkey to an account that has none (A-124)."""
        has_some = await self._passkeys.of_account(account.account_id)
        return None if has_some else "pods/passkeys/hint.html"


class PasskeysInWorker(WorkerFeature):
    """Passkeys at a base URL at which browsers support them."""

    security_sections = (
        SecuritySection("pods/passkeys/section.html", comes_first=True, script="passkeys.js"),
    )

    def __init__(self, provider: Provider, party: ceremonies.RelyingParty) -> None:
        self._provider = provider
        self._party = party
        self._passkeys = Passkeys(
            records=provider.records,
            challenges=challenges.Challenges(
                ceremonies.PASSKEY_CHALLENGES,
                lifetime_s=ceremonies.CHALLENGE_S,
                records=provider.records,
            ),
            methods=provider.sign_in_methods,
            verifier=WebAuthnVerifier(party),
            audit=provider.audit,
        )
        self.sign_in_forms = (PasskeyForm(self._passkeys),)

    @cached_property
    def account_collections(self) -> Sequence[Collection[Any]]:  # type: ignore[override]
        provider = self._provider
        return (PasskeyCollection(provider.pages.site, self._passkeys, provider.second_step),)

    @cached_property
    def provider_pages(self) -> Sequence[object]:  # type: ignore[override]
        provider, pages = self._provider, self._provider.pages
        per_minute = provider.settings.of(PasskeySettings).passkey_requests_per_minute
        return (
            PasskeyEndpoints(
                pages.site,
                self._party,
                self._passkeys,
                provider.authorizations,
                pages.sign_in,
                pages.verified_sign_in,
                pages.limit("passkey", per_minute),
            ),
        )


def passkeys_in_worker(provider: Provider) -> PasskeysInWorker | None:
    """What passkeys add to a worker; ``None`` if browsers do not support them here (A-115)."""
    settings = provider.settings.of(PasskeySettings)
    party = ceremonies.relying_party(
        provider.issuer, rp_id=settings.passkey_rp_id, further_origins=settings.passkey_origins
    )
    if party is None:
        logger.info(
            "Pages offer no passkeys: browsers know them over https only, or at localhost, and "
            "never at an IP address. On this machine use http://localhost:PORT as the base URL."
        )
        return None
    return PasskeysInWorker(provider, party)
