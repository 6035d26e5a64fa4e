"""By what does a person sign in? The e-mail address or the name of the pod (A-92).

Both compare without regard to upper and lower case, and never meet: every address has an ``@``,
no name of a pod does.
"""

from __future__ import annotations

import re
from typing import Final

from podstead.core.errors import BadRequest, Conflict
from podstead.idp.records import EMAILS, USERNAMES, AccountName
from podstead.storage.registry import Records

MOST_EMAIL_CHARACTERS: Final = 254
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


class UnusableEmail(BadRequest):
    """No account may have the address; ``known_text`` is one of those that clients compare."""

    def __init__(self, known_text: str, message: str) -> None:
        super().__init__(message)
        self.known_text = known_text


class EmailTaken(Conflict):
    """Another account has the address (A-90)."""

    known_text = "Email already registered"

    def __init__(self) -> None:
        super().__init__("An account has this e-mail address already: sign in, or use another")


def check_email(email: object) -> str:
    """The address as given, without space around it. Raises UnusableEmail."""
    if not isinstance(email, str) or not email.strip():
        raise UnusableEmail(
            "Email required for account creation", "The e-mail address of the account is missing"
        )
    trimmed = email.strip()
    usable = _EMAIL.fullmatch(trimmed) is not None and trimmed.isprintable()
    if not usable or len(trimmed) > MOST_EMAIL_CHARACTERS:
        raise UnusableEmail(
            "Invalid email",
            f"An e-mail address must contain one @ and have at most {MOST_EMAIL_CHARACTERS} "
            "characters, as in alice@example.org",
        )
    return trimmed


def name_key(name: str) -> str:
    """The key of an e-mail address or of a pod's name."""
    return name.strip().lower()


def login_records(login: str) -> Records[AccountName]:
    """Where the account of what a person typed is looked up."""
    return EMAILS if "@" in login else USERNAMES


def masked_email(email: str) -> str:
    """What of an address may stand in a log: ``a***@example.org`` (A-183)."""
    local, _, domain = email.partition("@")
    return f"{local[:1]}***@{domain}"
