"""Has this browser signed in to the account before? Signed marks that browsers keep in a cookie.

A browser with a mark of an account is delayed by its own failures only, so that strangers who guess
a password cannot keep its owner out (OWASP, "Slow Down Online Guessing Attacks with Device
Cookies"). A mark proves nothing else: it signs nobody in. It names no account; only the account
that somebody wants to sign in to tells whether the mark is one of it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock, Randomness
from podstead.idp.accounts import counting_from
from podstead.idp.records import Account

MARK_S: Final = 180 * 24 * 3600
"""How long a browser stays known after its last sign-in."""
MOST_MARKS: Final = 4
"""How many accounts one browser is known at; the oldest mark goes first."""
BETWEEN: Final = "~"
_DEVICE_BYTES: Final = 16
_DEVICE_CHARACTERS: Final = 2 * _DEVICE_BYTES
_PURPOSE: Final = b"podstead: browsers that signed in before"


@dataclass(frozen=True, slots=True)
class _Mark:
    device: str
    made_s: int
    signature: str
    text: str


class KnownBrowsers:
    """Makes marks and recognises them."""

    def __init__(self, keys: Sequence[bytes], *, clock: Clock, randomness: Randomness) -> None:
        """The first of the ``keys`` signs, all of them verify. Without any, no browser is known."""
        self._keys = [hmac.digest(key, _PURPOSE, "sha256") for key in keys]
        self._clock = clock
        self._randomness = randomness

    def device(self, marks: str, account: Account) -> str | None:
        """By which the browser that sent the marks is known at the account; ``None`` if it has not
        signed in to it, or not since the password was changed."""
        mark = self._mark_of(marks, account)
        now_s = self._clock.now_ms() // 1000
        if mark is None or mark.made_s < account.valid_after_s or mark.made_s + MARK_S <= now_s:
            return None
        return mark.device

    def signed_in(self, marks: str, account: Account) -> str | None:
        """The marks that a browser is to keep from now on; ``None`` where there are none."""
        if not self._keys:
            return None
        before = self._mark_of(marks, account)
        others = [each.text for each in _read(marks) if before is None or each != before]
        device = self._randomness.token_hex(_DEVICE_BYTES)
        made_s = counting_from(account, self._clock.now_ms() // 1000)
        new = f"{device}.{made_s}.{_sign(self._keys[0], account, device, made_s)}"
        return BETWEEN.join([new, *others][:MOST_MARKS])

    def _mark_of(self, marks: str, account: Account) -> _Mark | None:
        for mark in _read(marks):
            for key in self._keys:
                expected = _sign(key, account, mark.device, mark.made_s)
                if hmac.compare_digest(mark.signature.encode(), expected.encode()):
                    return mark
        return None


def _read(marks: str) -> Iterator[_Mark]:
    for text in marks.split(BETWEEN)[:MOST_MARKS]:
        device, _, rest = text.partition(".")
        made, _, signature = rest.partition(".")
        if len(device) == _DEVICE_CHARACTERS and made.isascii() and made.isdigit():
            yield _Mark(device, int(made[:12]), signature, text)


def _sign(key: bytes, account: Account, device: str, made_s: int) -> str:
    content = f"{account.account_id}.{device}.{made_s}".encode()
    return hmac.new(key, content, hashlib.sha256).hexdigest()
