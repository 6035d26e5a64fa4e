"""Authenticates requests, with a limit on invalid credentials for each address (A-181)."""

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.authn.authenticate import Authenticator, CredentialScheme, RequestCredentials
from podstead.core.errors import InsufficientScope, NotAuthenticated
from podstead.core.identity import Identity
from podstead.jose.tokens import SIGNATURE_ALGORITHMS
from podstead.web import asgi, limits


@dataclass(frozen=True, slots=True)
class LimitedAuthentication:
    """Authenticates requests, and counts refused credentials."""

    authenticator: Authenticator
    invalid_credentials: limits.InvalidCredentialLimit

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


# The WWW-Authenticate fields of a 401 say how a client may authenticate.


@dataclass(frozen=True, slots=True)
class AuthenticateChallenges:
    """The schemes of this server, one field each.

    ``realm`` is the issuer of the built-in provider or, without a provider, the base URL.
    ``provider`` is that issuer, or ``None``. ``schemes`` are those of features.
    """

    realm: str
    provider: str | None = None
    schemes: Sequence[CredentialScheme] = ()

    @property
    def server_name(self) -> str:
        """The name of the server for people: the host of its realm."""
        return self.realm.partition("://")[2]

    def headers(
        self, error: NotAuthenticated | InsufficientScope, *, claimed: bool = False
    ) -> asgi.Headers:
        """The fields for one refusal. The error is given only if a credential was sent, in the
        challenge of its scheme, and never repeats what was sent (A-8). An application whose person
        may do more than itself is told where they can allow it (RFC 6750 section 3)."""
        if isinstance(error, InsufficientScope):
            value = (
                f'{error.scheme} realm="{self.realm}", error="{error.known_text}", '
                f'error_description="{error}"'
            )
            if error.asks_at is not None:
                value += f', error_uri="{error.asks_at}"'
            return [(b"www-authenticate", value.encode("ascii"))]
        common = f'realm="{self.realm}", scope="openid webid"'
        if self.provider is not None:
            common += f', as_uri="{self.provider}"'
        schemes = {
            "DPoP": f'DPoP {common}, algs="{" ".join(SIGNATURE_ALGORITHMS)}"',
            "Bearer": f"Bearer {common}",
        }
        for each in self.schemes:
            schemes |= each.challenges(realm=self.realm, claimed=claimed)
        if error.invalid and error.scheme in schemes:
            schemes[error.scheme] += f', error="{error.error}", error_description="{error}"'
        return [(b"www-authenticate", value.encode("ascii")) for value in schemes.values()]
