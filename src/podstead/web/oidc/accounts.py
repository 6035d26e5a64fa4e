"""Endpoints about accounts for programs: ``/idp/credentials``, where scripts exchange a password
for an access token (A-80, A-81), and what ``POST /.pods`` creates (A-90).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from podstead.authn.resource_tokens import InvalidProof
from podstead.core.clock import Randomness
from podstead.core.errors import BadRequest, BodyTooLarge, UnsupportedMediaType
from podstead.core.identity import Identity
from podstead.idp import token_issuing
from podstead.idp.accounts import Accounts
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth.messages import OAuthAnswer, refused
from podstead.idp.oauth.token import Subject
from podstead.idp.sign_in import LastSignIns, PasswordSignIn, SignedIn, SignInFailed
from podstead.idp.sign_in_methods import SecondStep
from podstead.idp.token_issuing import ACCESS_TOKEN_S, TokenIssuer
from podstead.storage.invitations import Admission
from podstead.web.cors import CorsPolicy
from podstead.web.forms import FORM_TYPE, MAX_FORM_BYTES, json_object, only, read_form
from podstead.web.limits import address_key
from podstead.web.oidc.endpoints import oauth_json_response
from podstead.web.pages.people import PASSWORD_CLIENT
from podstead.web.pages.request import request_source
from podstead.web.registration import CreatedPod
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import route

CREDENTIALS_PATH: Final = "/idp/credentials"
SCOPES: Final = ("openid", "webid")
FACTOR: Final = "password"
_SECOND_FACTOR: Final = (
    "A password alone does not sign in to this account: create client credentials on the page "
    "about security, and use them instead"
)
_JSON_TYPE: Final = "application/json"

ProvenKey = Callable[[Request, str], Awaitable[str | None]]
"""The thumbprint of the key whose possession a request to a path proves, ``None`` without a proof.
Raises InvalidProof and Overloaded."""


@dataclass(frozen=True, slots=True)
class CredentialsEndpoint:
    """Signs scripts in."""

    issuer: str
    sign_in: PasswordSignIn
    keys: ProviderKeys
    proven_key: ProvenKey
    randomness: Randomness
    last_sign_ins: LastSignIns
    second_step: SecondStep | None

    @route(CREDENTIALS_PATH, "GET", "HEAD", sharing=CorsPolicy.ANYONE)
    async def describe(self, request: Request, _: Identity | None) -> Response:
        """``GET``: a description of the endpoint."""
        response = oauth_json_response(OAuthAnswer(200, _description(self.issuer)))
        if request.method == "HEAD":
            response.body = b""
        return response

    @route(CREDENTIALS_PATH, "POST", sharing=CorsPolicy.ANYONE)
    async def post(self, request: Request, _: Identity | None) -> Response:
        """``POST``: a token. Raises UnsupportedMediaType, RateLimited, ServerTrouble."""
        try:
            login, password = await _login_and_password(request)
        except (BadRequest, BodyTooLarge) as error:
            return oauth_json_response(refused("invalid_request", str(error)))
        try:
            jkt = await self.proven_key(request, CREDENTIALS_PATH)
        except InvalidProof as error:
            return oauth_json_response(refused(error.error, str(error)))
        try:
            signed_in = await self.sign_in.verify(
                login, password, address=address_key(request.client_address)
            )
        except SignInFailed as error:
            return self._refusal(error)
        step = self.second_step
        if step is not None and await step.is_needed(signed_in.account.account_id):
            return oauth_json_response(refused("invalid_grant", _SECOND_FACTOR, status=401))
        await self.last_sign_ins.note(signed_in.stored, factor=FACTOR)
        return oauth_json_response(OAuthAnswer(200, await self._token(signed_in, jkt)))

    async def _token(self, signed_in: SignedIn, jkt: str | None) -> dict[str, object]:
        account = signed_in.account
        mint = TokenIssuer(self.issuer, await self.keys.current(), self.randomness, signed_in.at_s)
        subject = Subject(account, account.web_id, PASSWORD_CLIENT, SCOPES, jkt)
        return {
            "access_token": mint.access_token(subject),
            "token_type": "Bearer" if jkt is None else "DPoP",
            "expires_in": ACCESS_TOKEN_S,
            "webid": account.web_id,
        }

    def _refusal(self, error: SignInFailed) -> Response:
        answer = refused("invalid_grant", str(error), status=401)
        challenge = ("WWW-Authenticate", f'Bearer realm="{self.issuer}"')
        return oauth_json_response(OAuthAnswer(401, answer.body, (*answer.headers, challenge)))


async def _login_and_password(request: Request) -> tuple[str, str]:
    """The fields of the body. Raises BadRequest, BodyTooLarge, UnsupportedMediaType."""
    content_type = request.fields.get(b"content-type") or ""
    match content_type.partition(";")[0].strip().lower():
        case "application/json":
            content = await request.body.read(limit_bytes=MAX_FORM_BYTES)
            sent = json_object(content)
        case "application/x-www-form-urlencoded":
            form = await read_form(request)
            sent = {name: only(form, name) for name in ("email", "username", "password")}
        case _:
            raise UnsupportedMediaType(f"The Content-Type must be {_JSON_TYPE} or {FORM_TYPE}")
    login = sent.get("email") or sent.get("username")
    password = sent.get("password")
    if not isinstance(login, str) or not isinstance(password, str) or not password:
        raise BadRequest("The body must contain email or username, and password, as strings")
    return login, password


def _description(issuer: str) -> dict[str, object]:
    return {
        "endpoint": issuer + CREDENTIALS_PATH,
        "method": "POST",
        "description": "Send the e-mail address or name and the password of an account, "
        "and get an access token for its WebID.",
        "content_types": [_JSON_TYPE, FORM_TYPE],
        "parameters": {
            "email": "The e-mail address of the account",
            "username": "The name of its pod, instead of the e-mail address",
            "password": "The password of the account",
        },
        "optional_headers": {
            "DPoP": f"A proof for POST of {issuer}{CREDENTIALS_PATH}: the token is bound to its key"
        },
        "response": {
            "access_token": "The token",
            "token_type": "DPoP with a proof, else Bearer",
            "expires_in": "For how many seconds it is valid",
            "webid": "The WebID that it speaks for",
        },
    }


@dataclass(frozen=True, slots=True)
class PodsWithAccounts:
    """Creates pods whose owners sign in; their tokens come from the provider (A-34)."""

    accounts: Accounts
    issuer: str

    async def make(
        self,
        sent: Mapping[str, object],
        request: Request,
        *,
        admitted: Admission | None,
        terms_hash: str,
    ) -> CreatedPod:
        """Create a pod and an account with the name, e-mail address and password sent."""
        made = await self.accounts.create(
            name=sent.get("name"),
            email=sent.get("email"),
            password=sent.get("password"),
            source=request_source(request),
            admitted=admitted,
            terms_hash=terms_hash,
        )
        return CreatedPod(
            name=made.account.pod,
            web_id=made.account.web_id,
            pod_uri=made.pod_uri,
            issuer=self.issuer,
            login_url=f"{self.issuer}{token_issuing.AUTHORIZATION_PATH}",
        )
