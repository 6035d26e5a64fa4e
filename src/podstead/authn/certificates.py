"""Reads the WebIDs that a certificate claims, and checks that it is valid (A-161, A-162, A-165,
A-166).

Pure, and about the certificate alone. TLS has already proven that the sender has the private key,
and ``web_id_tls`` checks whether the WebID's document names the key. The issuer of the certificate,
its key usage and its extended key usage are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.authn.claims import is_usable_address
from podstead.x509.certificate import Certificate, RsaKey

MAX_NAMES: Final = 5
SKEW_S: Final = 60
_SCHEMES: Final = ("https:", "http:")


MIN_RSA_KEY_BITS = 2048
"""Shorter keys might be broken (NIST SP 800-131A, section 3)."""


class InvalidCertificate(Exception):
    """The certificate does not prove its WebID; ``str()`` is a fixed public reason."""


@dataclass(frozen=True, slots=True)
class CertificateRules:
    """What the deployment requires of certificates."""

    allow_loopback: bool = False
    """Accept WebIDs with plain http on this machine (A-162)."""


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
    certificate: Certificate, *, now_s: int, rules: CertificateRules
) -> CertificateClaim | None:
    """The claim of a certificate; ``None`` if it has none. Raises InvalidCertificate."""
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
    usable = tuple(
        name for name in names if is_usable_address(name, allow_loopback=rules.allow_loopback)
    )
    if not usable:
        raise InvalidCertificate("it names no WebID that can be used")
    return CertificateClaim(usable, key, certificate.key_digest, expires_s)
