"""Has this person signed in recently? Required for changing how they sign in (A-86)."""

from __future__ import annotations

from podstead.core.errors import AccessDenied
from podstead.idp.sessions import OpenSession, Sessions
from podstead.web.codes import WebCodes


class SignInAgain(AccessDenied):
    """The person has not signed in recently enough for this (A-86)."""

    known_text = "Sign in again"

    def __init__(self, again_at: str | None = None) -> None:
        """``again_at`` is the path where a person can sign in again, instead of being refused."""
        super().__init__(WebCodes.SIGN_IN_AGAIN)
        self.again_at = again_at


def check_recent(sessions: Sessions, owner: OpenSession, *, again_at: str | None = None) -> None:
    """Raises SignInAgain unless the person has signed in recently."""
    if not sessions.is_recent(owner):
        raise SignInAgain(again_at)
