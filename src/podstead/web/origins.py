"""Does this request come from one of the provider's own pages? Protection against other sites
(A-60).

Browsers say where a request comes from, in ``Sec-Fetch-Site`` or at least in ``Origin``. A client
that sends neither is not a browser. Its request is accepted if it has the cookie that was set at
the beginning of the sign-in, which no other site can make a client send.
"""

from __future__ import annotations

import hmac

from podstead.core.errors import AccessDenied
from podstead.web.codes import WebCodes
from podstead.web.request import Request

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
