"""``/idp/me``: the person of an access token (OpenID Connect Core section 5.3).

It accepts tokens that give access to resources, and those of relying parties of plain OpenID
Connect, which are valid only here.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from podstead.authn.claims import CommonClaims
from podstead.authn.credentials import (
    UnverifiedBearer,
    UnverifiedDpop,
    UnverifiedEvent,
    read_credential,
)
from podstead.authn.resource_tokens import AccessTokenVerifier, InvalidProof, ProofVerifier
from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identity import Identity
from podstead.idp import token_issuing
from podstead.idp.oauth.messages import OAuthAnswer
from podstead.idp.token_issuing import userinfo_url
from podstead.idp.token_service import TokenStatus
from podstead.jose.proof import ProofContext
from podstead.web.cors import CorsPolicy
from podstead.web.idp.oauth_responses import oauth_json_response
from podstead.web.limits import InvalidCredentialLimit, address_key
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import route


@dataclass(frozen=True, slots=True)
class UserinfoEndpoint:
    """Verifies an access token and returns the claims about its person."""

    issuer: str
    status: TokenStatus
    proofs: ProofVerifier
    resource_tokens: AccessTokenVerifier
    invalid_credentials: InvalidCredentialLimit

    @route(token_issuing.USERINFO_PATH, "GET", "POST", sharing=CorsPolicy.ANYONE)
    async def get(self, request: Request, _: Identity | None) -> Response:
        """``GET`` or ``POST``.

        Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble.
        """
        credential = read_credential(request.fields.authorization, request.fields.proofs)
        if credential is None:
            raise NotAuthenticated
        if isinstance(credential, UnverifiedEvent):  # not a token of this provider
            raise NotAuthenticated("Authentication scheme not accepted", invalid=True)
        try:
            issuer = await self._issuer_of(request, credential)
        except NotAuthenticated as error:
            if not error.lacks_nonce:
                await self.invalid_credentials.count(request.client_address)
            raise
        answer = await self.status.userinfo(credential.token, issuer)
        if answer is None:
            raise AccessDenied("The token does not give access to this endpoint")
        return oauth_json_response(OAuthAnswer(200, answer))

    async def _issuer_of(
        self, request: Request, credential: UnverifiedDpop | UnverifiedBearer
    ) -> str | None:
        """Verify the credential, and return its issuer. Raises NotAuthenticated, Overloaded."""
        url = userinfo_url(self.issuer)
        claims = await self.status.identity_claims(credential.token)
        if claims is not None:
            await self._check_binding(request, credential, claims)
            return self.issuer
        if isinstance(credential, UnverifiedDpop):
            identity = await self.resource_tokens.verify_dpop(
                credential,
                method=request.method,
                url=url,
                client_address=address_key(request.client_address),
            )
        else:
            identity = await self.resource_tokens.verify_bearer(credential)
        return identity.issuer

    async def _check_binding(
        self,
        request: Request,
        credential: UnverifiedDpop | UnverifiedBearer,
        claims: CommonClaims,
    ) -> None:
        """Check that a token that is bound to a key comes with a proof of it, and that any other
        token comes without one (RFC 9449 section 7). Raises NotAuthenticated, Overloaded."""
        if isinstance(credential, UnverifiedBearer):
            if claims.thumbprint is not None:
                raise NotAuthenticated(
                    "The token is bound to a key: send it as DPoP", invalid=True, scheme="Bearer"
                )
            return
        proven = ProofContext(request.method, userinfo_url(self.issuer), credential.token)
        try:
            proof = self.proofs.check(credential.proof, proven)
            if not hmac.compare_digest(proof.thumbprint, claims.thumbprint or ""):
                raise InvalidProof("The token is bound to another key")
            await self.proofs.use(proof)
        except InvalidProof as refusal:
            raise NotAuthenticated(
                str(refusal), invalid=True, scheme="DPoP", error=refusal.error
            ) from refusal
