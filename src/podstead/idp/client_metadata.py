"""Validates the metadata of clients: registrations and Client ID Documents (A-47 to A-51).

Pure: RFC 7591 section 2, OpenID Connect Registration section 2, Solid-OIDC section 5. Unknown
members are ignored, and ``null`` means absent, because clients send it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.idp.records import Client
from podstead.idp.redirects import is_usable_redirect
from podstead.jose.tokens import Json

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


@dataclass(frozen=True, slots=True)
class ClientMetadata:
    """The metadata of a client, with defaults for absent members."""

    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    auth_method: str
    identity_algorithm: str
    application_type: str
    client_name: str | None
    client_uri: str | None
    post_logout_redirect_uris: tuple[str, ...]


def read_metadata(sent: Json, *, allow_http: bool, for_document: bool = False) -> ClientMetadata:
    """Read and validate the metadata of a client.

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
    return ClientMetadata(
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
    metadata = read_metadata(document, allow_http=allow_http, for_document=True)
    return client_of(metadata, client_id=client_id, registered=False)


def client_of(
    metadata: ClientMetadata,
    *,
    client_id: str,
    registered: bool,
    secret_hash: str | None = None,
    registration_token_hash: str | None = None,
    issued_s: int = 0,
) -> Client:
    """The record of a client with this metadata."""
    return Client(
        client_id=client_id,
        redirect_uris=metadata.redirect_uris,
        grant_types=metadata.grant_types,
        auth_method=metadata.auth_method,
        identity_algorithm=metadata.identity_algorithm,
        registered=registered,
        application_type=metadata.application_type,
        client_name=metadata.client_name,
        client_uri=metadata.client_uri,
        post_logout_redirect_uris=metadata.post_logout_redirect_uris,
        secret_hash=secret_hash,
        registration_token_hash=registration_token_hash,
        issued_s=issued_s,
    )


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
    return metadata


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


def _display_text(sent: Json, name: str) -> str | None:
    """Text to show to people, or nothing. Control characters are removed, as is everything after
    the first line."""
    value = sent.get(name)
    if not isinstance(value, str):
        return None
    printable = "".join(each for each in value if each.isprintable())
    return printable[:_MAX_NAME_CHARACTERS].strip() or None
