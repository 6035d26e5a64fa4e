"""Signed Nostr events in Authorization fields, and the last two checks of every one of them.

Those are its signature and its first use; the caller makes the cheap checks first. The signature is
verified before the use is recorded, so nobody can use up an event without holding it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence

from podstead.authn.credentials import (
    OtherCredential,
    SchemeNotAccepted,
    read_credential,
    token_68,
)
from podstead.core.clock import Clock
from podstead.core.value import Value
from podstead.nostr.errors import InvalidEvent
from podstead.nostr.event import NostrEvent
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
    credential = read_credential(authorization, others=_NAMES)
    if not isinstance(credential, OtherCredential):
        return None
    if credential.scheme == b"nostr":
        return UnverifiedEvent(token_68(credential.content, scheme="Nostr"))
    return UnverifiedEvent(_password_of_nostr(credential.content), as_password=True)


def _password_of_nostr(content: bytes) -> str:
    """The password of the only user-id that is accepted (RFC 7617 section 2)."""
    try:
        user_id, colon, password = base64.b64decode(content, validate=True).partition(b":")
    except ValueError as error:
        raise SchemeNotAccepted from error
    if not colon or user_id != b"nostr":
        raise SchemeNotAccepted
    return token_68(password, scheme="Basic")


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
        self, event: NostrEvent, *, remembered_until_s: int, sequence: str | None = None
    ) -> None:
        """Record the use of an event. Until ``remembered_until_s`` (Unix time) it cannot be used
        again, except within the same ``sequence``.

        Raises InvalidEvent if it has no valid signature or has been used, Overloaded if no more
        uses can be recorded.
        """
        key, message = bytes.fromhex(event.public_key), bytes.fromhex(event.event_id)
        if not await self._verify(key, message, event.signature):
            raise InvalidEvent("The event has no valid signature")
        if not await self._note(event, sequence, until_ms=remembered_until_s * 1000):
            raise InvalidEvent("The event has already been used")

    async def _note(self, event: NostrEvent, sequence: str | None, *, until_ms: int) -> bool:
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
