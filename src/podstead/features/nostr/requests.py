"""Verifies requests signed with a Nostr key: NIP-98 events (A-140 to A-151).

The last two checks of every event are its signature and its first use; the cheap checks come first.
The signature is verified before the use is recorded, so nobody can use up an event without holding
it. Pure.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.authn import credentials as authn_credentials
from podstead.authn.authenticate import CredentialScheme, RequestCredentials
from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.value import Value
from podstead.features.nostr import events, keys
from podstead.storage.protocol import ReplayCache


class UnverifiedEvent(Value):
    """The base64 of a signed event, as received: with a scheme of its own, or in Basic as the
    password of the user-id ``nostr``."""

    event: str
    as_password: bool = False


_NAMES = frozenset({b"nostr", b"basic"})


def unverified_event(authorization: Sequence[bytes]) -> UnverifiedEvent | None:
    """The event in the Authorization fields of a request; ``None`` for credentials of other kinds
    and without any. Raises what :func:`~podstead.authn.credentials.read_credential` does."""
    credential = authn_credentials.read_credential(authorization, others=_NAMES)
    if not isinstance(credential, authn_credentials.OtherCredential):
        return None
    if credential.scheme == b"nostr":
        return UnverifiedEvent(authn_credentials.token_68(credential.content, scheme="Nostr"))
    return UnverifiedEvent(_password_of_nostr(credential.content), as_password=True)


def _password_of_nostr(content: bytes) -> str:
    """The password of the only user-id that is accepted (RFC 7617 section 2)."""
    try:
        user_id, colon, password = base64.b64decode(content, validate=True).partition(b":")
    except ValueError as error:
        raise authn_credentials.SchemeNotAccepted from error
    if not colon or user_id != b"nostr":
        raise authn_credentials.SchemeNotAccepted
    return authn_credentials.token_68(password, scheme="Basic")


VerifySignature = Callable[[bytes, bytes, bytes], Awaitable[bool]]
"""Whether a public key signed a message with a signature, all as bytes (BIP-340)."""


class EventVerifier:
    """Accepts every signed event once, or for one sequence of git requests, across all workers
    (A-147)."""

    def __init__(self, *, used: ReplayCache, clock: Clock, verify: VerifySignature) -> None:
        self._used = used
        self._clock = clock
        self._verify = verify

    async def use(
        self, event: events.NostrEvent, *, remembered_until_s: int, sequence: str | None = None
    ) -> None:
        """Record the use of an event. Until ``remembered_until_s`` (Unix time) it cannot be used
        again, except within the same ``sequence``.

        Raises InvalidEvent if it has no valid signature or has been used, Overloaded if no more
        uses can be recorded.
        """
        key, message = bytes.fromhex(event.public_key), bytes.fromhex(event.event_id)
        if not await self._verify(key, message, event.signature):
            raise events.InvalidEvent("The event has no valid signature")
        if not await self._note(event, sequence, until_ms=remembered_until_s * 1000):
            raise events.InvalidEvent("The event has already been used")

    async def _note(self, event: events.NostrEvent, sequence: str | None, *, until_ms: int) -> bool:
        """Record the use; False if it is a second one outside the sequence of the first.

        An event is identified by its signature. Two events of the same second with the same content
        have the same id, yet each was signed on its own, and only the holder of the key can create
        another signature of an event (BIP-340, strong unforgeability).
        """
        key = hashlib.sha256(b"nostr event" + event.signature).digest()
        now_ms = self._clock.now_ms()
        is_first = await self._used.use_once(key, until_ms=until_ms, now_ms=now_ms)
        if sequence is None:
            return is_first
        shared = hashlib.sha256(key + sequence.encode("utf-8")).digest()
        # Only the first use may record the sequence, or a second attempt would be accepted.
        if is_first:
            return await self._used.use_once(shared, until_ms=until_ms, now_ms=now_ms)
        return await self._used.is_used(shared, now_ms=now_ms)


class LinkedKeys(Protocol):
    """The keys that belong to accounts of this server (A-127)."""

    async def web_id_of(self, public_key: str) -> str | None:
        """The WebID that the key is linked to, if any. Raises InvalidEvent for a key whose account
        is disabled."""

    async def is_linked(self, public_key: str) -> bool:
        """Whether the key was linked with a proof, and is not only named by a profile."""


@dataclass(frozen=True, slots=True)
class EventRules:
    """What the operator has configured about signed requests."""

    accepted: bool = True
    """Whether any are accepted: with plain http, anybody on the network path could use the event
    (A-148)."""
    require_payload: bool = False
    """Whether the event must name the content of the request (A-145)."""
    basic: events.EventScope | None = events.EventScope.SAFE
    """Which requests an event in the form of a password may authorize; ``None`` refuses that form
    (A-146)."""


BASIC_SCOPES: Final = {"safe": events.EventScope.SAFE, "any": events.EventScope.ANY, "off": None}
"""By the value of the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequests(CredentialScheme):
    """Verifies requests that are signed with an event."""

    authorization = ("nostr", "basic")

    uses: EventVerifier
    clock: Clock
    rules: EventRules
    linked: LinkedKeys | None = None
    """``None`` if no key can be linked to an account."""

    def challenges(self, *, realm: str, claimed: bool) -> Mapping[str, str]:
        """Only requests that a feature claims get the challenge for passwords: browsers would ask
        people for one (A-7)."""
        if not self.rules.accepted:
            return {}
        challenges = {"Nostr": f'Nostr realm="{realm}"'}
        if claimed and self.rules.basic is not None:
            challenges["Basic"] = f'Basic realm="{realm}", charset="UTF-8"'
        return challenges

    async def verify(self, credentials: RequestCredentials) -> Identity:
        """The identity of the signer: ``did:nostr:`` with the key, and the WebID that the key is
        linked to.

        An event authorizes one request or, as a password, all requests of one sequence from one
        address, such as those of a push (A-147). Raises NotAuthenticated, and Overloaded if no more
        uses can be recorded.
        """
        sent = _event_in(credentials)
        request = events.SignedRequest(
            credentials.method,
            credentials.url.encode("latin-1"),
            credentials.has_content,
            in_sequence=credentials.sequence is not None,
        )
        sequence = None
        if sent.as_password and credentials.sequence is not None:
            sequence = f"{credentials.client_address} {credentials.sequence}"
        try:
            event = events.read_event(sent.event)
            proven = self._check(event, sent, request)
            await self.uses.use(
                event, remembered_until_s=proven.remembered_until_s, sequence=sequence
            )
            return await self._identity(event, proven)
        except events.InvalidEvent as refusal:
            raise _refused(sent, refusal) from refusal

    async def check_again(self, credentials: RequestCredentials, identity: Identity) -> None:
        """Check that the key that proved an identity still belongs to that agent. Raises
        NotAuthenticated."""
        key = identity.public_key
        if self.linked is None or key is None:
            return
        try:
            web_id = await self.linked.web_id_of(key)
            if identity.iri not in {web_id, keys.did_of(key)}:
                raise events.InvalidEvent("The key no longer belongs to this agent")
        except events.InvalidEvent as refusal:
            raise _refused(_event_in(credentials), refusal) from refusal

    def _check(
        self, event: events.NostrEvent, credential: UnverifiedEvent, request: events.SignedRequest
    ) -> events.VerifiedEvent:
        rules = self.rules
        if not rules.accepted:
            raise events.InvalidEvent("Signed requests require https")
        reach = rules.basic if credential.as_password else events.EventScope.EXACT
        if reach is None:
            raise events.InvalidEvent("Send the event with the Nostr scheme")
        return events.check_event(
            event,
            request,
            now_s=self.clock.now_ms() // 1000,
            scope=reach,
            require_payload=rules.require_payload,
        )

    async def _identity(self, event: events.NostrEvent, proven: events.VerifiedEvent) -> Identity:
        did = keys.did_of(event.public_key)
        web_id = None if self.linked is None else await self.linked.web_id_of(event.public_key)
        own = web_id is None or (
            self.linked is not None and await self.linked.is_linked(event.public_key)
        )
        return Identity(
            iri=web_id or did,
            method=AuthenticationMethod.NIP98,
            aliases=frozenset() if web_id is None else frozenset({did}),
            public_key=event.public_key,
            content_digest=proven.content_digest,
            may_state_identity=own,
        )


def _event_in(credentials: RequestCredentials) -> UnverifiedEvent:
    sent = unverified_event(credentials.authorization)
    if sent is None:
        raise NotAuthenticated
    return sent


def _refused(credential: UnverifiedEvent, refusal: events.InvalidEvent) -> NotAuthenticated:
    scheme = "Basic" if credential.as_password else "Nostr"
    return NotAuthenticated(str(refusal), invalid=True, scheme=scheme)
