"""Second factors as they are stored, and the codes of authenticator apps (RFC 6238) and recovery
codes.

Pure. The codes of apps consist of six digits, each valid for thirty seconds; the one before and the
one after are accepted as well, for clocks that differ. A recovery code has 80 random bits, so that
its SHA-256 does not reveal it.
"""

import base64
import hmac
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from podstead.core.clock import Randomness
from podstead.core.codes import ErrorCode
from podstead.idp.audit import EventKind
from podstead.storage.record_store import RecordKind, secret_key

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


class TwoFactor(msgspec.Struct, frozen=True):
    """The second factors of a person; the key is the account id.

    ``totp_secret`` is base32 (RFC 4648), ``None`` without an authenticator app. ``last_step`` is
    the time step of the last code that was accepted: no code of it or of an earlier one is accepted
    again. ``recovery_hashes`` are those of the codes that are left.
    """

    account_id: str
    totp_secret: str | None = None
    totp_created_s: int = 0
    totp_used_s: int | None = None
    last_step: int = 0
    with_passkey: bool = False
    """Whether a password needs a passkey besides it where there is no authenticator app."""
    recovery_hashes: tuple[str, ...] = ()
    recovery_created_s: int = 0
    recovered: str = ""
    """The mark of the password that was set with a recovery code, until another factor is used.
    With that password, no other recovery code is a second factor."""

    @property
    def is_on(self) -> bool:
        """Whether a password alone does not sign in."""
        return self.totp_secret is not None or self.with_passkey


class PendingSecondFactor(msgspec.Struct, frozen=True):
    """A browser whose person has typed the right password and has yet to give the second factor;
    the key is the hash of the browser's secret.

    ``password_mark`` is the mark of the password, so that changing it ends this sign-in.
    """

    account_id: str
    verified_s: int
    password_mark: str
    lasting: bool
    path: str
    """Where the browser continues: at the account, a page of pods, or an interaction."""
    uid: str = ""
    """The interaction that it belongs to, if any."""
    common_password: bool = False
    by_recovery: bool = False
    """Whether the password was chosen with a recovery code just now, so that another one is not a
    second factor."""
    failures: int = 0


TWO_FACTORS: Final = RecordKind("two-factor", TwoFactor)
PENDING_SECOND_FACTORS: Final = RecordKind("half-sign-in", PendingSecondFactor)


class TwoFactorEvents(EventKind):
    """What is recorded about second factors for the operator and the owner of the account."""

    TOTP_ADDED = "authenticator app added"
    TOTP_REMOVED = "authenticator app removed"
    PASSKEY_REQUIRED = "passkey required besides the password"
    PASSKEY_NOT_REQUIRED = "passkey no longer required besides the password"
    RECOVERY_CODES_CREATED = "recovery codes created"
    RECOVERY_CODE_USED = "recovery code used"
    FAILED = "second factor failed after the right password"
    RESET = "second factor reset"


class TwoFactorCodes(ErrorCode):
    """What errors of second factors say to people."""

    PASSKEY_NEEDED = "Add a passkey first"
    SECOND_FACTOR_EXISTS = "The account has a second factor already: sign in again"
    NO_AUTHENTICATOR_SECRET = "This is no secret of an authenticator app"
    SECOND_FACTOR_REQUIRED = (
        "This server requires a second factor besides the password: add another one first"
    )
    WRONG_CODE = (
        "The code is wrong or was used already: wait for the next one",
        "The code is wrong or was used already. Wait for the next one.",
    )
    PASSWORD_FIRST = "Type your name and password first"


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
