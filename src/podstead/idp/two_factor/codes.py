"""Makes and checks the codes of authenticator apps (RFC 6238) and recovery codes.

Pure. The codes of apps consist of six digits, each valid for thirty seconds; the one before and the
one after are accepted as well, for clocks that differ. A recovery code has 80 random bits, so that
its SHA-256 does not reveal it.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from typing import Final, Protocol

from podstead.core.clock import Randomness
from podstead.storage.record_store import secret_key

STEP_S: Final = 30
_SECRET_BYTES: Final = 20
"""As long as the hash, SHA-1 (RFC 4226 section 4, R6)."""
_NEARBY: Final = (0, -1, 1)
_DIGITS: Final = 6
RECOVERY_CODES: Final = 10
_RECOVERY_BYTES: Final = 10
_GROUP: Final = 4
_SECRET_CHARACTERS: Final = 32
_BASE32: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
# Characters that people confuse are equivalent: 0 and O, 1 and I, 8 and B.
_MISREAD: Final = str.maketrans("018", "OIB")


class OneTimePasswords(Protocol):
    """Computes the codes of authenticator apps; a library implements it."""

    def code(self, secret: str, step: int) -> str:
        """The code of a time step (RFC 6238 section 4.2)."""

    def address(self, secret: str, *, name: str, issuer: str) -> str:
        """The ``otpauth:`` address that an app reads."""

    def picture(self, address: str) -> str:
        """The address as a QR code: an SVG image."""


def new_secret(randomness: Randomness) -> str:
    """A secret for an app, in base32."""
    return base64.b32encode(bytes.fromhex(randomness.token_hex(_SECRET_BYTES))).decode("ascii")


def is_secret(text: str) -> bool:
    """Whether a text is such a secret."""
    return len(text) == _SECRET_CHARACTERS and _BASE32.issuperset(text)


def matching_step(
    passwords: OneTimePasswords, secret: str, typed: str, *, now_s: int, after: int
) -> int | None:
    """The time step whose code was typed, if it is a recent one and later than ``after``."""
    code = "".join(typed.split())
    if len(code) != _DIGITS or not (code.isascii() and code.isdigit()):
        return None
    current = now_s // STEP_S
    for step in (current + offset for offset in _NEARBY):
        if step > after and hmac.compare_digest(passwords.code(secret, step), code):
            return step
    return None


def new_recovery_codes(randomness: Randomness) -> Sequence[str]:
    """Codes as they are shown to the person."""
    return [_grouped(randomness) for _ in range(RECOVERY_CODES)]


def recovery_hash(account_id: str, typed: str) -> str:
    """The stored form of a code, regardless of how its letters and groups were typed."""
    letters = "".join(each for each in typed.upper() if each.isascii() and each.isalnum())
    return secret_key(f"recovery {account_id} {letters.translate(_MISREAD)}")


def _grouped(randomness: Randomness) -> str:
    letters = base64.b32encode(bytes.fromhex(randomness.token_hex(_RECOVERY_BYTES))).decode("ascii")
    return "-".join(
        letters[start : start + _GROUP].lower() for start in range(0, len(letters), _GROUP)
    )
