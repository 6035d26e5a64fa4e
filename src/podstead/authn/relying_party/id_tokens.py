"""Verifies the ID tokens of other providers (OpenID Connect Core 3.1.3.7).

The issuer's keys, the statement of the WebID's document and the operator's rules are those that
decide about access tokens (:mod:`podstead.authn.resource_tokens`). Look-ups are not counted here,
because the start of the sign-in was counted.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from podstead.authn.addresses import is_usable_address
from podstead.authn.claims import (
    ACCESS_TOKEN_TYPES,
    MAX_TOKEN_CHARACTERS,
    is_current,
    same_issuer,
)
from podstead.authn.issuers import IssuerKeys
from podstead.authn.relying_party.problems import ExternalSignInFailed, SignInProblem
from podstead.authn.resource_tokens import OwnProvider, TokenRules, signer_of
from podstead.authn.web_ids import WebIdIssuers
from podstead.core.clock import Clock
from podstead.core.errors import RemoteUnavailable
from podstead.jose.tokens import CompactToken, InvalidJose, PublicKey, claim_text, read_token


@dataclass(frozen=True, slots=True)
class Expected:
    """What the token of one sign-in must say."""

    issuer: str
    client_id: str
    nonce: str


class IdTokens:
    """Verifies ID tokens that this server has asked for."""

    def __init__(
        self,
        *,
        issuers: IssuerKeys,
        web_ids: WebIdIssuers,
        own: OwnProvider | None,
        rules: TokenRules,
        clock: Clock,
    ) -> None:
        self._issuers = issuers
        self._web_ids = web_ids
        self._own = own
        self._rules = rules
        self._clock = clock

    async def verify(self, text: str, expected: Expected) -> str:
        """The WebID of the person. Raises ExternalSignInFailed."""
        try:
            token = read_token(text, max_characters=MAX_TOKEN_CHARACTERS)
            web_id = self._read(token, expected)
            signer_of(token, await self._candidates(token, expected.issuer))
        except RemoteUnavailable as error:
            raise ExternalSignInFailed(SignInProblem.UNREACHABLE) from error
        except InvalidJose as error:
            raise ExternalSignInFailed(SignInProblem.INVALID) from error
        if not await self.is_trusted(web_id, expected.issuer):
            raise ExternalSignInFailed(SignInProblem.NOT_TRUSTED)
        return web_id

    async def _candidates(self, token: CompactToken, issuer: str) -> tuple[PublicKey, ...]:
        """The keys that may have signed the token; those of this server need no request."""
        own = self._own
        if own is None or not same_issuer(own.issuer, issuer):
            return await self._issuers.candidates(token, issuer, None)
        key = await own.key(token.key_id)
        return () if key is None else (key,)

    async def is_trusted(self, web_id: str, issuer: str) -> bool:
        """Whether the document of the WebID names the issuer now. Raises ExternalSignInFailed if it
        cannot be read at present."""
        try:
            return await self._web_ids.trusts(web_id, issuer, None)
        except RemoteUnavailable as error:
            raise ExternalSignInFailed(SignInProblem.UNREACHABLE) from error
        except InvalidJose:
            return False

    def _read(self, token: CompactToken, expected: Expected) -> str:
        """The WebID in the claims. Raises InvalidJose for a token that is not the expected one."""
        claims = token.claims
        audience = claims.get("aud")
        clients = audience if isinstance(audience, list) else [audience]
        authorized = claim_text(claims, "azp")
        if (
            not same_issuer(claim_text(claims, "iss") or "", expected.issuer)
            or token.header.get("typ") in ACCESS_TOKEN_TYPES
            or expected.client_id not in clients
            or authorized not in (None, expected.client_id)
            or (authorized is None and len(clients) > 1)
        ):
            raise InvalidJose("The token is not meant for this server")
        nonce = claim_text(claims, "nonce") or ""
        if not hmac.compare_digest(nonce.encode(errors="replace"), expected.nonce.encode()):
            raise InvalidJose("The token belongs to another sign-in")
        if not is_current(claims, now_s=self._clock.now_ms() // 1000):
            raise InvalidJose("The token has expired or is not valid yet")
        web_id = claim_text(claims, "webid" if "webid" in claims else "sub")
        if web_id is None or not is_usable_address(
            web_id, allow_loopback=self._rules.allow_loopback
        ):
            raise InvalidJose("The token has no valid WebID")
        return web_id
