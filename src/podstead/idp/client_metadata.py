"""Clients as they describe themselves: metadata, redirect URIs, scopes and authentication."""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, unquote_plus, urlsplit

import msgspec

from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.records import Client
from podstead.jose.tokens import Json
from podstead.storage.record_store import secret_key

# The rules of redirect URIs (A-49, RFC 8252).
#
# Pure. A redirect URI must match a registered one exactly. Only a native application may choose the
# port of a loopback address in its request.

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


# Validates the metadata of clients: registrations and Client ID Documents.
#
# Pure: RFC 7591 section 2, OpenID Connect Registration section 2, Solid-OIDC section 5. Unknown
# members are ignored, and ``null`` means absent, because clients send it.

SOLID_OIDC_CONTEXT: Final = "https://www.w3.org/ns/solid/oidc-context.jsonld"
AUTH_METHODS: Final = ("client_secret_basic", "client_secret_post", "none")
GRANT_TYPES: Final = ("authorization_code", "refresh_token", "client_credentials")
IDENTITY_ALGORITHMS: Final = ("ES256", "RS256")

_MAX_REDIRECT_URIS: Final = 32
_MAX_NAME_CHARACTERS: Final = 200


class UnusableMetadata(Exception):
    """The metadata is not acceptable; ``error`` is a code of RFC 7591 section 3.2.2."""

    def __init__(self, description: str, *, error: str = "invalid_client_metadata") -> None:
        super().__init__(description)
        self.error = error


class UnusableDetails(Exception):
    """What a client asks for is not understood; ``str()`` is a sentence for its developers."""


def read_metadata(sent: Json, *, allow_http: bool, for_document: bool = False) -> Client:
    """Read and validate the metadata of a client, which has no id yet.

    ``allow_http`` accepts redirect URIs with plain http to any host. ``for_document`` reads a
    Client ID Document: such a client has no secret, and its ID tokens are signed with ES256 unless
    it says otherwise.

    Raises UnusableMetadata.
    """
    application_type = _word(sent, "application_type", ("web", "native"), "web")
    redirect_uris = _texts(sent, "redirect_uris")
    if not redirect_uris or len(redirect_uris) > _MAX_REDIRECT_URIS:
        raise UnusableMetadata("redirect_uris must contain at least one URI", error=_BAD_REDIRECT)
    _check_redirects(redirect_uris, application_type, allow_http=allow_http)
    post_logout = _texts(sent, "post_logout_redirect_uris")
    _check_redirects(post_logout, application_type, allow_http=allow_http)
    response_types = _texts(sent, "response_types") or ("code",)
    if "code" not in response_types:
        raise UnusableMetadata("response_types must contain code")
    return Client(
        client_id="",
        registered=not for_document,
        redirect_uris=redirect_uris,
        grant_types=_grant_types(sent),
        auth_method="none"
        if for_document
        else _word(sent, "token_endpoint_auth_method", AUTH_METHODS, "client_secret_basic"),
        identity_algorithm=_word(
            sent,
            "id_token_signed_response_alg",
            IDENTITY_ALGORITHMS,
            "ES256" if for_document else "RS256",
        ),
        application_type=application_type,
        client_name=_display_text(sent, "client_name"),
        client_uri=_display_text(sent, "client_uri"),
        post_logout_redirect_uris=post_logout,
        details=_details(sent),
    )


def is_document_url(client_id: str) -> bool:
    """Whether the client id is the URL of a document rather than the id of a registration."""
    return client_id.startswith(("https://", "http://"))


def read_client_document(document: Json, *, client_id: str, allow_http: bool) -> Client:
    """The client that a document describes (Solid-OIDC section 5.1). Raises UnusableMetadata."""
    context = document.get("@context")
    contexts = context if isinstance(context, list) else [context]
    if context is not None and SOLID_OIDC_CONTEXT not in contexts:
        raise UnusableMetadata("The client's document does not use the Solid-OIDC context")
    if document.get("client_id") != client_id:
        raise UnusableMetadata("The client's document is about another client")
    described = read_metadata(document, allow_http=allow_http, for_document=True)
    return msgspec.structs.replace(described, client_id=client_id)


def registered_metadata(client: Client) -> Json:
    """The metadata of a registered client, for a response (RFC 7591 section 3.2.1)."""
    metadata: Json = {
        "client_id": client.client_id,
        "client_id_issued_at": client.issued_s,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(client.grant_types),
        "response_types": ["code"],
        "token_endpoint_auth_method": client.auth_method,
        "id_token_signed_response_alg": client.identity_algorithm,
        "application_type": client.application_type,
        "subject_type": "public",
    }
    for name in ("client_name", "client_uri"):
        value = getattr(client, name)
        if value is not None:
            metadata[name] = value
    if client.post_logout_redirect_uris:
        metadata["post_logout_redirect_uris"] = list(client.post_logout_redirect_uris)
    if client.details is not None:
        metadata["authorization_details"] = msgspec.json.decode(client.details)
    return metadata


_MAX_DETAILS_CHARACTERS: Final = 4096
_BAD_REDIRECT: Final = "invalid_redirect_uri"


def _check_redirects(uris: tuple[str, ...], application_type: str, *, allow_http: bool) -> None:
    for uri in uris:
        if not is_usable_redirect(uri, application_type=application_type, allow_http=allow_http):
            raise UnusableMetadata(
                "A redirect URI must be an absolute https URL, or http on this machine, without "
                "a fragment",
                error=_BAD_REDIRECT,
            )


def _grant_types(sent: Json) -> tuple[str, ...]:
    asked = _texts(sent, "grant_types") or ("authorization_code", "refresh_token")
    # Client credentials are created on the account page, never by registration.
    return tuple(each for each in GRANT_TYPES[:2] if each in asked) or GRANT_TYPES[:1]


def _texts(sent: Json, name: str) -> tuple[str, ...]:
    value = sent.get(name)
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        error = _BAD_REDIRECT if name.endswith("redirect_uris") else "invalid_client_metadata"
        raise UnusableMetadata(f"{name} must be a list of strings", error=error)
    return tuple(values)


def _word(sent: Json, name: str, allowed: tuple[str, ...], default: str) -> str:
    value = sent.get(name)
    if value is None:
        return default
    if value not in allowed:
        raise UnusableMetadata(f"{name} must be one of {', '.join(allowed)}")
    return str(value)


def _details(sent: Json) -> str | None:
    value = sent.get("authorization_details")
    if value is None:
        return None
    text = msgspec.json.encode(value).decode()
    if not isinstance(value, list) or len(text) > _MAX_DETAILS_CHARACTERS:
        raise UnusableMetadata("authorization_details must be a short list of objects")
    return text


def _display_text(sent: Json, name: str) -> str | None:
    """Text to show to people, or nothing. Control characters are removed, as is everything after
    the first line."""
    value = sent.get(name)
    if not isinstance(value, str):
        return None
    printable = "".join(each for each in value if each.isprintable())
    return printable[:_MAX_NAME_CHARACTERS].strip() or None


# The scopes and what they allow an application (Solid-OIDC 7, OpenID Connect Core 5.4).
#
# The scope ``webid`` marks a Solid application: its tokens name the WebID and give access to
# resources. Without it, a relying party of plain OpenID Connect learns who signed in and nothing
# more. Solid clients older than that scope request ``openid`` alone; what distinguishes them from
# relying parties is the key that they bind their tokens to. Pure.

OPENID: Final = "openid"
WEBID: Final = "webid"
PROFILE: Final = "profile"
EMAIL: Final = "email"
OFFLINE: Final = "offline_access"
SCOPES: Final = (OPENID, WEBID, PROFILE, EMAIL, OFFLINE, IDENTITY_SCOPE)
"""The scopes of this provider; others are dropped (A-53)."""

_OF_PLAIN_RELYING_PARTIES: Final = frozenset({PROFILE, EMAIL})


def permissions(scopes: Iterable[str]) -> tuple[str, ...]:
    """The permissions that a person grants with these scopes: the most that an application can get.
    Whether its tokens will be bound to a key is not known yet, so ``openid`` alone is treated like
    ``webid``."""
    asked = set(scopes)
    if _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked):
        asked.add(WEBID)
    return tuple(each for each in SCOPES if each in asked)


def speaks_for_web_id(scopes: Iterable[str], *, bound: bool) -> bool:
    """Whether tokens with these scopes name the WebID and give access to resources; ``bound`` means
    that they are bound to a DPoP key."""
    asked = set(scopes)
    return WEBID in asked or (bound and _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked))


# Identifies and authenticates the client of a request (RFC 6749 section 2.3, A-62).
#
# Pure. An Authorization header takes precedence. A client without a secret only gives its id.


class UnreadableClient(Exception):
    """The client id cannot be read, or the request gives two different ones."""


@dataclass(frozen=True, slots=True)
class PresentedClient:
    """A client id and the secret that came with it, in every form in which it can be decoded; no
    secrets if none was sent."""

    client_id: str
    secrets: tuple[str, ...] = ()


def presented_client(
    form: Mapping[str, Sequence[str]], authorization: str | None
) -> PresentedClient | None:
    """The client that a request names; ``None`` if it names none. Raises UnreadableClient."""
    named = _first(form, "client_id")
    if authorization is not None:
        presented = _basic(authorization)
        if presented is None or named not in (None, presented.client_id):
            raise UnreadableClient
        return presented
    if named is None:
        return None
    secret = _first(form, "client_secret")
    return PresentedClient(named, () if secret is None else (secret,))


def authenticates(client: Client, presented: PresentedClient) -> bool:
    """Whether the client has authenticated: with its secret or, if it has none, by sending none."""
    if presented.client_id != client.client_id:
        return False
    if client.auth_method == "none":
        return not presented.secrets
    expected = client.secret_hash
    return expected is not None and any(
        hmac.compare_digest(expected, secret_key(secret)) for secret in presented.secrets
    )


def _basic(authorization: str) -> PresentedClient | None:
    """Clients should encode both parts as a form does (RFC 6749 section 2.3.1), but some send them
    as they are."""
    scheme, _, encoded = authorization.strip(" \t").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(" "), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = decoded.partition(":")
    if not colon:
        return None
    return PresentedClient(
        unquote_plus(client_id), (unquote_plus(secret), secret) if secret else ()
    )


def _first(form: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = form.get(name)
    return values[0] if values else None
