"""Checks the names of pods (A-90, A-91)."""

from __future__ import annotations

import re

from podstead.core.errors import BadRequest, Conflict

MAX_NAME_CHARACTERS = 64
NAME_RULE = (
    f"The name of a pod must have 1 to {MAX_NAME_CHARACTERS} characters: letters from A to Z "
    "or a to z, digits, - and _"
)
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

    def __init__(self, known_text: str, message: str) -> None:
        super().__init__(message)
        self.known_text = known_text


class PodNameTaken(Conflict):
    """Another pod has the name (A-90)."""

    known_text = "Pod already exists"

    def __init__(self) -> None:
        super().__init__("Another pod already has this name, ignoring case; choose a different one")


def check_name(name: object) -> str:
    """Return the name if it is valid. Raises UnusablePodName."""
    if not isinstance(name, str) or name == "":
        raise UnusablePodName("Pod name required", 'Send the name of the pod: {"name": "alice"}')
    wrong = next((character for character in name if not _ALLOWED.match(character)), None)
    if wrong is not None:
        raise UnusablePodName(
            "Invalid pod name. Use alphanumeric, dash, or underscore only.",
            f"{NAME_RULE}; it must not contain {_described(wrong)}",
        )
    if len(name) > MAX_NAME_CHARACTERS:
        raise UnusablePodName(
            "Reserved pod name", f"{NAME_RULE}; this one has {len(name)} characters"
        )
    if name.casefold() in RESERVED_NAMES:
        raise UnusablePodName("Reserved pod name", "The server reserves this name; choose another")
    return name


def _described(character: str) -> str:
    if character == " ":
        return "a space"
    return f"'{character}'" if character.isprintable() else f"the character U+{ord(character):04X}"
