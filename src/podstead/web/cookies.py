"""How does the server read and write cookies?

No script can read them, and no browser sends them with the forms of other sites. If the server is
reached over https, the names of cookies begin with ``__Host-`` or ``__Secure-``, so that browsers
refuse cookies of that name from anywhere else; over plain http no client would accept such a
cookie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from podstead.web.request import Request
from podstead.web.response import HeaderField

_SECRET: Final = re.compile(r"[0-9a-f]{64}")
# Browsers may send each cookie in a field of its own over HTTP/2 (RFC 9113 section 8.2.3), and
# fields of the same name were joined with a comma, which no value of this server contains.
_BETWEEN: Final = re.compile(r"[;,] *")


@dataclass(frozen=True, slots=True)
class CookieJar:
    """The cookies of the pages below one path; ``secure`` if the server is reached over https."""

    secure: bool
    path: str = "/"

    def value(self, request: Request, name: str) -> str | None:
        """The value of a cookie as received."""
        sent = request.fields.get(b"cookie")
        if sent is None:
            return None
        wanted = self._name(name)
        pairs = (pair.partition("=") for pair in _BETWEEN.split(sent))
        return next((value.strip() for key, _, value in pairs if key.strip() == wanted), None)

    def secret(self, request: Request, name: str) -> str | None:
        """The value of a cookie that contains a secret of 32 bytes in hexadecimal digits."""
        value = self.value(request, name)
        return value if value is not None and _SECRET.fullmatch(value) else None

    def set(self, name: str, value: str, max_age_s: int | None) -> HeaderField:
        """Store a cookie, until the browser is closed without ``max_age_s``."""
        parts = [f"{self._name(name)}={value}", f"Path={self.path}", "HttpOnly", "SameSite=Lax"]
        if self.secure:
            parts.append("Secure")
        if max_age_s is not None:
            parts.append(f"Max-Age={max_age_s}")
        return b"set-cookie", "; ".join(parts).encode("ascii")

    def clear(self, name: str) -> HeaderField:
        """Remove a cookie."""
        return self.set(name, "", 0)

    def _name(self, name: str) -> str:
        if not self.secure:
            return name
        return f"__Host-{name}" if self.path == "/" else f"__Secure-{name}"
