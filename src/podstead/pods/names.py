"""Checks the names of pods (A-90, A-91)."""

import re
from typing import Final

from podstead.core.codes import ErrorCode
from podstead.core.errors import BadRequest, Conflict

NAME_RULE_TEXT: Final = (
    "The name of a pod must have 1 to {number} characters: letters from A to Z or a to z, digits, "
    "- and _"
)


class PodCodes(ErrorCode):
    """What errors about the names of pods say to people."""

    NAME_IN_USE = "Another pod already has this name, ignoring case; choose a different one"
    NAME_MISSING = ('Send the name of the pod: {"name": "alice"}', "Type the name of the pod")
    NAME_RESERVED = "The server reserves this name; choose another"
    NAME_WITH_SPACE = f"{NAME_RULE_TEXT}; it must not contain a space"
    NAME_WITH_UNPRINTABLE = f"{NAME_RULE_TEXT}; it must not contain the character {{character}}"
    NAME_WITH_OTHER_CHARACTER = f"{NAME_RULE_TEXT}; it must not contain {{character}}"
    NAME_TOO_LONG = f"{NAME_RULE_TEXT}; this one has {{length}} characters"


MAX_NAME_CHARACTERS = 64
NAME_RULE = NAME_RULE_TEXT.format(number=MAX_NAME_CHARACTERS)
"""The rule in words, for pages, API clients and commands."""
NAME_PATTERN = f"[A-Za-z0-9_\\-]{{1,{MAX_NAME_CHARACTERS}}}"
"""The rule as the pattern of an HTML field, in the syntax of JavaScript's v flag."""
_ALLOWED = re.compile(r"[A-Za-z0-9_-]")

RESERVED_NAMES = frozenset(
    {
        "idp", "auth", "login", "logout", "register", "account", "api", "admin", "static",
        "assets", "relay", "inbox", "outbox", "well-known", "pods", "notifications", "mashlib",
        "solidos-ui", "favicon.ico", "robots.txt", "health", "metrics", "www", "localhost",
    }
)  # fmt: skip
"""Names that the server uses in its paths, or may use in the future; case-insensitive."""


class UnusablePodName(BadRequest):
    """The name is not valid for a pod; clients compare ``known_text`` (A-90)."""


class PodNameTaken(Conflict):
    """Another pod has the name (A-90)."""

    known_text = "Pod already exists"

    code = PodCodes.NAME_IN_USE


def check_name(name: object) -> str:
    """Return the name if it is valid. Raises UnusablePodName."""
    if not isinstance(name, str) or name == "":
        raise UnusablePodName(PodCodes.NAME_MISSING, known_text="Pod name required")
    wrong = next((character for character in name if not _ALLOWED.match(character)), None)
    if wrong is not None:
        raise UnusablePodName(
            _code_for(wrong),
            known_text="Invalid pod name. Use alphanumeric, dash, or underscore only.",
            number=MAX_NAME_CHARACTERS,
            character=f"'{wrong}'" if wrong.isprintable() else f"U+{ord(wrong):04X}",
        )
    if len(name) > MAX_NAME_CHARACTERS:
        raise UnusablePodName(
            PodCodes.NAME_TOO_LONG,
            known_text="Reserved pod name",
            number=MAX_NAME_CHARACTERS,
            length=len(name),
        )
    if name.casefold() in RESERVED_NAMES:
        raise UnusablePodName(PodCodes.NAME_RESERVED, known_text="Reserved pod name")
    return name


def _code_for(character: str) -> PodCodes:
    if character == " ":
        return PodCodes.NAME_WITH_SPACE
    if character.isprintable():
        return PodCodes.NAME_WITH_OTHER_CHARACTER
    return PodCodes.NAME_WITH_UNPRINTABLE
