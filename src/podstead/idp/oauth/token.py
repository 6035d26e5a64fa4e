"""Decides which tokens a token request gets: the grants of RFC 6749 and Solid-OIDC (A-62 ff.).

Pure, except for the tokens' randomness and signatures, which :class:`TokenIssuing` provides. The
caller reads the :class:`TokenRequestRecords`, commits the changes of the :class:`TokenExchange`
with everything that they relied on, and sends the answer only then. If any of it has changed, the
caller begins again with new records.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import msgspec
from authlib.oauth2 import AuthorizationServer, OAuth2Error
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidGrantError, grants
from authlib.oauth2.rfc7636 import CodeChallenge, create_s256_code_challenge

from podstead.idp import records as idp_records
from podstead.idp.audit import AuditEvent
from podstead.idp.client_metadata import OFFLINE, WEBID, PresentedClient, authenticates
from podstead.idp.oauth import messages
from podstead.storage.record_store import Versioned
from podstead.storage.records import Precondition, Record

_AUTH_METHODS: Final = ["client_secret_basic", "client_secret_post", "none"]
_VERIFIER: Final = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token request: its form, the client it names, and the key that its DPoP proof holds."""

    form: messages.Parameters
    presented: PresentedClient | None
    jkt: str | None
    now_s: int


@dataclass(frozen=True, slots=True)
class TokenRequestRecords:
    """The stored records that a token request names; ``None`` for those that do not exist."""

    client: idp_records.Client | None = None
    credential: idp_records.ClientCredential | None = None
    code: Versioned[idp_records.AuthorizationCode] | None = None
    refresh_token: Versioned[idp_records.RefreshToken] | None = None
    grant: Versioned[idp_records.Grant] | None = None
    account: idp_records.Account | None = None
    members: Mapping[str, object] = field(default_factory=dict)
    """Further members of the response."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of tokens, and their content."""

    account: idp_records.Account
    web_id: str
    client_id: str
    scopes: tuple[str, ...]
    jkt: str | None
    grant: idp_records.Grant | None = None
    """``None`` for client credentials, and for a password sent directly."""
    credential_id: str | None = None
    """The client credential that was used, if any."""
    lasting_scopes: tuple[str, ...] | None = None
    """The scopes of the next refresh token, if the access token has fewer."""
    members: Mapping[str, object] = field(default_factory=dict)
    """Further members of the response."""


@dataclass(frozen=True, slots=True)
class TokenSet:
    """The tokens of one answer, and the record of the refresh token among them."""

    body: dict[str, object]
    records: Sequence[Record] = ()


class TokenIssuing(Protocol):
    """Issues tokens."""

    def mint(self, subject: Subject, *, client: idp_records.Client, with_refresh: bool) -> TokenSet:
        """Sign the tokens and create the refresh token, if there is to be one."""


@dataclass(slots=True)
class TokenExchange:
    """One token request in progress: its changes, and the facts that its answer relied on."""

    request: TokenRequest
    facts: TokenRequestRecords
    minting: TokenIssuing
    records: list[Record] = field(default_factory=list)
    preconditions: list[Precondition] = field(default_factory=list)
    events: list[tuple[AuditEvent, idp_records.Grant]] = field(default_factory=list)
    """The events for the audit log once the changes are committed."""

    def respond(self) -> messages.OAuthAnswer:
        """The answer. A refusal may come with changes, too, as when a code is used again."""
        # RFC 6749 section 3.2.
        name = messages.repeated(self.request.form)
        if name is not None:
            return messages.refused("invalid_request", "A parameter is given twice")
        request = messages.LibraryRequest("POST", self.request.form)
        answer: messages.LibraryAnswer = _Server(self).create_token_response(request)
        return messages.own_answer(answer)

    # --- what the grants ask --------------------------------------------------------------------

    def client(self) -> messages.OAuthClient | None:
        """The client, if it has authenticated (A-62)."""
        client, presented = self.facts.client, self.request.presented
        if client is None or presented is None or not authenticates(client, presented):
            return None
        return messages.OAuthClient(client)

    def usable_code(self, client_id: str) -> idp_records.AuthorizationCode | None:
        """The code of the request, if it can be exchanged; a second use ends its grant (A-64)."""
        stored = self.facts.code
        if stored is None:
            return None
        # Before the other checks: even if this request fails them or comes late, one of the two
        # uses may be a thief's (RFC 6749 section 4.1.2).
        if stored.value.used:
            self.revoke_grant(AuditEvent.CODE_REUSED)
            return None
        code = stored.value
        if code.client_id != client_id or self.request.now_s >= code.expires_s:
            return None
        if not _is_key(self.request.jkt, expected=code.dpop_jkt):
            return None
        return code if self.subject(self.request.jkt) is not None else None

    def usable_refresh_token(self) -> idp_records.RefreshToken | None:
        """The refresh token of the request, if it can be used; a second use ends its grant
        (A-66)."""
        stored = self.facts.refresh_token
        if stored is None:
            return None
        # One of the two uses may be a thief's, and the server cannot tell which (RFC 9700 section
        # 4.14.2).
        if stored.value.used:
            self.revoke_grant(AuditEvent.REFRESH_TOKEN_REUSED)
            return None
        if not _is_key(self.request.jkt, expected=stored.value.jkt):
            return None
        return stored.value if self.subject(self.request.jkt) is not None else None

    def subject(self, jkt: str | None) -> Subject | None:
        """The subject of the grant, while the grant, the account and the sign-in are all valid."""
        grant, account = self.facts.grant, self.facts.account
        if grant is None or account is None or grant.value.revoked or account.disabled:
            return None
        if grant.value.authenticated_s < account.valid_after_s:  # as after a change of password
            return None
        value = grant.value
        return Subject(account, value.web_id, value.client_id, value.scopes, jkt, value)

    def revoke_grant(self, event: AuditEvent) -> None:
        """End everything that resulted from the grant, for the reason in the event."""
        stored = self.facts.grant
        if stored is not None and not stored.value.revoked:
            self.preconditions.append(stored.unchanged)
            self.records.append(
                idp_records.GRANTS.replace(
                    stored, msgspec.structs.replace(stored.value, revoked=True)
                )
            )
            self.events.append((event, stored.value))

    def use_code(self) -> None:
        """Mark the code as used, in the write that its tokens depend on."""
        stored = self.facts.code
        if stored is not None:
            # Of two requests with the same code only one can commit; the other one begins again and
            # finds it used.
            self.preconditions.append(stored.unchanged)
            used = msgspec.structs.replace(stored.value, used=True)
            self.records.append(idp_records.CODES.replace(stored, used))

    def use_refresh_token(self) -> None:
        """Mark the refresh token as used, in the write that creates the next one."""
        stored = self.facts.refresh_token
        if stored is not None:
            self.preconditions.append(stored.unchanged)
            used = msgspec.structs.replace(stored.value, used=True)
            self.records.append(idp_records.REFRESH_TOKENS.replace(stored, used))

    def mint(
        self, subject: Subject, client: idp_records.Client, *, with_refresh: bool
    ) -> dict[str, object]:
        """Issue the tokens, and rely on the grant that they come from: if it is revoked before the
        commit, nothing is issued."""
        subject = replace(subject, members=self.facts.members)
        minted = self.minting.mint(subject, client=client, with_refresh=with_refresh)
        self.records.extend(minted.records)
        stored = self.facts.grant
        if stored is not None and subject.grant is not None:
            self.preconditions.append(stored.unchanged)
            last_used = msgspec.structs.replace(stored.value, last_used_s=self.request.now_s)
            self.records.append(idp_records.GRANTS.replace(stored, last_used))
        return minted.body


def _is_key(presented: str | None, *, expected: str | None) -> bool:
    # A code or token bound to no key may be used with any, or with none (RFC 9449 sections 5 and
    # 10).
    return expected is None or (
        presented is not None and hmac.compare_digest(presented.encode(), expected.encode())
    )


# --- the library's side ---------------------------------------------------------------------------


class _Server(AuthorizationServer):
    """The library's server for one token request."""

    def __init__(self, exchange: TokenExchange) -> None:
        super().__init__()
        self.exchange = exchange
        self.register_grant(_CodeGrant, [_S256(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_CredentialsGrant)
        self.register_token_generator("default", _generate_nothing)

    def authenticate_client(
        self,
        request: messages.LibraryRequest,  # noqa: ARG002
        methods: Sequence[str],
        endpoint: str = "token",
    ) -> messages.OAuthClient:
        """Authenticate by our own parsing of the credentials: the library's accepts only one of the
        two encodings in use."""
        client = self.exchange.client()
        if client is None:
            raise InvalidClientError
        if not any(client.check_endpoint_auth_method(each, endpoint) for each in methods):
            raise InvalidClientError
        return client

    def save_token(self, token: object, request: messages.LibraryRequest) -> None:
        """Nothing to do: it is committed with everything else that the exchange changes."""

    def create_oauth2_request(self, request: messages.LibraryRequest) -> messages.LibraryRequest:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> messages.LibraryAnswer:  # noqa: ANN401
        return messages.LibraryAnswer(status, dict(body), list(headers))

    def handle_error_response(
        self, request: messages.LibraryRequest, error: OAuth2Error
    ) -> messages.LibraryAnswer:
        status, body, headers = error(self.get_error_uri(request, error))
        return messages.LibraryAnswer(status, dict(body), list(headers))

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Nothing to do: there are no receivers."""


def _generate_nothing(**_: object) -> dict[str, object]:
    # The library demands a generator, but each grant below has its own ``generate_token``.
    return {}


class _S256(CodeChallenge):
    """The only accepted way to prove possession of the code's verifier (RFC 7636 section 4.6)."""

    def validate_code_verifier(self, grant: "_CodeGrant", result: object) -> None:  # noqa: ARG002
        verifier = grant.request.form.get("code_verifier", "")
        if not _VERIFIER.fullmatch(verifier):
            raise InvalidGrantError
        challenge = create_s256_code_challenge(verifier)
        expected = self.get_authorization_code_challenge(grant.request.authorization_code)
        if not hmac.compare_digest(challenge.encode(), expected.encode()):
            raise InvalidGrantError


class _CodeOfLibrary:
    """An authorization code in the form that the library expects."""

    code_challenge_method = "S256"

    def __init__(self, code: idp_records.AuthorizationCode) -> None:
        self.code_challenge = code.code_challenge
        self._redirect_uri = code.redirect_uri

    def get_redirect_uri(self) -> str:
        return self._redirect_uri

    def get_scope(self) -> str:
        return ""  # the scopes are those of the grant: see TokenExchange.subject


class _CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = _AUTH_METHODS
    server: _Server

    def query_authorization_code(
        self,
        code: str,  # noqa: ARG002
        client: messages.OAuthClient,
    ) -> _CodeOfLibrary | None:
        usable = self.server.exchange.usable_code(client.get_client_id())
        return None if usable is None else _CodeOfLibrary(usable)

    def authenticate_user(self, authorization_code: object) -> Subject | None:  # noqa: ARG002
        exchange = self.server.exchange
        return exchange.subject(exchange.request.jkt)

    def generate_token(self, user: Subject, **_: object) -> dict[str, object]:
        client: idp_records.Client = self.request.client.client
        offline = "offline_access" in user.scopes and "refresh_token" in client.grant_types
        return self.server.exchange.mint(user, client, with_refresh=offline)

    def delete_authorization_code(self, authorization_code: object) -> None:  # noqa: ARG002
        self.server.exchange.use_code()


class _RefreshOfLibrary:
    """A refresh token in the form that the library expects."""

    def __init__(self, token: idp_records.RefreshToken) -> None:
        self.token = token

    def check_client(self, client: messages.OAuthClient) -> bool:
        return client.get_client_id() == self.token.client_id

    def get_scope(self) -> str:
        return " ".join(self.token.scopes)


class _RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = _AUTH_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True
    server: _Server

    def authenticate_refresh_token(self, refresh_token: str) -> _RefreshOfLibrary | None:  # noqa: ARG002
        usable = self.server.exchange.usable_refresh_token()
        return None if usable is None else _RefreshOfLibrary(usable)

    def authenticate_user(self, refresh_token: _RefreshOfLibrary) -> Subject | None:  # noqa: ARG002
        exchange = self.server.exchange
        return exchange.subject(exchange.request.jkt)

    def generate_token(self, user: Subject, scope: str, **_: object) -> dict[str, object]:
        # The scopes requested now apply to this access token only; the next refresh token has those
        # of the old one (RFC 6749 section 6).
        whole = self.request.refresh_token.token.scopes
        asked = tuple(each for each in whole if each in scope.split()) or whole
        narrowed = replace(user, scopes=asked, lasting_scopes=whole)
        return self.server.exchange.mint(narrowed, self.request.client.client, with_refresh=True)

    def revoke_old_credential(self, refresh_token: object) -> None:  # noqa: ARG002
        self.server.exchange.use_refresh_token()


class _CredentialsGrant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012
    server: _Server

    def generate_token(self, scope: str | None = None, **_: object) -> dict[str, object]:
        exchange = self.server.exchange
        credential, account = exchange.facts.credential, exchange.facts.account
        if credential is None or account is None or account.disabled:
            raise InvalidGrantError
        # They always act as the WebID that they were created for, so its scope is always included.
        # There is no refresh token (RFC 6749 section 4.4.3), so "offline_access" is left out.
        asked = messages.OAuthClient(self.request.client.client).get_allowed_scope(
            f"{scope or ''} {WEBID}"
        )
        scopes = tuple(each for each in asked.split() if each != OFFLINE)
        subject = Subject(
            account,
            credential.web_id,
            credential.credential_id,
            scopes,
            exchange.request.jkt,
            credential_id=credential.credential_id,
        )
        return exchange.mint(subject, self.request.client.client, with_refresh=False)
