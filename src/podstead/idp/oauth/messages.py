"""Requests and responses in the form that the library expects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Payload, OAuth2Request

from podstead.idp.client_metadata import SCOPES, matches_redirect
from podstead.idp.records import Client

Parameters = Mapping[str, Sequence[str]]
"""The parameters of a query or a form: all values of each name."""


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """A JSON response of a protocol endpoint."""

    status: int
    body: Mapping[str, object]
    headers: Sequence[tuple[str, str]] = ()


class _Payload(OAuth2Payload):
    def __init__(self, parameters: Parameters) -> None:
        self._first = {name: values[0] for name, values in parameters.items()}
        self._all = {name: list(values) for name, values in parameters.items()}

    @property
    def data(self) -> dict[str, str]:
        return self._first

    @property
    def datalist(self) -> dict[str, list[str]]:
        return self._all


class LibraryRequest(OAuth2Request):
    """A request in the form that the library expects.

    Whether plain http may be used is decided for the whole server, so the library never sees the
    server's URL.
    """

    def __init__(self, method: str, parameters: Parameters) -> None:
        super().__init__(method, "https://provider.invalid/")
        self.payload = _Payload(parameters)

    @property
    def form(self) -> dict[str, str]:
        data: dict[str, str] = self.payload.data
        return data

    @property
    def args(self) -> dict[str, str]:
        return self.form


def repeated(parameters: Parameters) -> str | None:
    """A parameter that occurs more than once, which is not allowed (RFC 6749 section 3.1)."""
    return next((name for name, values in parameters.items() if len(values) > 1), None)


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """A response of the library, before it is converted."""

    status: int
    body: Any
    headers: list[tuple[str, str]] = field(default_factory=list)


# Presents a client to the library, which asks this class about the registration.


class OAuthClient(ClientMixin):
    """A client in the form that the library expects."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def get_client_id(self) -> str:
        return self.client.client_id

    def get_default_redirect_uri(self) -> str | None:
        # Every request must name its redirect URI, which is compared with the registered ones.
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        asked = (scope or "").split()
        return " ".join(each for each in SCOPES if each in asked)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return matches_redirect(redirect_uri, self.client)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:  # noqa: ARG002
        if self.client.auth_method == "none":
            return method == "none"
        # Clients mix the two methods of sending a secret; both prove the same.
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and "authorization_code" in self.client.grant_types

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.client.grant_types


# Converts the library's error responses to our own (RFC 6749 section 5.2).

_NO_STORE: Final = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))
_CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="client"')

_DESCRIPTIONS: Final = MappingProxyType(
    {
        # One description for every reason, so that it does not reveal which one it was.
        "invalid_grant": "The code or token is invalid, expired, revoked, or of another client "
        "or key",
        "invalid_client": "The client is not known here, or could not be authenticated",
        "invalid_request": "A parameter is missing",
        "invalid_scope": "The scope goes beyond what was granted",
        "unauthorized_client": "The client may not use this grant type",
        "unsupported_grant_type": "The grant type is missing or not supported",
    }
)
"""The description of each error. The library's own descriptions repeat what was sent (A-186)."""


def refused(error: str, description: str, *, status: int = 400) -> OAuthAnswer:
    """An error response of RFC 6749 section 5.2."""
    return OAuthAnswer(status, {"error": error, "error_description": description}, _NO_STORE)


def unavailable(retry_after_s: int) -> OAuthAnswer:
    """The response while the client cannot be determined. The code is that of RFC 6749 section
    4.1.2.1 for authorization requests, because the token endpoint has none for server faults."""
    body = {
        "error": "temporarily_unavailable",
        "error_description": "The client's document cannot be read at present: try again later",
    }
    return OAuthAnswer(503, body, (*_NO_STORE, ("Retry-After", str(retry_after_s))))


def own_answer(answer: LibraryAnswer) -> OAuthAnswer:
    """The response with our headers and, for an error, our description only."""
    if answer.status == 200:
        return OAuthAnswer(200, answer.body, _NO_STORE)
    error = str(answer.body["error"])
    if error == "invalid_client":
        return unknown_client()
    return refused(error, _DESCRIPTIONS.get(error, "The request is not valid"))


def unknown_client() -> OAuthAnswer:
    """The response to a client that has not authenticated (RFC 6749 section 5.2)."""
    body = {"error": "invalid_client", "error_description": _DESCRIPTIONS["invalid_client"]}
    return OAuthAnswer(401, body, (*_NO_STORE, _CHALLENGE))
