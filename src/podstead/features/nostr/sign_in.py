"""Signs in with a Nostr key (A-125, A-130), which a signed event proves (A-126).

Such events have the strict form of NIP-98, like those of signed requests, and each can be used
once: an event used for one purpose is invalid for the other. The URL of an event for an interaction
contains the interaction's uid, which serves as a challenge. Everywhere else the event needs a
``challenge`` tag with a challenge of the server.

A linked key counts like any other factor of the account, since its holder has proven to hold it. A
key that only a profile names signs in if the owner of the account allowed it
(:class:`podstead.features.nostr.profile_keys.AllowedKeys`), and is a weaker factor. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock
from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.features.nostr import events, profile_keys, requests
from podstead.features.nostr.links import NostrLinks
from podstead.features.nostr.records import NOSTR_CHALLENGES, NostrCodes
from podstead.idp.accounts import Accounts
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.challenges import Challenges, IssuedChallenge
from podstead.idp.records import MAX_EMAIL_CHARACTERS, Account
from podstead.idp.sign_in import AccountDisabled
from podstead.storage.record_store import Changes, RecordStore, Versioned

FACTOR: Final = "nostr"
AMR: Final = ("pop",)
"""What tokens say about it (RFC 8176; A-71): possession of a key was proven. Where the key is
stored, and whether a person was asked, is not known."""
CHALLENGE_S: Final = 120
"""How long a person may take to sign; the event itself is valid for a shorter time (A-143)."""

LINKING: Final = "link"
SIGNING_IN: Final = "sign-in"
METHOD: Final = "POST"


def nostr_challenges(records: RecordStore) -> Challenges:
    """The challenges of this kind."""
    return Challenges(NOSTR_CHALLENGES, lifetime_s=CHALLENGE_S, records=records)


def described(issued: IssuedChallenge, *, url: str) -> Mapping[str, object]:
    """What the event must contain; ``url`` is where to send it."""
    return {
        "challenge": issued.challenge_key,
        "u": url,
        "method": "POST",
        "kind": events.KIND,
        "expires_in": CHALLENGE_S,
    }


class EventInvalid(NotAuthenticated):
    """The request has no valid signed event."""

    known_text = "Event invalid"

    def __init__(self, message: str) -> None:
        super().__init__(message, invalid=True, scheme="Nostr")


@dataclass(frozen=True, slots=True)
class KeyProof:
    """The key that signed an event, which is now used up."""

    public_key: str
    """64 hexadecimal digits in lower case."""
    content_digest: bytes | None
    """The SHA-256 that the body of the request must have; ``None`` if the event has none, or there
    is no body."""


class SignedEvents:
    """Verifies signed events."""

    def __init__(
        self, *, uses: requests.EventVerifier, challenges: Challenges, clock: Clock
    ) -> None:
        self._uses = uses
        self._challenges = challenges
        self._clock = clock

    async def verify(
        self, authorization: Sequence[bytes], *, url: str, has_content: bool = False
    ) -> KeyProof:
        """Verify the event in the Authorization fields of a POST to a ``url`` that is itself valid
        for one use. The URL is compared byte by byte.

        Raises EventInvalid, BadRequest and HeadersTooLarge for fields that do not hold exactly one
        event.
        """
        try:
            event, proven = self._read(authorization, url=url, has_content=has_content)
            return await self._use(event, proven)
        except events.InvalidEvent as refusal:
            raise EventInvalid(str(refusal)) from refusal

    async def verify_answer(
        self,
        authorization: Sequence[bytes],
        *,
        url: str,
        purpose: str,
        holder: str,
        account_id: str | None = None,
        has_content: bool = False,
    ) -> KeyProof:
        """The same for an event that answers a challenge, which :class:`Challenges` has issued to
        the ``holder`` for a purpose and, where given, an account. The challenge is used up, too.

        Also raises ChallengeInvalid, before the signature is verified.
        """
        try:
            event, proven = self._read(authorization, url=url, has_content=has_content)
            challenge = events.only_tag(event, "challenge")
            await self._challenges.take(challenge, purpose, holder=holder, account_id=account_id)
            return await self._use(event, proven)
        except events.InvalidEvent as refusal:
            raise EventInvalid(str(refusal)) from refusal

    def _read(
        self, authorization: Sequence[bytes], *, url: str, has_content: bool
    ) -> tuple[events.NostrEvent, events.VerifiedEvent]:
        try:
            credential = requests.unverified_event(authorization)
        except NotAuthenticated as refusal:
            raise events.InvalidEvent(str(refusal)) from refusal
        if credential is None or credential.as_password:
            raise events.InvalidEvent(
                "Send a signed event in the Authorization header: Nostr, and the event in base64"
            )
        event = events.read_event(credential.event)
        proven = events.check_event(
            event,
            events.SignedRequest(METHOD, url.encode(), has_content),
            now_s=self._clock.now_ms() // 1000,
            scope=events.EventScope.EXACT,
            require_payload=False,
        )
        return event, proven

    async def _use(self, event: events.NostrEvent, proven: events.VerifiedEvent) -> KeyProof:
        await self._uses.use(event, remembered_until_s=proven.remembered_until_s)
        return KeyProof(event.public_key, proven.content_digest)


class KeyUnknown(AccessDenied):
    """The key cannot sign in to any account here. Only the holder of the key gets this error."""

    known_text = "No account linked"
    code = NostrCodes.KEY_UNKNOWN


class KeyNotEnough(AccessDenied):
    """The key can sign in, but is not sufficient to change how people sign in to the account
    (A-130)."""

    known_text = "Key not linked"
    code = NostrCodes.KEY_NOT_LINKED


@dataclass(frozen=True, slots=True)
class SignedInByKey:
    """The account of a key, and the entry of the key (:mod:`podstead.idp.sessions`);
    ``restricted`` if only the account's profile names the key (A-130)."""

    account: Versioned[Account]
    sign_in_method: str
    restricted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NostrSignIn:
    """Signs in with keys whose possession was proven."""

    links: NostrLinks
    allowed: profile_keys.AllowedKeys
    accounts: Accounts
    records: RecordStore
    audit: Audit

    async def sign_in(
        self, proof: KeyProof, *, name: str = "", only_linked: bool = False
    ) -> SignedInByKey:
        """The account that the holder of a proven key signs in to.

        ``name`` is the e-mail address or pod name that they typed, if any; a key that only a
        profile names is looked up in that account alone. Raises KeyUnknown, AccountDisabled,
        KeyNotEnough for a key that is not linked if ``only_linked``.
        """
        if await self.links.find(proof.public_key) is not None:
            return await self._by_link(proof.public_key)
        account = await self.accounts.find(name) if 0 < len(name) <= MAX_EMAIL_CHARACTERS else None
        allowed = (
            None if account is None else await self.allowed.find(account.value, proof.public_key)
        )
        if account is None or allowed is None:
            self.failed()
            raise KeyUnknown
        self._check_usable(account.value)
        if only_linked:
            self.failed(account.value.account_id)
            raise KeyNotEnough
        return self._signed_in(SignedInByKey(account, allowed.entry, restricted=True))

    def failed(self, account_id: str | None = None) -> None:
        """Record a failed sign-in with a key."""
        self.audit.note(AuditEvent.SIGN_IN_FAILED, account_id=account_id, factor=FACTOR)

    async def _by_link(self, public_key: str) -> SignedInByKey:
        async def compute() -> Changes[SignedInByKey]:
            link = await self.links.find(public_key)
            account = None if link is None else await self.accounts.read(link.value.account_id)
            if link is None or account is None:
                self.failed()
                raise KeyUnknown
            self._check_usable(account.value)
            use = self.links.use(link, account)
            signed_in = SignedInByKey(account, link.entry, restricted=False)
            return Changes(signed_in, use.records, use.preconditions)

        return self._signed_in(await self.records.transact(compute))

    def _check_usable(self, account: Account) -> None:
        if account.disabled:
            self.failed(account.account_id)
            raise AccountDisabled

    def _signed_in(self, signed_in: SignedInByKey) -> SignedInByKey:
        account_id = signed_in.account.value.account_id
        self.audit.note(AuditEvent.SIGNED_IN, account_id=account_id, factor=FACTOR)
        return signed_in
