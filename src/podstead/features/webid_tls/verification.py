"""Verifies client certificates by the documents of their WebIDs: WebID-TLS (A-160 to A-172).

Anybody can create a certificate with any WebID in it. It proves only the possession of its key, so
the WebID's own document must name that key. Documents of this server are read as they are now, and
a key that is removed is refused with the next request. A foreign document is used for some minutes,
or half a minute if it does not name the key, because people add a key and try again at once
(A-168). An identity says until when it holds (``Identity.verified_until_s``), because a response to
it may be cached for as long. Pure.
"""

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from podstead.authn import web_ids
from podstead.authn.authenticate import CredentialScheme, RequestCredentials
from podstead.authn.claims import is_usable_address
from podstead.core.caches import BoundedCache
from podstead.core.errors import NotAuthenticated, RemoteUnavailable
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.webid_tls.certificates import (
    Certificate,
    MalformedCertificate,
    RsaKey,
    read_certificate,
)
from podstead.features.webid_tls.keys import StatedRsaKey, stated_rsa_keys
from podstead.rdf.graph import Graph

POSITIVE_S: Final = 300
NEGATIVE_S: Final = 30
CACHE_CHARACTERS: Final = 4 * 1024 * 1024
"""The total size of the URLs of foreign documents in the cache and of the WebIDs with a key
there."""
MAX_KEYS: Final = 256
"""How many keys one document may state."""
CACHE_BYTES: Final = 16 * 1024 * 1024
"""The total size of the parsed certificates in the cache."""
_BYTES_OF_A_CERTIFICATE: Final = 2048
_BYTES_OF_A_NAME: Final = 64
"""The overhead of a name besides its characters: a certificate can contain thousands of short
ones."""
MAX_NAMES: Final = 5
SKEW_S: Final = 60
_SCHEMES: Final = ("https:", "http:")
MIN_RSA_KEY_BITS = 2048
"""Shorter keys might be broken (NIST SP 800-131A, section 3)."""

StatedRsaKeys: TypeAlias = frozenset[StatedRsaKey]


class InvalidCertificate(Exception):
    """The certificate does not prove its WebID; ``str()`` is a fixed public reason."""


@dataclass(frozen=True, slots=True)
class CertificateClaim:
    """What a valid certificate claims: that one of these WebIDs has the key."""

    web_ids: tuple[str, ...]
    """At least one."""
    key: RsaKey
    key_digest: bytes
    expires_s: int
    """Unix time at which it expires."""


def claimed_names(certificate: Certificate) -> tuple[str, ...]:
    """The first http(s) names of a certificate, in any form. A certificate without any is not
    treated as credentials, whatever else it is for (A-161)."""
    return tuple(uri for uri in certificate.uris if uri.lower().startswith(_SCHEMES))[:MAX_NAMES]


def read_claim(
    certificate: Certificate, *, now_s: int, allow_loopback: bool = False
) -> CertificateClaim | None:
    """The claim of a certificate; ``None`` if it has none. With ``allow_loopback``, WebIDs may have
    plain http on this machine (A-162). Raises InvalidCertificate."""
    names = claimed_names(certificate)
    if not names:
        return None
    key = certificate.key
    if key is None:
        raise InvalidCertificate("unsupported key type")
    if key.modulus.bit_length() < MIN_RSA_KEY_BITS:
        raise InvalidCertificate("its key is too short")
    if key.exponent < 3 or key.exponent % 2 == 0:
        raise InvalidCertificate("its key is malformed")
    if now_s < certificate.not_before_s - SKEW_S:
        raise InvalidCertificate("it is not valid yet")
    expires_s = certificate.not_after_s + SKEW_S
    if now_s >= expires_s:
        raise InvalidCertificate("it has expired")
    usable = tuple(name for name in names if is_usable_address(name, allow_loopback=allow_loopback))
    if not usable:
        raise InvalidCertificate("it names no WebID that can be used")
    return CertificateClaim(usable, key, certificate.key_digest, expires_s)


def require_holder(web_id: str, holders: Collection[str]) -> str:
    """The identity that a certificate for ``web_id`` proves, if its key belongs to ``holders``
    according to the WebID's own document (A-163). Raises InvalidCertificate.

    A name without a fragment stands for the only holder of the key in that document: common recipes
    for creating certificates drop the fragment (A-163), and the owner of the document has stated
    whose key it is.
    """
    if web_id in holders:
        return web_id
    own = [each for each in holders if "#" in each and each.partition("#")[0] == web_id]
    if not own:
        raise InvalidCertificate("the WebID's document does not name its key")
    if len(own) > 1:
        raise InvalidCertificate("it names a document in which several have its key")
    return own[0]


@dataclass(frozen=True, slots=True)
class _Foreign:
    """The holders of a key according to a foreign document when it was fetched."""

    holders: frozenset[str]
    read_ms: int

    def is_fresh_for(self, web_id: str, now_ms: int) -> bool:
        """Whether this may still be used for a certificate of the WebID."""
        return now_ms < self.fresh_until_ms(web_id)

    def fresh_until_ms(self, web_id: str) -> int:
        """How long this may be used for a certificate of the WebID."""
        return self.read_ms + (POSITIVE_S if self.proves(web_id) else NEGATIVE_S) * 1000

    def proves(self, web_id: str) -> bool:
        """Whether a certificate for the WebID is accepted."""
        try:
            require_holder(web_id, self.holders)
        except InvalidCertificate:
            return False
        return True


class WebIdTls(CredentialScheme):
    """Verifies client certificates against the documents of their WebIDs."""

    is_certificate = True

    def __init__(
        self,
        sources: web_ids.ProfileSources,
        *,
        lookups: web_ids.LookupLimits,
        allow_loopback: bool,
    ) -> None:
        self._clock = sources.clock
        self._documents = web_ids.WebIdDocuments(sources, extract=_keys_of, weigh=_weight)
        self._allow_loopback = allow_loopback
        self._lookups = lookups
        self._read = BoundedCache[bytes, Certificate](CACHE_BYTES)
        self._foreign = BoundedCache[tuple[str, bytes], _Foreign](CACHE_CHARACTERS)

    async def verify(self, credentials: RequestCredentials) -> Identity | None:
        """The identity that a certificate proves; ``None`` if it claims none (A-161). Raises
        NotAuthenticated."""
        now_s = self._clock.now_ms() // 1000
        certificate = self._certificate(credentials)
        return await self._verify(certificate, credentials.client_address, now_s=now_s)

    async def check_again(self, credentials: RequestCredentials, identity: Identity) -> None:
        """Check that a certificate still proves an identity, even if it has expired meanwhile.
        Raises NotAuthenticated."""
        certificate = self._certificate(credentials)
        address, now_s = credentials.client_address, certificate.not_after_s
        now = await self._verify(certificate, address, now_s=now_s)
        if now is None or now.iri != identity.iri:  # it may name others that still have the key
            raise _refused("the WebID's document does not name its key")

    async def _verify(
        self, certificate: Certificate, client_address: str, *, now_s: int
    ) -> Identity | None:
        try:
            claim = read_claim(certificate, now_s=now_s, allow_loopback=self._allow_loopback)
            if claim is None:
                return None
            agent, fresh_until_ms = await self._holder(claim, client_address)
        except InvalidCertificate as refusal:
            raise _refused(str(refusal)) from refusal
        return Identity(
            iri=agent,
            method=AuthenticationMethod.WEBID_TLS,
            expires_at_s=claim.expires_s,
            verified_until_s=fresh_until_ms // 1000,
            may_state_identity=True,
        )

    def _certificate(self, credentials: RequestCredentials) -> Certificate:
        der = credentials.certificate or b""
        digest = sha256(der).digest()
        known = self._read.get(digest)
        if known is None:
            try:
                known = read_certificate(der)
            except MalformedCertificate as error:
                raise _refused("it cannot be read") from error
            self._read.put(digest, known, weight=_weight_of(known))
        return known

    async def _holder(self, claim: CertificateClaim, client_address: str) -> tuple[str, int]:
        """The first WebID that has the key, and the time (Unix milliseconds) until which that
        depends on nothing but the stored state.

        Raises InvalidCertificate for the first WebID if none has the key, and RemoteUnavailable if
        one of the documents cannot be fetched at present.
        """
        refusals = []
        unavailable: RemoteUnavailable | None = None
        fresh_until_ms = claim.expires_s * 1000
        for web_id in claim.web_ids:
            try:
                holders, until_ms = await self._holders(web_id, claim, client_address)
                fresh_until_ms = min(fresh_until_ms, until_ms)
                return require_holder(web_id, holders), fresh_until_ms
            except web_ids.UnusableDocument as error:
                fresh_until_ms = 0  # it may be usable the next time
                refusals.append(InvalidCertificate(_lower(str(error))))
            except InvalidCertificate as refusal:
                refusals.append(refusal)
            except RemoteUnavailable as error:
                fresh_until_ms = 0
                unavailable = unavailable or error
        raise unavailable or refusals[0]

    async def _holders(
        self, web_id: str, claim: CertificateClaim, client_address: str
    ) -> tuple[frozenset[str], int]:
        """The holders of the key according to the WebID's document, and the time (Unix
        milliseconds) until which they stay the same unless something is stored. Raises
        UnusableDocument, RemoteUnavailable."""
        document = web_id.partition("#")[0]
        if self._documents.is_local(web_id):
            stated = await self._documents.stored(document) or frozenset()
            return _holders_among(stated, claim), claim.expires_s * 1000
        foreign = self._foreign.get((document, claim.key_digest))
        if foreign is None or not foreign.is_fresh_for(web_id, self._clock.now_ms()):
            try:
                foreign = await self._fetched(document, claim, client_address)
            except web_ids.OWN_LIMITS:
                stale_from_ms = self._clock.now_ms() - (POSITIVE_S + web_ids.STALE_S) * 1000
                if foreign is None or not foreign.proves(web_id) or foreign.read_ms < stale_from_ms:
                    raise
        return foreign.holders, foreign.fresh_until_ms(web_id)

    async def _fetched(
        self, document: str, claim: CertificateClaim, client_address: str
    ) -> _Foreign:
        """The holders of the key according to a foreign document, which is fetched for this. Raises
        UnusableDocument, RemoteUnavailable."""
        async with self._lookups.of(web_ids.LookupKind.WEB_ID, document, client_address):
            stated = await self._documents.fetched(document)
        holders = _holders_among(stated, claim)
        foreign = _Foreign(holders, self._clock.now_ms())
        self._foreign.put(
            (document, claim.key_digest), foreign, weight=len(document) + sum(map(len, holders))
        )
        return foreign


def _keys_of(graph: Graph, _: str) -> StatedRsaKeys:
    keys = stated_rsa_keys(graph)
    if len(keys) > MAX_KEYS:
        raise web_ids.UnusableDocument
    return keys


def _weight(keys: StatedRsaKeys) -> int:
    return sum(
        len(key.subject) + sum(n.bit_length() // 4 for n in key.moduli | key.exponents)
        for key in keys
    )


def _weight_of(certificate: Certificate) -> int:
    return _BYTES_OF_A_CERTIFICATE + sum(len(uri) + _BYTES_OF_A_NAME for uri in certificate.uris)


def _holders_among(keys: StatedRsaKeys, claim: CertificateClaim) -> frozenset[str]:
    rsa = claim.key
    return frozenset(key.subject for key in keys if key.is_key(rsa.modulus, rsa.exponent))


def _lower(phrase: str) -> str:
    return phrase[:1].lower() + phrase[1:]


def _refused(reason: str) -> NotAuthenticated:
    # Client certificates have no authentication scheme, so the error is reported on the scheme that
    # most clients read.
    return NotAuthenticated(
        f"Client certificate not accepted: {reason}", invalid=True, scheme="Bearer"
    )
