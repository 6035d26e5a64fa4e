"""Recognizes browsers that have signed in to an account before, by signed marks in a cookie.

A browser with a mark for an account is delayed by its own failures only, so that strangers who
guess passwords cannot lock out the owner (OWASP, "Slow Down Online Guessing Attacks with Device
Cookies"). A mark proves nothing else and signs nobody in. It does not name the account: whether it
belongs to an account can be checked only for a given account.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock, Randomness
from podstead.idp.accounts import issue_time_s
from podstead.idp.records import Account

MARK_S: Final = 180 * 24 * 3600
"""How long a browser is known after its last sign-in."""
MAX_MARKS: Final = 4
"""For how many accounts one browser is known; the oldest mark is dropped first."""
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
    """Creates and recognizes marks."""

    def __init__(self, keys: Sequence[bytes], *, clock: Clock, randomness: Randomness) -> None:
        """The first of the ``keys`` signs, and all of them verify. Without keys no browser is
        known."""
        self._keys = [hmac.digest(key, _PURPOSE, "sha256") for key in keys]
        self._clock = clock
        self._randomness = randomness

    def device(self, marks: str, account: Account) -> str | None:
        """The device id of the browser that sent the marks, if it is known for the account;
        ``None`` if it has not signed in to it, or not since the password was changed."""
        mark = self._message_id(marks, account)
        now_s = self._clock.now_ms() // 1000
        if mark is None or mark.made_s < account.valid_after_s or mark.made_s + MARK_S <= now_s:
            return None
        return mark.device

    def signed_in(self, marks: str, account: Account) -> str | None:
        """The marks for the browser to keep after a sign-in; ``None`` without keys."""
        if not self._keys:
            return None
        before = self._message_id(marks, account)
        others = [each.text for each in _read(marks) if before is None or each != before]
        device = self._randomness.token_hex(_DEVICE_BYTES)
        made_s = issue_time_s(account, self._clock.now_ms() // 1000)
        new = f"{device}.{made_s}.{_sign(self._keys[0], account, device, made_s)}"
        return BETWEEN.join([new, *others][:MAX_MARKS])

    def _message_id(self, marks: str, account: Account) -> _Mark | None:
        for mark in _read(marks):
            for key in self._keys:
                expected = _sign(key, account, mark.device, mark.made_s)
                if hmac.compare_digest(mark.signature.encode(), expected.encode()):
                    return mark
        return None


def _read(marks: str) -> Iterator[_Mark]:
    for text in marks.split(BETWEEN)[:MAX_MARKS]:
        device, _, rest = text.partition(".")
        made, _, signature = rest.partition(".")
        if len(device) == _DEVICE_CHARACTERS and made.isascii() and made.isdigit():
            yield _Mark(device, int(made[:12]), signature, text)


def _sign(key: bytes, account: Account, device: str, made_s: int) -> str:
    content = f"{account.account_id}.{device}.{made_s}".encode()
    return hmac.new(key, content, hashlib.sha256).hexdigest()
