"""Authenticates requests, with a limit on invalid credentials for each address (A-181)."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.authn.authenticate import Authenticator, RequestCredentials
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import Identity
from podstead.web.limits import InvalidCredentialLimit


@dataclass(frozen=True, slots=True)
class LimitedAuthentication:
    """Authenticates requests, and counts refused credentials."""

    authenticator: Authenticator
    invalid_credentials: InvalidCredentialLimit

    async def authenticate(
        self, credentials: RequestCredentials, *, client_address: str
    ) -> Identity | None:
        """The identity that the credentials prove, ``None`` if there are none. Raises what
        :meth:`Authenticator.authenticate` raises, and RateLimited."""
        try:
            return await self.authenticator.authenticate(credentials)
        except NotAuthenticated as error:
            if not error.lacks_nonce:
                await self.invalid_credentials.count(client_address)
            raise
