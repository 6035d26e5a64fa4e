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
    """No pod may have the name; ``str()`` is one of the texts that clients know (A-90)."""


class PodNameTaken(Conflict):
    """Another pod has the name (A-90)."""

    def __init__(self) -> None:
        super().__init__("Pod already exists")


def check_name(name: object) -> str:
    """The name if a pod may have it. Raises UnusablePodName."""
    if not isinstance(name, str) or name == "":
        raise UnusablePodName("Pod name required")
    if not _NAME.match(name):
        raise UnusablePodName("Invalid pod name. Use alphanumeric, dash, or underscore only.")
    if len(name) > MAX_NAME_CHARACTERS or name.casefold() in RESERVED_NAMES:
        raise UnusablePodName("Reserved pod name")
    return name
