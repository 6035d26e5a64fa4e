"""Validates authorization requests (RFC 6749 section 4.1.1, A-53).

Pure. If the client or its redirect URI is wrong, the person sees an error, and nothing is
redirected; all other errors are sent to the client.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from authlib.oauth2 import AuthorizationServer, OAuth2Error
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc7636 import CodeChallenge

from podstead.core.errors import PodsteadError
from podstead.idp.codes import IdpCodes
from podstead.idp.oauth.messages import LibraryRequest, OAuthClient, Parameters, repeated
from podstead.idp.records import AuthorizationRequest, Client

RESPONSE_MODES: Final = ("query", "fragment", "form_post")
PROMPTS: Final = frozenset({"none", "login", "consent", "select_account", "create"})
_MAX_CHARACTERS: Final = 2048
_MAX_HINT_CHARACTERS: Final = 254
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_HASH: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_DESCRIPTIONS: Final = MappingProxyType(
    {"unauthorized_client": "The client may not use the authorization endpoint"}
)


class UnusableClient(PodsteadError):
    """The request must not be answered by a redirect; ``str()`` is a sentence for the person."""


class RefusedRequest(Exception):
    """An error for the client, sent to its redirect URI in the response mode that it requested."""

    def __init__(self, error: str, description: str, *, reply: "ReplyAddress") -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.reply = reply


@dataclass(frozen=True, slots=True)
class ReplyAddress:
    """Where and how to respond to a client."""

    redirect_uri: str
    response_mode: str
    state: str | None


def check_authorization_request(parameters: Parameters, client: Client) -> AuthorizationRequest:
    """The validated request. Raises UnusableClient, RefusedRequest."""
    oauth_client = OAuthClient(client)
    reply = _reply_address(parameters, oauth_client)
    given = {name: values[0] for name, values in parameters.items()}
    complaint = _complaint(parameters, given)
    if complaint is not None:
        raise RefusedRequest(*complaint, reply=reply)
    try:
        scopes = _validate(parameters, oauth_client)
    except OAuth2Error as error:
        description = _DESCRIPTIONS.get(error.error, "The request is not valid")
        raise RefusedRequest(error.error, description, reply=reply) from error
    if "openid" not in scopes:
        raise RefusedRequest("invalid_scope", "The scope must contain openid", reply=reply)
    max_age = given.get("max_age")
    return AuthorizationRequest(
        client_id=client.client_id,
        redirect_uri=reply.redirect_uri,
        scopes=scopes,
        code_challenge=given["code_challenge"],
        response_mode=reply.response_mode,
        state=reply.state,
        nonce=given.get("nonce"),
        prompts=tuple(given.get("prompt", "").split()),
        max_age_s=None if max_age is None else int(max_age),
        login_hint=given.get("login_hint", "")[:_MAX_HINT_CHARACTERS] or None,
        dpop_jkt=given.get("dpop_jkt"),
    )


def _reply_address(parameters: Parameters, client: OAuthClient) -> ReplyAddress:
    redirect_uris = parameters.get("redirect_uri", ())
    if len(redirect_uris) != 1:
        raise UnusableClient(IdpCodes.REDIRECT_URI_MISSING)
    if not client.check_redirect_uri(redirect_uris[0]):
        raise UnusableClient(IdpCodes.REDIRECT_URI_UNKNOWN)
    mode = next(iter(parameters.get("response_mode", ())), "query")
    state = next(iter(parameters.get("state", ())), None)
    return ReplyAddress(redirect_uris[0], mode if mode in RESPONSE_MODES else "query", state)


def _complaint(parameters: Parameters, given: Mapping[str, str]) -> tuple[str, str] | None:
    """The error and description of a fault that the library does not check."""
    name = repeated(parameters)
    if name is not None:
        return "invalid_request", f"The parameter {_printable(name)} is given twice"
    for name in ("request", "request_uri"):
        if name in given:
            return f"{name}_not_supported", f"The parameter {name} is not supported"
    return _response_complaint(given) or _value_complaint(given)


def _response_complaint(given: Mapping[str, str]) -> tuple[str, str] | None:
    if "response_type" not in given:
        return "invalid_request", "The parameter response_type is missing"
    if given["response_type"] != "code":
        # The library would repeat the value in its description, and fail on some values.
        return "unsupported_response_type", "The response type must be code"
    if given.get("code_challenge_method") != "S256" or "code_challenge" not in given:
        return (
            "invalid_request",
            "Authorization Server policy requires PKCE to be used for this request",
        )
    return None


def _value_complaint(given: Mapping[str, str]) -> tuple[str, str] | None:
    for name, is_usable in _USABLE.items():
        if name in given and not is_usable(given[name]):
            return "invalid_request", f"The value of {name} is not supported"
    return None


def _are_prompts(value: str) -> bool:
    prompts = value.split()
    return PROMPTS.issuperset(prompts) and ("none" not in prompts or len(prompts) == 1)


def _is_short(value: str) -> bool:
    return len(value) <= _MAX_CHARACTERS


def _is_hash(value: str) -> bool:
    """Whether the text is a SHA-256 in base64url."""
    return _HASH.fullmatch(value) is not None


_USABLE: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "response_mode": RESPONSE_MODES.__contains__,
        "prompt": _are_prompts,
        "max_age": lambda value: _SECONDS.fullmatch(value) is not None,
        "state": _is_short,
        "nonce": _is_short,
        # RFC 7636 section 4.2, RFC 9449 section 10
        "code_challenge": _is_hash,
        "dpop_jkt": _is_hash,
    }
)


def _validate(parameters: Parameters, client: OAuthClient) -> tuple[str, ...]:
    request = LibraryRequest("GET", parameters)
    _Server(client).get_consent_grant(request)
    scope: str = request.scope
    return tuple(scope.split())


def _printable(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "of one name"


class _S256Challenge(CodeChallenge):
    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 - the library's own name


class _Server(AuthorizationServer):
    """The library's server for one authorization request."""

    def __init__(self, client: OAuthClient) -> None:
        super().__init__()
        self._client = client
        self.register_grant(AuthorizationCodeGrant, [_S256Challenge(required=True)])

    def query_client(self, client_id: str) -> OAuthClient | None:
        return self._client if client_id == self._client.get_client_id() else None

    def create_oauth2_request(self, request: LibraryRequest) -> LibraryRequest:
        return request

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Nothing to do: there are no receivers."""
