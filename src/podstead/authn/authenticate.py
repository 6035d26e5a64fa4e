"""Authenticates the sender of a request: the entry point of authentication (A-1, A-5).

It only identifies the sender. Valid credentials give an identity, a request without credentials
belongs to the public, and invalid credentials are refused even where the public has access. Access
is decided in ``wac``.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from podstead.authn import credentials as authn_credentials
from podstead.authn.resource_tokens import AccessTokenVerifier
from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity, IdentityRefinement, refined
from podstead.core.value import Value
from podstead.storage.protocol import Store

_MAX_VERIFIED_TOKENS = 4096
_MAX_RECALLED_BYTES = 1024
_DOTS_OF_A_JWT: Final = 2

_Key = TypeVar("_Key")
_Known = TypeVar("_Known")


class RequestCredentials(Value):
    """What a request contains about its sender: the Authorization and DPoP fields, the method and
    URL that a proof must name, and the client's address (for IPv6 its network).

    ``url`` is the effective URL (A-11) with its query, its raw bytes as Latin-1. ``sequence`` is
    the container that a sequence of requests is about which one signed event may authorize, if this
    is one of them. ``certificate`` is the client certificate (DER) whose key the sender has proven
    to have; it applies only if there is no Authorization field (A-2).
    """

    authorization: Sequence[bytes]
    proofs: Sequence[bytes]
    method: str
    url: str
    client_address: str
    has_content: bool = False
    sequence: ResourcePath | None = None
    certificate: bytes | None = None


class CredentialScheme:
    """A further kind of credentials.

    A request cannot act as two agents: its Authorization field decides if there is one, then the
    first scheme that recognizes something else in the request, then the client certificate.
    """

    authorization: Collection[str] = ()
    """The schemes of the Authorization field with these credentials, in lower case."""

    is_certificate = False
    """Whether the credentials are the client certificate of the request."""

    def applies_to(self, credentials: RequestCredentials) -> bool:  # noqa: ARG002
        """Whether a request without an Authorization field has credentials of this kind, such as a
        parameter of its URL."""
        return False

    async def verify(self, credentials: RequestCredentials) -> Identity | None:
        """The identity that they prove; ``None`` if they claim none. Raises NotAuthenticated with
        ``invalid``, StorageError."""
        raise NotImplementedError

    async def check_again(self, credentials: RequestCredentials, identity: Identity) -> None:
        """Check that they have not been revoked since. Raises NotAuthenticated, StorageError."""
        raise NotImplementedError

    def challenges(self, *, realm: str, claimed: bool) -> Mapping[str, str]:  # noqa: ARG002
        """The challenges of responses with status 401, by the names of the schemes. ``claimed`` is
        true for requests that a feature answers in place of the resource."""
        return {}


class Authenticator:
    """Passes each kind of credentials to its verifier."""

    def __init__(
        self,
        *,
        pod_tokens: "PodTokenVerifier",
        resource_tokens: AccessTokenVerifier,
        schemes: Sequence[CredentialScheme] = (),
        refinements: Sequence[IdentityRefinement] = (),
    ) -> None:
        """``schemes`` are those of features, and ``refinements`` add to the identities of
        applications."""
        self._by_name = {name.encode(): each for each in schemes for name in each.authorization}
        self.elsewhere = tuple(
            each for each in schemes if not each.is_certificate and not each.authorization
        )
        """Those whose credentials are elsewhere than in the Authorization field or a
        certificate."""
        self._of_certificates = next((each for each in schemes if each.is_certificate), None)
        self._refinements = refinements
        self._pod_tokens = pod_tokens
        self._resource_tokens = resource_tokens

    def recall(self, authorization: Sequence[bytes], proofs: Sequence[bytes]) -> Identity | None:
        """The identity that :meth:`authenticate` found for the same Authorization field, if it
        would find it again; ``None`` means to call it.

        Only simple tokens prove the same identity in every request.
        """
        if len(authorization) != 1 or proofs:
            return None
        return self._pod_tokens.recall(authorization[0])

    async def authenticate(self, credentials: RequestCredentials) -> Identity | None:
        """The identity that the credentials of a request prove; ``None`` without credentials.

        Raises NotAuthenticated with ``invalid`` for credentials that are not valid, and what
        :func:`~podstead.authn.credentials.read_credential` raises.
        """
        credential = authn_credentials.read_credential(
            credentials.authorization, credentials.proofs, self._by_name
        )
        match credential:
            case None:
                scheme = self._scheme_elsewhere(credentials)
                return None if scheme is None else await scheme.verify(credentials)
            case authn_credentials.UnverifiedDpop():
                identity = await self._resource_tokens.verify_dpop(
                    credential,
                    method=credentials.method,
                    url=credentials.url,
                    client_address=credentials.client_address,
                )
                return await refined(identity, self._refinements)
            case authn_credentials.OtherCredential(name):
                return await self._by_name[name].verify(credentials)
            case authn_credentials.UnverifiedBearer(token) if token.count(".") == _DOTS_OF_A_JWT:
                identity = await self._resource_tokens.verify_bearer(credential)
                return await refined(identity, self._refinements)
            case authn_credentials.UnverifiedBearer(token):
                return await self._pod_tokens.verify(token, credentials.authorization[0])

    async def check_again(self, credentials: RequestCredentials, identity: Identity) -> None:
        """Check that the credentials that proved an identity when the request began have not been
        revoked since, that they are still good for the same, and that their key has not been
        removed from the account.

        They may have expired meanwhile, because the request arrived in time. Raises
        NotAuthenticated.
        """
        match authn_credentials.read_credential(
            credentials.authorization, credentials.proofs, self._by_name
        ):
            case authn_credentials.OtherCredential(name):
                await self._by_name[name].check_again(credentials, identity)
            case None:
                scheme = self._scheme_elsewhere(credentials)
                if scheme is not None:
                    await scheme.check_again(credentials, identity)
            case authn_credentials.UnverifiedDpop(token):
                await self._resource_tokens.check_again(token, "DPoP", credentials.client_address)
            case authn_credentials.UnverifiedBearer(token) if token.count(".") == _DOTS_OF_A_JWT:
                await self._resource_tokens.check_again(token, "Bearer", credentials.client_address)
            case authn_credentials.UnverifiedBearer(token):
                await self._pod_tokens.check_again(token)
        if identity.is_of_application:
            now = await refined(identity, self._refinements)
            if now.limit != identity.limit:
                raise NotAuthenticated("What the credentials are good for has changed meanwhile")

    def _scheme_elsewhere(self, credentials: RequestCredentials) -> CredentialScheme | None:
        """The scheme of a request without an Authorization field, if it has credentials."""
        for scheme in self.elsewhere:
            if scheme.applies_to(credentials):
                return scheme
        return None if credentials.certificate is None else self._of_certificates


class PodTokenVerifier:
    """Verifies simple tokens with the signing keys and against the registries of the store."""

    def __init__(
        self,
        *,
        keys: Sequence[authn_credentials.SigningKey],
        registries: Store,
        clock: Clock,
        enabled: bool,
        refinements: Sequence[IdentityRefinement] = (),
    ) -> None:
        """``enabled`` is false if simple tokens are switched off (A-34). What ``refinements`` add
        must change only in writes that also store the token again."""
        self._refinements = refinements
        self._keys = tuple(keys)
        self._registries = registries
        self._clock = clock
        self._enabled = enabled
        self._verified: OrderedDict[str, tuple[authn_credentials.VerifiedPodToken, Identity]] = (
            OrderedDict()
        )
        self._recent: OrderedDict[bytes, tuple[int, Identity]] = OrderedDict()

    def recall(self, authorization: bytes) -> Identity | None:
        """The identity that :meth:`verify` gave for an Authorization field, while it would do so
        again.

        That depends on the field, the registries and the time, and on nothing else: neither the
        keys nor whether tokens are enabled changes while a worker runs. So the identity holds until
        it expires or a pod or token may have changed in any process.
        """
        recent = self._recent.get(authorization)
        if recent is None:
            return None
        registries_version, identity = recent
        if registries_version != self._registries.registries_version():
            del self._recent[authorization]
            return None
        until_s = identity.holds_until_s
        if until_s is not None and self._clock.now_ms() >= until_s * 1000:
            return None
        return identity

    async def verify_typed(self, token: str) -> authn_credentials.VerifiedPodToken:
        """The content of a token that a person has typed, with which they do on the pages what they
        can; one with a limit is not enough for that. Raises NotAuthenticated."""
        identity = await self.verify(token, b"Bearer " + token.encode(errors="replace"))
        if identity.limit is not None:
            raise NotAuthenticated("This token was given for less than signing in", invalid=True)
        return self._verify(token)[0]

    async def verify(self, token: str, authorization: bytes) -> Identity:
        """The identity of the owner of the token's pod; ``authorization`` is the field that holds
        the token. Raises NotAuthenticated."""
        # Read first: data read afterwards may be newer, and is then read again.
        registries_version = self._registries.registries_version()
        try:
            if not self._enabled:
                raise authn_credentials.InvalidToken("Invalid token")
            verified, identity = self._verify(token)
            await self._check_registered(verified)
        except authn_credentials.InvalidToken as refusal:
            raise _refused(refusal) from refusal
        identity = await refined(identity, self._refinements)
        if len(authorization) <= _MAX_RECALLED_BYTES:
            _remember(self._recent, authorization, (registries_version, identity))
        return identity

    async def check_again(self, token: str) -> None:
        """Check that a verified token has not been revoked since. Raises NotAuthenticated."""
        try:
            known = self._verified.get(token)
            verified = (
                authn_credentials.verify_token(token, keys=self._keys, now_s=0)
                if known is None
                else known[0]
            )
            await self._check_registered(verified)
        except authn_credentials.InvalidToken as refusal:
            raise _refused(refusal) from refusal

    async def is_still_valid(self, verified: authn_credentials.VerifiedPodToken) -> bool:
        """Whether a token that was verified before would be accepted now."""
        expires_s = verified.expires_s
        if not self._enabled or (
            expires_s is not None and self._clock.now_ms() >= expires_s * 1000
        ):
            return False
        try:
            await self._check_registered(verified)
        except authn_credentials.InvalidToken:
            return False
        # A session that began with the token is for everything, and so must the token still be.
        identity = await refined(_identity_of(verified), self._refinements)
        return identity.limit is None

    def _verify(self, token: str) -> tuple[authn_credentials.VerifiedPodToken, Identity]:
        # A signature is verified once; the expiry is checked every time.
        now_s = self._clock.now_ms() // 1000
        known = self._verified.get(token)
        if known is None:
            verified = authn_credentials.verify_token(token, keys=self._keys, now_s=now_s)
            known = (verified, _identity_of(verified))
            _remember(self._verified, token, known)
        expires_s = known[0].expires_s
        if expires_s is not None and now_s >= expires_s:
            raise authn_credentials.InvalidToken("Access token expired")
        return known

    async def _check_registered(self, verified: authn_credentials.VerifiedPodToken) -> None:
        record = await self._registries.read_token(verified.token_id)
        if record is None or record.revoked_s is not None or record.web_id != verified.web_id:
            raise authn_credentials.InvalidToken("Invalid token")
        pod = await self._registries.read_pod(record.pod)
        if pod is None or pod.owner != verified.web_id:
            raise authn_credentials.InvalidToken("Invalid token")


def _identity_of(verified: authn_credentials.VerifiedPodToken) -> Identity:
    return Identity(
        iri=verified.web_id,
        method=AuthenticationMethod.SIMPLE,
        token_id=verified.token_id,
        expires_at_s=verified.expires_s,
        may_state_identity=True,
    )


def _remember(cache: OrderedDict[_Key, _Known], key: _Key, known: _Known) -> None:
    cache[key] = known
    if len(cache) > _MAX_VERIFIED_TOKENS:
        cache.popitem(last=False)


def _refused(refusal: authn_credentials.InvalidToken) -> NotAuthenticated:
    return NotAuthenticated(str(refusal), invalid=True, scheme="Bearer")
