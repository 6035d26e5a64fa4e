"""What does a browser store for the provider? Its cookies (A-57, A-61).

There are four: the session; the secret that ties sign-ins in progress to the browser that began
them; a short message for the next page; and the marks of the accounts that the browser has signed
in to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode

from podstead.idp.sessions import LASTING_S
from podstead.idp.sign_in import MARK_S
from podstead.web.browsers import CookieJar
from podstead.web.request import Request
from podstead.web.response import HeaderField

Header = HeaderField

SESSION: Final = "podstead-session"
BROWSER: Final = "podstead-browser"
FLASH_MESSAGE: Final = "podstead-notice"
FLASH_MESSAGE_S: Final = 60
KNOWN: Final = "podstead-known"

_MARKS: Final = re.compile(r"[0-9a-f.~]{1,1000}")
_MAX_TYPED_CHARACTERS: Final = 254
_MAX_FLASH_MESSAGE_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """A message for the next page: the name of a text, and what the person had typed."""

    name: str
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Cookies:
    """Reads and writes the cookies; ``secure`` if the server is reached over https."""

    secure: bool

    @property
    def _jar(self) -> CookieJar:
        return CookieJar(self.secure)

    def session(self, request: Request) -> str | None:
        """The secret of the session."""
        return self._jar.secret(request, SESSION)

    def browser(self, request: Request) -> str | None:
        """The secret of the browser."""
        return self._jar.secret(request, BROWSER)

    def marks(self, request: Request) -> str:
        """The marks of the accounts that the browser has signed in to
        (:mod:`podstead.idp.sign_in`); empty without any."""
        value = self._jar.value(request, KNOWN)
        return value if value is not None and _MARKS.fullmatch(value) else ""

    def any_of_ours(self, request: Request) -> bool:
        """Whether the request has a cookie that gives it any rights."""
        return self.session(request) is not None or self.browser(request) is not None

    def flash_message(self, request: Request) -> FlashMessage | None:
        """The message for this page."""
        value = self._jar.value(request, FLASH_MESSAGE)
        if value is None or len(value) > _MAX_FLASH_MESSAGE_CHARACTERS:
            return None
        try:
            fields = dict(parse_qsl(value, errors="strict", max_num_fields=2))
        except ValueError:
            return None
        return FlashMessage(fields.get("name", ""), fields.get("typed", ""))

    def set_session(self, secret: str, *, lasting: bool) -> Header:
        """Sign the browser in: if ``lasting`` for good, otherwise until it is closed."""
        return self._jar.set(SESSION, secret, LASTING_S if lasting else None)

    def keep_marks(self, marks: str) -> Header:
        """Store the marks, which the browser keeps after signing out."""
        return self._jar.set(KNOWN, marks, MARK_S)

    def clear_session(self) -> Header:
        return self._jar.set(SESSION, "", 0)

    def set_browser(self, secret: str) -> Header:
        return self._jar.set(BROWSER, secret, None)

    def set_flash_message(self, flash_message: FlashMessage) -> Header:
        fields = {"name": flash_message.name, "typed": flash_message.typed[:_MAX_TYPED_CHARACTERS]}
        value = urlencode({key: value for key, value in fields.items() if value})
        return self._jar.set(FLASH_MESSAGE, value, FLASH_MESSAGE_S)

    def clear_flash_message(self) -> Header:
        return self._jar.set(FLASH_MESSAGE, "", 0)
