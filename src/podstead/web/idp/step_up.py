"""Has this person just shown that they can sign in? Asked before that is changed (A-86)."""

from __future__ import annotations

from podstead.core.errors import AccessDenied
from podstead.idp.sessions import OpenSession, Sessions


class SignInAgain(AccessDenied):
    """Who is signed in has done so too long ago for this (A-86)."""

    known_text = "Sign in again"

    def __init__(self, again_at: str | None = None) -> None:
        """``again_at`` is the path that a person is sent to for it, instead of being refused."""
        super().__init__(
            "Sign in again: this action requires a sign-in within the last ten minutes"
        )
        self.again_at = again_at


def check_recent(sessions: Sessions, owner: OpenSession, *, again_at: str | None = None) -> None:
    """Raises SignInAgain unless who is signed in has just done so."""
    if not sessions.is_recent(owner):
        raise SignInAgain(again_at)
