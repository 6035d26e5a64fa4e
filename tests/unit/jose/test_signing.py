"""Tokens of this server, verified by another library (A-42, A-70)."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from podstead.jose.tokens import InvalidJose, SigningAlgorithm, SigningKeyPair, import_public_key
from tests.support.signing import Json, Signer

PAIRS: dict[SigningAlgorithm, SigningKeyPair] = {
    "ES256": SigningKeyPair.generate("ES256"),
    "RS256": SigningKeyPair.generate("RS256"),
}
ALGORITHMS = list(PAIRS)


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def number(part: str) -> int:
    return int.from_bytes(decoded(part), "big")


def verify(jwk: Json, token: str) -> Json:
    """Verify with the cryptography package, from what is published."""
    signed, _, signature = token.rpartition(".")
    raw, digest = decoded(signature), hashes.SHA256()
    if jwk["kty"] == "EC":
        curve = ec.EllipticCurvePublicNumbers(number(jwk["x"]), number(jwk["y"]), ec.SECP256R1())
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        curve.public_key().verify(der, signed.encode(), ec.ECDSA(digest))
    else:
        public = rsa.RSAPublicNumbers(number(jwk["e"]), number(jwk["n"])).public_key()
        public.verify(raw, signed.encode(), padding.PKCS1v15(), digest)
    claims: Json = json.loads(decoded(signed.split(".")[1]))
    return claims


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_another_library_verifies_our_tokens(algorithm: SigningAlgorithm) -> None:
    pair = PAIRS[algorithm]
    token = pair.sign({"webid": "https://a.example/é#me", "n": 1}, media_type="at+jwt")
    assert verify(pair.public_jwk(), token) == {"webid": "https://a.example/é#me", "n": 1}
    header = json.loads(decoded(token.split(".")[0]))
    assert header == {"alg": algorithm, "typ": "at+jwt", "kid": pair.key_id}
    with pytest.raises(InvalidSignature):
        verify(SigningKeyPair.generate(algorithm).public_jwk(), token)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_published_is_public_and_named_by_its_thumbprint(
    algorithm: SigningAlgorithm,
) -> None:
    """A-42."""
    jwk = PAIRS[algorithm].public_jwk()
    assert {"d", "p", "q", "dp", "dq", "qi", "k"}.isdisjoint(jwk)
    assert (jwk["use"], jwk["alg"]) == ("sig", algorithm)
    assert jwk["kid"] == import_public_key(jwk).thumbprint == PAIRS[algorithm].key_id
    if algorithm == "RS256":
        assert number(jwk["n"]).bit_length() == 2048


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_that_was_kept_signs_as_before(algorithm: SigningAlgorithm) -> None:
    """A-43."""
    pair = PAIRS[algorithm]
    again = SigningKeyPair.load(pair.dump())
    assert (again.algorithm, again.key_id) == (algorithm, pair.key_id)
    assert verify(pair.public_jwk(), again.sign({"a": 1}, media_type="JWT")) == {"a": 1}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        json.dumps({**Signer.new("ES256").jwk, "alg": "ES256"}).encode(),
        json.dumps({**Signer.new("RS256").jwk, "alg": "RS256"}).encode(),
        json.dumps({**Signer.new("ES256").jwk, "d": "AQ", "alg": "HS256"}).encode(),
        json.dumps({"kty": "EC", "alg": "ES256"}).encode(),
    ],
)
def test_an_invalid_private_key_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidJose):
        SigningKeyPair.load(content)
