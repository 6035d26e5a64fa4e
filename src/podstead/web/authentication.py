"""Who sent it? Asked with a limit on how often an address may be wrong (A-181)."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.authn.authenticate import Authenticator, RequestCredentials
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import Identity
from podstead.web.limits import InvalidCredentialLimit


@dataclass(frozen=True, slots=True)
class LimitedAuthentication:
    """Authenticates, and counts the credentials that are refused."""

    authenticator: Authenticator
    invalid_credentials: InvalidCredentialLimit

    async def authenticate(
        self, shown: RequestCredentials, *, client_address: str
    ) -> Identity | None:
        """The identity that a credential proves, ``None`` without any. Raises what
        :meth:`Authenticator.authenticate` raises, and RateLimited."""
        try:
            return await self.authenticator.authenticate(shown)
        except NotAuthenticated as error:
            if not error.lacks_nonce:
                await self.invalid_credentials.count(client_address)
            raise
