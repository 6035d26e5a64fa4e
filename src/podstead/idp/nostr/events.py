"""Verifies signed events, by which people prove that they hold a Nostr key (A-125, A-126).

They have the strict form of NIP-98, like those of signed requests, and each can be used once: an
event used for one purpose is invalid for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn.signed_events import EventVerifier, unverified_event
from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.idp.challenges import Challenges
from podstead.nostr.errors import InvalidEvent
from podstead.nostr.event import NostrEvent, read_event
from podstead.nostr.http_auth import EventScope, SignedRequest, VerifiedEvent, check_event, only_tag

METHOD: Final = "POST"


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

    def __init__(self, *, uses: EventVerifier, challenges: Challenges, clock: Clock) -> None:
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
        except InvalidEvent as refusal:
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
            challenge = only_tag(event, "challenge")
            await self._challenges.take(challenge, purpose, holder=holder, account_id=account_id)
            return await self._use(event, proven)
        except InvalidEvent as refusal:
            raise EventInvalid(str(refusal)) from refusal

    def _read(
        self, authorization: Sequence[bytes], *, url: str, has_content: bool
    ) -> tuple[NostrEvent, VerifiedEvent]:
        try:
            credential = unverified_event(authorization)
        except NotAuthenticated as refusal:
            raise InvalidEvent(str(refusal)) from refusal
        if credential is None or credential.as_password:
            raise InvalidEvent(
                "Send a signed event in the Authorization header: Nostr, and the event in base64"
            )
        event = read_event(credential.event)
        proven = check_event(
            event,
            SignedRequest(METHOD, url.encode(), has_content),
            now_s=self._clock.now_ms() // 1000,
            scope=EventScope.EXACT,
            require_payload=False,
        )
        return event, proven

    async def _use(self, event: NostrEvent, proven: VerifiedEvent) -> KeyProof:
        await self._uses.use(event, remembered_until_s=proven.remembered_until_s)
        return KeyProof(event.public_key, proven.content_digest)
