"""How did a person sign in, in the words that tokens have for it? (RFC 8176; A-71, A-118)

``amr`` tells applications what this server has seen for itself, and nothing that it guesses.
"""

from __future__ import annotations

from typing import Final

PASSWORD: Final = ("pwd",)
NOSTR_KEY: Final = ("pop",)
"""A key was proven to be had; where it is, and whether anybody was asked, is not known."""


def of_passkey(*, backup_eligible: bool) -> tuple[str, ...]:
    """The methods of a passkey: a key that never leaves its device (``hwk``) or that several can
    have (``swk``), in the hands of a person who was there (``user``), and whom the device has
    verified, which makes two factors (``mfa``). Whether by PIN, finger or face no device tells."""
    return ("swk" if backup_eligible else "hwk", "user", "mfa")
