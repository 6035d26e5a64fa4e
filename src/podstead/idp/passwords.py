"""Checks new passwords, and defines how they are hashed (A-93).

Length is the only rule. A password is first normalized to one Unicode form, since the same keys
produce different code points on different devices. Hashing takes time and memory on purpose, so
:class:`PasswordHasher` is a port that runs it elsewhere.
"""

import re
import unicodedata
from enum import Enum
from importlib.resources import files
from typing import Final, Protocol

from podstead.core.errors import BadRequest
from podstead.idp.codes import IdpCodes

MIN_CHARACTERS: Final = 8
MAX_CHARACTERS: Final = 1024
MAX_BCRYPT_COST: Final = 14
"""Each step doubles the time of a comparison; other Solid servers use 10."""

_BCRYPT: Final = re.compile(r"\$2[abxy]\$([0-9]{2})\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
"""The last letter of the salt has two of its bits."""


class UnusablePassword(BadRequest):
    """No account may have this password; clients compare ``known_text``."""


class PasswordCheck(Enum):
    """The result of comparing a password with a hash."""

    WRONG = "wrong"
    RIGHT = "right"
    RIGHT_BUT_OUTDATED = "right, and to be hashed anew, as new passwords are"


class PasswordHasher(Protocol):
    """Hashes passwords with argon2id, and compares them also with the bcrypt hashes of imported
    accounts. The number of hashes computed at a time is limited, in total
    and for one ``network``, which is the part of an address that one customer has."""

    async def hash(self, password: str, *, network: str) -> str:
        """The hash to store. Raises Overloaded."""

    async def verify(
        self, password_hash: str | None, password: str, *, network: str
    ) -> PasswordCheck:
        """Compare a password with a hash. Without a hash the result is WRONG and takes as long, so
        that the time does not reveal which accounts exist (A-182). Raises Overloaded."""


def check_password(password: object) -> str:
    """The normalized password, if an account may have it. Raises UnusablePassword."""
    if not isinstance(password, str) or password == "":
        raise UnusablePassword(IdpCodes.PASSWORD_MISSING, known_text="Password required")
    normal = _normal_form(password)
    if len(normal) < MIN_CHARACTERS:
        raise UnusablePassword(
            IdpCodes.PASSWORD_TOO_SHORT,
            known_text=f"Password must be at least {MIN_CHARACTERS} characters",
            number=MIN_CHARACTERS,
        )
    if len(normal) > MAX_CHARACTERS:
        raise UnusablePassword(
            IdpCodes.PASSWORD_TOO_LONG,
            known_text=f"Password must be at most {MAX_CHARACTERS} characters",
            number=str(MAX_CHARACTERS),
        )
    if not _is_text(normal):
        raise UnusablePassword(IdpCodes.PASSWORD_NOT_UNICODE, known_text="Invalid password")
    return normal


def normalized_password(password: str) -> str | None:
    """The normalized form of a password typed to sign in; ``None`` if no account can have it."""
    normal = _normal_form(password)
    return normal if len(normal) <= MAX_CHARACTERS and _is_text(normal) else None


def is_bcrypt(password_hash: str) -> bool:
    """Whether the hash is one of bcrypt, which only imported accounts have."""
    return _BCRYPT.fullmatch(password_hash) is not None


def is_usable_bcrypt(password_hash: str) -> bool:
    """Whether an account may be imported with this hash."""
    matched = _BCRYPT.fullmatch(password_hash)
    return matched is not None and 4 <= int(matched[1]) <= MAX_BCRYPT_COST


def _normal_form(password: str) -> str:
    return unicodedata.normalize("NFC", password)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell
        return False
    return True


# Checks whether a password is among the most common ones.
#
# The list has the 1,000 most frequent passwords of at least 8 characters among the 30,000 that come
# with zxcvbn 4.5.0 (MIT licence), which counted them in the ten million passwords that Mark Burnett
# published for research in 2015. Other people chose these words, good and bad; they are listed
# unchanged, in a file that is read when the module is loaded.

_LIST: Final = files("podstead.idp").joinpath("common_passwords.txt").read_text("utf-8")
COMMON_PASSWORDS: Final = frozenset(_LIST.split())


def is_common(password: str) -> bool:
    """Whether a password is on the list, ignoring case."""
    return unicodedata.normalize("NFC", password).casefold() in COMMON_PASSWORDS
