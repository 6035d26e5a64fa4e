"""Maps sign-ins to the ``amr`` values of tokens (RFC 8176; A-71, A-118).

The ``amr`` claim states only what this server has verified, never what it assumes.
"""

from __future__ import annotations

from typing import Final

PASSWORD: Final = ("pwd",)
PASSWORD_AND_CODE: Final = ("pwd", "otp", "mfa")
"""A password, and a one-time code of an authenticator app or from the recovery codes."""
NOSTR_KEY: Final = ("pop",)
"""Possession of a key was proven. Where the key is stored, and whether a person was asked, is not
known."""


def of_passkey(*, backup_eligible: bool) -> tuple[str, ...]:
    """The methods of a passkey: a key that never leaves its device (``hwk``) or that several
    devices can have (``swk``), with user presence (``user``) and user verification by the device,
    which makes two factors (``mfa``). Devices do not say whether they verified a PIN, a finger or a
    face."""
    return ("swk" if backup_eligible else "hwk", "user", "mfa")
