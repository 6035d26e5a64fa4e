"""The names that people type to sign in: e-mail addresses and pod names (A-92).

Both are compared ignoring case. They cannot be confused: every address contains an ``@``, and no
pod name does.
"""

from __future__ import annotations

import re
from typing import Final

from podstead.core.errors import BadRequest, Conflict
from podstead.idp.codes import IdpCodes
from podstead.idp.records import EMAILS, USERNAMES, AccountName
from podstead.storage.record_store import RecordKind

MAX_EMAIL_CHARACTERS: Final = 254
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


class UnusableEmail(BadRequest):
    """No account may have this address; clients compare ``known_text``."""


class EmailTaken(Conflict):
    """Another account has this address (A-90)."""

    known_text = "Email already registered"

    code = IdpCodes.EMAIL_TAKEN


def check_email(email: object) -> str:
    """The address without surrounding white space. Raises UnusableEmail."""
    if not isinstance(email, str) or not email.strip():
        raise UnusableEmail(
            IdpCodes.EMAIL_MISSING, known_text="Email required for account creation"
        )
    trimmed = email.strip()
    usable = _EMAIL.fullmatch(trimmed) is not None and trimmed.isprintable()
    if not usable or len(trimmed) > MAX_EMAIL_CHARACTERS:
        raise UnusableEmail(
            IdpCodes.EMAIL_UNUSABLE, known_text="Invalid email", number=MAX_EMAIL_CHARACTERS
        )
    return trimmed


def name_key(name: str) -> str:
    """The key of an e-mail address or a pod name."""
    return name.strip().lower()


def mailbox_key(email: str) -> str:
    """The common form of addresses that usually lead to one mailbox: without case, and without the
    part after a plus sign. For limits only; accounts may have any of these addresses."""
    local, _, domain = name_key(email).rpartition("@")
    return f"{local.partition('+')[0] or local}@{domain}"


def login_records(login: str) -> RecordKind[AccountName]:
    """The kind of record in which a login is looked up."""
    return EMAILS if "@" in login else USERNAMES


def masked_email(email: str) -> str:
    """An e-mail address in the form that may be logged: ``a***@example.org`` (A-183)."""
    local, _, domain = email.partition("@")
    return f"{local[:1]}***@{domain}"
