"""Which keys are accepted, and what is known about them (A-101, RFC 7517, RFC 7518)."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, x25519

from podstead.jose.tokens import (
    SIGNATURE_ALGORITHMS,
    InvalidJose,
    PublicKeyCache,
    import_public_key,
    read_token,
    verify_signature,
)
from tests.support.signing import Json, Signer, base64url, with_other_signature

EC = Signer.new("ES256")
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})


@pytest.mark.parametrize("algorithm", SIGNATURE_ALGORITHMS)
def test_every_accepted_algorithm_verifies_what_another_library_signed(algorithm: str) -> None:
    """A-101."""
    signer = Signer.new(algorithm)
    token = read_token(signer.sign({}, {"a": 1}), max_characters=4096)
    key = import_public_key(signer.jwk)
    verify_signature(token, key)
    assert key.thumbprint == signer.thumbprint

    changed = read_token(with_other_signature(token.text), max_characters=4096)
    with pytest.raises(InvalidJose):
        verify_signature(changed, key)
    other = signer.new(algorithm, rsa_bits=3072)
    with pytest.raises(InvalidJose):
        verify_signature(token, import_public_key(other.jwk))


@pytest.mark.parametrize("named", SIGNATURE_ALGORITHMS)
@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512", "RS256", "EdDSA"])
def test_a_key_verifies_only_the_algorithms_of_its_kind(algorithm: str, named: str) -> None:
    """A-101: the curve belongs to the algorithm."""
    expected = RSA if algorithm == "RS256" else frozenset({algorithm})
    key = import_public_key(Signer.new(algorithm).jwk)
    assert key.algorithms == expected
    if named not in expected:
        token = read_token(Signer.new(algorithm).sign({"alg": named}, {}), max_characters=4096)
        with pytest.raises(InvalidJose, match="Invalid token"):
            verify_signature(token, key)


def test_what_else_a_key_says_is_not_looked_at() -> None:
    """A-106: proofs of one client differ in these members, its key does not."""
    more = {"alg": "ES512", "kid": "7", "use": "enc", "key_ops": ["sign"], "x5u": "http://x/"}
    for jwk in ({**EC.jwk, **more}, dict(reversed(EC.jwk.items()))):
        assert import_public_key(jwk).thumbprint == EC.thumbprint


@pytest.mark.parametrize("member", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "EdDSA"])
def test_a_key_with_private_members_is_refused(algorithm: str, member: str) -> None:
    """A-101."""
    jwk = Signer.new(algorithm).jwk
    for ring in (import_public_key, PublicKeyCache().import_key):
        assert ring(jwk).algorithms
        with pytest.raises(InvalidJose):
            ring({**jwk, member: "AQAB"})


def off_curve() -> Json:
    return {**EC.jwk, "y": base64url(bytes(31) + b"\x01")}


def public_of(curve: ec.EllipticCurve) -> Json:
    numbers = ec.generate_private_key(curve).public_key().public_numbers()
    x, y = (base64url(each.to_bytes(32, "big")) for each in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "secp256k1", "x": x, "y": y}


BAD: dict[str, Any] = {
    "symmetric": {"kty": "oct", "k": "AQAB"},
    "symmetric without its secret": {"kty": "oct"},
    "no kind": {"crv": "P-256", "x": EC.jwk["x"], "y": EC.jwk["y"]},
    "kind is a list": {**EC.jwk, "kty": ["EC"]},
    "unknown kind": {**EC.jwk, "kty": "AKP"},
    "point beside the curve": off_curve(),
    "other curve of that size": public_of(ec.SECP256K1()),
    "curve named wrongly": {**EC.jwk, "crv": "P-384"},
    "curve unknown": {**EC.jwk, "crv": "P-999"},
    "coordinate missing": {"kty": "EC", "crv": "P-256", "x": EC.jwk["x"]},
    "coordinate is a number": {**EC.jwk, "x": 7},
    "coordinate is no base64": {**EC.jwk, "x": "!"},
    "coordinate is not ASCII": {**EC.jwk, "x": "é"},
    "RSA of 1024 bits": Signer.new("RS256", rsa_bits=1024).jwk,
    "RSA of exponent 1": {**Signer.new("RS256").jwk, "e": "AQ"},
    "RSA without modulus": {"kty": "RSA", "e": "AQAB"},
    "RSA of modulus 0": {"kty": "RSA", "e": "AQAB", "n": "AA"},
    "RSA of 8200 bits": {"kty": "RSA", "e": "AQAB", "n": base64url(b"\xff" * 1025)},
    "key agreement": {
        "kty": "OKP",
        "crv": "X25519",
        "x": base64url(x25519.X25519PrivateKey.generate().public_key().public_bytes_raw()),
    },
    "Ed448": {
        "kty": "OKP",
        "crv": "Ed448",
        "x": base64url(ed448.Ed448PrivateKey.generate().public_key().public_bytes_raw()),
    },
    "Ed25519 too short": {"kty": "OKP", "crv": "Ed25519", "x": "AQAB"},
}


@pytest.mark.parametrize("jwk", BAD.values(), ids=BAD)
def test_a_key_that_is_not_sound_is_refused(jwk: Json) -> None:
    """A-101: with a phrase of ours, whatever the library makes of it (A-186)."""
    for ring in (import_public_key, PublicKeyCache().import_key):
        with pytest.raises(InvalidJose, match=r"not acceptable$|size that is not accepted$"):
            ring(jwk)


@pytest.mark.parametrize("bits", [2048, 3072])
def test_rsa_keys_of_sound_sizes_are_taken(bits: int) -> None:
    signer = Signer.new("RS256", rsa_bits=bits)
    assert import_public_key(signer.jwk).thumbprint == signer.thumbprint


def test_a_ring_imports_a_key_once_and_keeps_the_latest() -> None:
    ring = PublicKeyCache(max_cached=2)
    first, second, third = (Signer.new("EdDSA").jwk for _ in range(3))
    kept = ring.import_key(first)
    ring.import_key(second)
    assert ring.import_key({**first, "kid": "other"}) is kept
    ring.import_key(third)
    assert ring.import_key(first) is kept
    again = ring.import_key(second)
    assert again.thumbprint == import_public_key(second).thumbprint
    assert ring.import_key(third).thumbprint == import_public_key(third).thumbprint
