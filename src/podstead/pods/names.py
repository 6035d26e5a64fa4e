"""May a pod have this name? (A-90, A-91)"""

from __future__ import annotations

import re

from podstead.core.errors import BadRequest

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


def check_name(name: object) -> str:
    """The name if a pod may have it. Raises BadRequest with the reason (the texts of A-90)."""
    if not isinstance(name, str) or name == "":
        raise BadRequest("Pod name required")
    if not _NAME.match(name):
        raise BadRequest("Invalid pod name. Use alphanumeric, dash, or underscore only.")
    if len(name) > MAX_NAME_CHARACTERS or name.casefold() in RESERVED_NAMES:
        raise BadRequest("Reserved pod name")
    return name
