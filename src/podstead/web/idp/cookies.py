"""What does a browser store for the provider? Its cookies (A-57, A-61).

There are four: the session; the secret that ties sign-ins in progress to the browser that began
them; a short message for the next page; and the marks of the accounts that the browser has signed
in to. No script can read them, and no browser sends them with the forms of other sites. If the
server is reached over https, their names begin with ``__Host-``, so that browsers refuse cookies of
that name from anywhere else; over plain http no client would accept such a cookie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode

from podstead.idp.known_browsers import MARK_S
from podstead.idp.sessions import LASTING_S
from podstead.web.request import Request

Header = tuple[bytes, bytes]

SESSION: Final = "podstead-session"
BROWSER: Final = "podstead-browser"
FLASH_MESSAGE: Final = "podstead-notice"
FLASH_MESSAGE_S: Final = 60
KNOWN: Final = "podstead-known"

_SECRET: Final = re.compile(r"[0-9a-f]{64}")
_MARKS: Final = re.compile(r"[0-9a-f.~]{1,1000}")
_MAX_TYPED_CHARACTERS: Final = 254
_MAX_FLASH_MESSAGE_CHARACTERS: Final = 4096
# Browsers may send each cookie in a field of its own over HTTP/2 (RFC 9113 section 8.2.3), and
# fields of the same name were joined with a comma, which no value of this server contains.
_BETWEEN: Final = re.compile(r"[;,] *")


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """A message for the next page: the name of a text, and what the person had typed."""

    name: str
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Cookies:
    """Reads and writes the cookies; ``secure`` if the server is reached over https."""

    secure: bool

    def session(self, request: Request) -> str | None:
        """The secret of the session."""
        return self._secret(request, SESSION)

    def browser(self, request: Request) -> str | None:
        """The secret of the browser."""
        return self._secret(request, BROWSER)

    def marks(self, request: Request) -> str:
        """The marks of the accounts that the browser has signed in to
        (:mod:`podstead.idp.known_browsers`); empty without any."""
        value = self._value(request, KNOWN)
        return value if value is not None and _MARKS.fullmatch(value) else ""

    def any_of_ours(self, request: Request) -> bool:
        """Whether the request has a cookie that gives it any rights."""
        return self.session(request) is not None or self.browser(request) is not None

    def flash_message(self, request: Request) -> FlashMessage | None:
        """The message for this page."""
        value = self._value(request, FLASH_MESSAGE)
        if value is None or len(value) > _MAX_FLASH_MESSAGE_CHARACTERS:
            return None
        try:
            fields = dict(parse_qsl(value, errors="strict", max_num_fields=2))
        except ValueError:
            return None
        return FlashMessage(fields.get("name", ""), fields.get("typed", ""))

    def set_session(self, secret: str, *, lasting: bool) -> Header:
        """Sign the browser in: if ``lasting`` for good, otherwise until it is closed."""
        return self._set(SESSION, secret, LASTING_S if lasting else None)

    def keep_marks(self, marks: str) -> Header:
        """Store the marks, which the browser keeps after signing out."""
        return self._set(KNOWN, marks, MARK_S)

    def clear_session(self) -> Header:
        return self._set(SESSION, "", 0)

    def set_browser(self, secret: str) -> Header:
        return self._set(BROWSER, secret, None)

    def set_flash_message(self, flash_message: FlashMessage) -> Header:
        fields = {"name": flash_message.name, "typed": flash_message.typed[:_MAX_TYPED_CHARACTERS]}
        value = urlencode({key: value for key, value in fields.items() if value})
        return self._set(FLASH_MESSAGE, value, FLASH_MESSAGE_S)

    def clear_flash_message(self) -> Header:
        return self._set(FLASH_MESSAGE, "", 0)

    def _secret(self, request: Request, name: str) -> str | None:
        value = self._value(request, name)
        return value if value is not None and _SECRET.fullmatch(value) else None

    def _value(self, request: Request, name: str) -> str | None:
        sent = request.fields.get(b"cookie")
        if sent is None:
            return None
        wanted = self._name(name)
        pairs = (pair.partition("=") for pair in _BETWEEN.split(sent))
        return next((value.strip() for key, _, value in pairs if key.strip() == wanted), None)

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self.secure else name

    def _set(self, name: str, value: str, max_age_s: int | None) -> Header:
        parts = [f"{self._name(name)}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
        if self.secure:
            parts.append("Secure")
        if max_age_s is not None:
            parts.append(f"Max-Age={max_age_s}")
        return b"set-cookie", "; ".join(parts).encode("ascii")
