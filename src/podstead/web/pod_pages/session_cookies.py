"""The cookies of a session that began on the pages.

Only the pages get the cookie with the secret. The first page is above them, so browsers send it
another cookie, which says no more than that there is such a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.web.browsers import CookieJar
from podstead.web.request import Request
from podstead.web.response import HeaderField

_SIGNED_IN: Final = "podstead-signed-in"


class SessionCookies:
    """The cookies of one kind of session; ``name`` is that of the one with the secret."""

    def __init__(self, cookies: CookieJar, name: str) -> None:
        self._cookies = cookies
        self._name = name

    def secret(self, request: Request) -> str | None:
        """The secret of the session."""
        return self._cookies.secret(request, self._name)

    def set(self, secret: str) -> Sequence[HeaderField]:
        """Store them until the browser is closed."""
        return [
            self._cookies.set(self._name, secret, None),
            _for_first_page(secure=self._cookies.secure).set(_SIGNED_IN, "1", None),
        ]

    def clear(self) -> Sequence[HeaderField]:
        """Remove them."""
        return [
            self._cookies.clear(self._name),
            _for_first_page(secure=self._cookies.secure).clear(_SIGNED_IN),
        ]


def says_signed_in(request: Request, *, secure: bool) -> bool:
    """Whether the browser has a session of the pages; it may have ended since."""
    return _for_first_page(secure=secure).value(request, _SIGNED_IN) is not None


def _for_first_page(*, secure: bool) -> CookieJar:
    return CookieJar(secure=secure)
