"""The identity of the agent that makes a request, as authentication established it."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

IDENTITY_SCOPE: Final = "webid:write"
"""The scope by which a person allows an application to change statements of identity."""


class AuthenticationMethod(Enum):
    """How an identity was proven (A-4)."""

    SIMPLE = "simple"
    OIDC_BEARER = "oidc-bearer"
    DPOP = "dpop"
    NIP98 = "nip98"
    SESSION = "session"
    """Signed in at the provider, which acts on behalf of the account."""
    WEBID_TLS = "tls"
    FEATURE = "feature"
    """By credentials that a feature verifies."""

    @property
    def is_bound_to_url(self) -> bool:
        """Whether the credentials are valid for the URL of their request only."""
        return self in (AuthenticationMethod.DPOP, AuthenticationMethod.NIP98)


@dataclass(frozen=True, slots=True)
class Identity:
    """A proven identity (A-4).

    ``iri`` is the primary IRI: a WebID, or another one that the credentials prove.
    ``aliases`` are further IRIs that the same credentials prove and that access rules may name as
    well. ``issuer`` and ``client_id`` are those of a provider's token, ``public_key`` is the key
    that signed the request. ``expires_at_s`` is Unix time in seconds.

    ``verified_until_s`` is the time from which the credentials must be verified again even if
    nothing was stored meanwhile, because documents of other servers proved the identity; ``None``
    means as long as the credentials last.

    ``content_digest`` is the SHA-256 that the credentials give for the request's content; the
    content must not be used before the digest has been verified (A-145).

    ``may_state_identity`` means that the credentials suffice to change who can act as a WebID
    (:mod:`podstead.resources.identity_changes`): they are the agent's own, or the token of an
    application that was granted :data:`IDENTITY_SCOPE`.

    ``is_authenticated_agent`` is whether rules for anyone who is signed in apply as well
    (``acl:AuthenticatedAgent``), and not only those that name the agent.

    ``limit`` is what a feature has stored about the credentials and restricts access by, ``None``
    if there is no such thing.
    """

    iri: str
    method: AuthenticationMethod
    aliases: frozenset[str] = frozenset()
    token_id: str | None = None
    expires_at_s: int | None = None
    verified_until_s: int | None = None
    issuer: str | None = None
    client_id: str | None = None
    public_key: str | None = None
    content_digest: bytes | None = None
    may_state_identity: bool = False
    is_authenticated_agent: bool = True
    limit: Hashable | None = None

    @property
    def simple_token_id(self) -> str | None:
        """The ID of the simple token that proved the identity, if it was one."""
        return self.token_id if self.method is AuthenticationMethod.SIMPLE else None

    @property
    def holds_until_s(self) -> int | None:
        """The time (Unix seconds) until which the same credentials prove the same identity, unless
        something is stored; ``None`` for no end."""
        return self.expires_at_s if self.verified_until_s is None else self.verified_until_s

    @property
    def is_of_application(self) -> bool:
        """Whether an application or a script acts for the agent with a token."""
        return self.client_id is not None or self.method is AuthenticationMethod.SIMPLE

    def names(self) -> frozenset[str]:
        """Every IRI under which an access rule may name this identity."""
        return self.aliases | {self.iri}


class IdentityRefinement(Protocol):
    """Adds to an identity what is stored about its credentials, such as a limit to what they may be
    used for."""

    async def refined(self, identity: Identity) -> Identity:
        """The identity as of now. It depends on the issuer, the client and the token ID alone, so
        that of an earlier request can be refined again. Raises NotAuthenticated, StorageError."""


async def refined(identity: Identity, refinements: Iterable[IdentityRefinement]) -> Identity:
    """The identity with what all of them add. Raises NotAuthenticated, StorageError."""
    for each in refinements:
        identity = await each.refined(identity)
    return identity
