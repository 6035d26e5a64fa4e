"""The rules of redirect URIs (A-49, RFC 8252).

Pure. A redirect URI must match a registered one exactly. Only a native application may choose the
port of a loopback address in its request.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from podstead.idp.records import Client

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MAX_CHARACTERS: Final = 2048
_URI: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
"""The characters of a URI (RFC 3986 appendix A): no backslash, which browsers treat as a slash, and
nothing that ends a header or an attribute."""
_HOST: Final = re.compile(r"[a-z0-9\-._]+|[0-9a-f:.]+")


def is_usable_redirect(uri: str, *, application_type: str, allow_http: bool) -> bool:
    """Whether a client may register the URI. ``allow_http`` accepts plain http to any host."""
    parts = _parts(uri)
    if parts is None or "#" in uri or parts.username is not None or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        return _has_host(parts)
    if parts.scheme == "http":
        return _has_host(parts) and (allow_http or parts.hostname in LOOPBACK)
    return application_type == "native" and "." in parts.scheme


def matches_redirect(uri: str, client: Client) -> bool:
    """Whether the client has registered the URI."""
    return registered_redirect(uri, client) is not None


def registered_redirect(uri: str, client: Client) -> str | None:
    """The redirect URI as registered, which may have another port of a loopback address (RFC 8252
    section 7.3); ``None`` if it is not registered."""
    if uri in client.redirect_uris:
        return uri
    if client.application_type != "native" or "#" in uri or "@" in uri:
        return None
    asked = _without_loopback_port(uri)
    if asked is None:
        return None
    return next(
        (each for each in client.redirect_uris if asked == _without_loopback_port(each)), None
    )


def is_on_this_device(uri: str) -> bool:
    """Whether the URI leads to a program on the person's device, by a private scheme or a loopback
    address. Any program on the device can receive it, so it does not identify the application (RFC
    8252 section 8.6)."""
    parts = _parts(uri)
    if parts is None or parts.scheme not in ("http", "https"):
        return True
    host = (parts.hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def identifies_client(uri: str, client: Client) -> bool:
    """Whether only the client can use a code that is sent to the URI, so that an earlier consent
    may replace the page (RFC 8252 section 8.6, RFC 9700 section 4.14).

    On the person's device, any program may have sent the request and may receive the response. A
    client with a secret has to authenticate to use the code, and may not choose another port.
    """
    if not is_on_this_device(uri):
        return True
    return client.auth_method != "none" and uri in client.redirect_uris


def redirect_host(uri: str) -> str:
    """The part of a redirect URI that a person sees when they give consent."""
    parts = _parts(uri)
    if parts is None:
        return uri
    return parts.netloc or f"{parts.scheme}:"


def redirect_origin(uri: str) -> str | None:
    """The origin to which a form may redirect; ``None`` for an application's private scheme."""
    parts = _parts(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else None


def _without_loopback_port(uri: str) -> str | None:
    parts = _parts(uri)
    if parts is None or parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return None
    return parts._replace(netloc=parts.hostname or "").geturl()


def _has_host(parts: SplitResult) -> bool:
    return _HOST.fullmatch(parts.hostname or "") is not None


def _parts(uri: str) -> SplitResult | None:
    if len(uri) > MAX_CHARACTERS or not _URI.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme else None
