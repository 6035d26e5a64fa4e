"""May a pod have this name? (A-90, A-91)"""

from __future__ import annotations

import re

from podstead.core.errors import BadRequest, Conflict

MAX_NAME_CHARACTERS = 64
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")

RESERVED_NAMES = frozenset(
    {
        "idp", "auth", "login", "logout", "register", "account", "api", "admin", "static",
        "assets", "relay", "inbox", "outbox", "well-known", "pods", "notifications", "mashlib",
        "solidos-ui", "favicon.ico", "robots.txt", "health", "metrics", "www", "localhost",
    }
)  # fmt: skip
"""Names that paths of the server use or may come to use; compared case-insensitively."""


class UnusablePodName(BadRequest):
    """No pod may have the name; ``known_text`` is one of those that clients compare (A-90)."""

    def __init__(self, known_text: str, message: str) -> None:
        super().__init__(message)
        self.known_text = known_text


class PodNameTaken(Conflict):
    """Another pod has the name (A-90)."""

    known_text = "Pod already exists"

    def __init__(self) -> None:
        super().__init__("A pod has this name already, in upper or lower case: choose another")


def check_name(name: object) -> str:
    """The name if a pod may have it. Raises UnusablePodName."""
    if not isinstance(name, str) or name == "":
        raise UnusablePodName("Pod name required", 'Send the name of the pod: {"name": "alice"}')
    if not _NAME.match(name):
        raise UnusablePodName(
            "Invalid pod name. Use alphanumeric, dash, or underscore only.",
            "The name of a pod has letters from a to z, digits, - and _ only",
        )
    if len(name) > MAX_NAME_CHARACTERS:
        raise UnusablePodName(
            "Reserved pod name", f"The name of a pod has at most {MAX_NAME_CHARACTERS} characters"
        )
    if name.casefold() in RESERVED_NAMES:
        raise UnusablePodName(
            "Reserved pod name", "The server keeps this name for itself: choose another"
        )
    return name
