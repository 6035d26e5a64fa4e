"""What browsers say about their requests, and the cookies that they store."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.core.media_types import prefers_html
from podstead.web.codes import WebCodes
from podstead.web.request import Request
from podstead.web.response import (
    NO_STORE,
    HeaderField,
    Response,
    empty_response,
    json_content_response,
)

# What is a browser called, by what it says of itself? In everyday words.

# The order matters: each of these browsers also claims to be those below it.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """The name of the browser that sent this User-Agent, such as "Firefox on Windows"."""
    browser = _first(user_agent, _BROWSERS)
    system = _first(user_agent, _SYSTEMS)
    if browser is None:
        return "A program" if system is None else f"A browser on {system}"
    return browser if system is None else f"{browser} on {system}"


def _first(user_agent: str, names: tuple[tuple[str, str], ...]) -> str | None:
    return next((name for sign, name in names if sign in user_agent), None)


# How does the server read and write cookies?
#
# No script can read them, and no browser sends them with the forms of other sites. If the server is
# reached over https, the names of cookies begin with ``__Host-`` or ``__Secure-``, so that browsers
# refuse cookies of that name from anywhere else; over plain http no client would accept such a
# cookie.

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


# Does this request come from one of the provider's own pages? Protection against other sites
#
#
# Browsers say where a request comes from, in ``Sec-Fetch-Site`` or at least in ``Origin``. A client
# that sends neither is not a browser. Its request is accepted if it has the cookie that was set at
# the beginning of the sign-in, which no other site can make a client send.

_OURS = frozenset({"same-origin", "none"})


class CrossSiteRequest(AccessDenied):
    """The request seems to come from another site; nothing was changed."""

    code = WebCodes.CROSS_SITE


class WrongFormToken(AccessDenied):
    """The form belongs to another session; nothing was changed."""

    code = WebCodes.FORM_OUTDATED


def check_origin(request: Request, *, origin: str, has_binding: bool) -> None:
    """Raises CrossSiteRequest unless the request comes from ``origin``, the server's own.

    ``has_binding`` is true if it has the cookie of a browser, for clients that are not browsers.
    """
    site = request.fields.get(b"sec-fetch-site")
    if site is not None:
        comes_from_here = site in _OURS
    else:
        named = request.fields.get(b"origin")
        comes_from_here = has_binding if named is None else named == origin
    if not comes_from_here:
        raise CrossSiteRequest


def check_form_token(sent: object, *, expected: str) -> None:
    """Raises WrongFormToken unless a form or a script has sent the session's token."""
    sent_token = sent.encode(errors="replace") if isinstance(sent, str) else b""
    if not hmac.compare_digest(sent_token, expected.encode()):
        raise WrongFormToken


# Is a request a person's navigation in a browser, which a page answers better than data?
#
# Browsers say what they want a response for (Fetch Metadata). What an application in a browser
# requests, with ``fetch()``, for an ``<img>`` or for a frame, never leads to a page. A client that
# says nothing about it is treated as a browser if its Accept header prefers HTML.

_SAFE = frozenset({"GET", "HEAD"})


def is_navigation(request: Request) -> bool:
    """Whether a browser loads the response as a page of its own."""
    fields = request.fields
    if request.method not in _SAFE or fields.authorization:
        return False
    accept = fields.get(b"accept")
    return (
        accept is not None
        and "html" in accept
        and prefers_html(accept)
        and fields.get(b"sec-fetch-mode") in (None, "navigate")
        and fields.get(b"sec-fetch-dest") in (None, "document")
    )


# Responses to browsers that depend on a cookie: redirects to pages, and JSON for scripts.
#
# None of them may be cached, since pages and their URLs contain secrets.

VARY_BY_COOKIE: Final = b"Accept, Accept-Encoding, Cookie"


def see_other(location: str, *headers: HeaderField) -> Response:
    """A redirect to another page, with GET."""
    fields = [(b"location", location.encode("ascii")), NO_STORE, *headers]
    return empty_response(303, fields, vary=VARY_BY_COOKIE)


def json_response(status: int, body: object, *headers: HeaderField) -> Response:
    """A response for a program: ``body`` as JSON, or nothing with a 204."""
    fields = [NO_STORE, *headers]
    if status == 204:
        return empty_response(status, fields, vary=VARY_BY_COOKIE)
    return json_content_response(body, status=status, headers=fields, vary=VARY_BY_COOKIE)
