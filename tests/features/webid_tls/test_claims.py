"""What a certificate must satisfy before any document is read (A-161, A-162, A-165, A-166).

Certificates as values: some cannot be made with libraries that mean well.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from podstead.features.webid_tls.certificates import Certificate, RsaKey
from podstead.features.webid_tls.verification import InvalidCertificate, read_claim

WEB_ID = "https://pods.example/alice/#me"
MODULUS = (1 << 2047) + 1
GOOD = Certificate(
    uris=(WEB_ID,),
    not_before_s=1000,
    not_after_s=2000,
    key=RsaKey(MODULUS, 65537),
    key_digest=b"digest",
)


def test_a_good_certificate_claims_its_webids() -> None:
    claim = read_claim(GOOD, now_s=1500)
    assert claim is not None
    assert (claim.web_ids, claim.key, claim.expires_s) == ((WEB_ID,), GOOD.key, 2060)
    assert read_claim(replace(GOOD, uris=("urn:x",), key=None), now_s=9999) is None


@pytest.mark.parametrize("exponent", [-3, 0, 1, 2, 65536])
def test_an_exponent_is_odd_and_at_least_3(exponent: int) -> None:
    """A-165."""
    bad = replace(GOOD, key=RsaKey(MODULUS, exponent))
    with pytest.raises(InvalidCertificate, match="its key is malformed"):
        read_claim(bad, now_s=1500)
    assert read_claim(replace(GOOD, key=RsaKey(MODULUS, 3)), now_s=1500)


@pytest.mark.parametrize(("bits", "good"), [(2047, False), (2048, True)])
def test_a_key_has_at_least_so_many_bits(bits: int, good: bool) -> None:
    """A-165: those that its modulus really has."""
    certificate = replace(GOOD, key=RsaKey((1 << (bits - 1)) + 1, 3))
    if good:
        assert read_claim(certificate, now_s=1500)
        return
    with pytest.raises(InvalidCertificate, match="its key is too short"):
        read_claim(certificate, now_s=1500)


def test_names_of_any_case_are_claims() -> None:
    """A-161: who names somebody is not taken for nobody."""
    assert read_claim(replace(GOOD, uris=("HTTPS://pods.example/",)), now_s=1500)
    for name in ("http:", "Http://pods.example/"):
        with pytest.raises(InvalidCertificate, match="it names no WebID that can be used"):
            read_claim(replace(GOOD, uris=(name,)), now_s=1500)


def test_plain_http_is_for_this_machine() -> None:
    """A-162."""
    for name, good in (("http://localhost:3000/#me", True), ("http://pods.example/#me", False)):
        certificate = replace(GOOD, uris=(name,))
        for allowed in (False, True):
            if good and allowed:
                assert read_claim(certificate, now_s=1500, allow_loopback=allowed)
                continue
            with pytest.raises(InvalidCertificate, match="names no WebID"):
                read_claim(certificate, now_s=1500, allow_loopback=allowed)
