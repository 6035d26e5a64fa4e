"""What browsers say about their requests, and responses to them."""

import hmac
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.core.media_types import prefers_html
from podstead.web import codes, response
from podstead.web.request import Request

# Browsers are named in everyday words, by what they say of themselves.

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


# Protection against requests that other sites make a browser send.
#
# Browsers say where a request comes from, in ``Sec-Fetch-Site`` or at least in ``Origin``. A client
# that sends neither is not a browser. Its request is accepted if it has the cookie that was set at
# the beginning of the sign-in, which no other site can make a client send.

_OURS = frozenset({"same-origin", "none"})


class CrossSiteRequest(AccessDenied):
    """The request seems to come from another site; nothing was changed."""

    code = codes.WebCodes.CROSS_SITE


class WrongFormToken(AccessDenied):
    """The form belongs to another session; nothing was changed."""

    code = codes.WebCodes.FORM_OUTDATED


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


# Navigations of a person in a browser, which a page answers better than data.
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


def see_other(location: str, *headers: response.HeaderField) -> response.Response:
    """A redirect to another page, with GET."""
    fields = [(b"location", location.encode("ascii")), response.NO_STORE, *headers]
    return response.empty_response(303, fields, vary=VARY_BY_COOKIE)


FORGET_STORAGE: Final[response.HeaderField] = (b"clear-site-data", b'"storage"')
"""Has a browser in which somebody signs out forget what the pages of this origin have stored in it:
pages kept for reading without a network, files received from others, and the service worker with
its subscription (Clear Site Data, section 3.1). Cookies stay."""


def json_response(status: int, body: object, *headers: response.HeaderField) -> response.Response:
    """A response for a program: ``body`` as JSON, or nothing with a 204."""
    fields = [response.NO_STORE, *headers]
    if status == 204:
        return response.empty_response(status, fields, vary=VARY_BY_COOKIE)
    return response.json_content_response(body, status=status, headers=fields, vary=VARY_BY_COOKIE)
