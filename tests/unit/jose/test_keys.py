"""Which keys are accepted, and what is known about them (A-101, RFC 7517, RFC 7518)."""

from __future__ import annotations

import base64
import functools
import json
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, padding, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from podstead.jose.tokens import (
    MAX_DEPTH,
    SIGNATURE_ALGORITHMS,
    InvalidJose,
    SigningAlgorithm,
    SigningKeyPair,
    claim_number,
    claim_text,
    import_public_key,
    read_object,
    read_token,
    verify_signature,
)
from tests.support.signing import (
    Json,
    Signer,
    base64url,
    encoded,
    signed_with_secret,
    unsigned,
    with_other_signature,
)

EC = Signer.new("ES256")
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
    assert import_public_key(jwk).algorithms
    with pytest.raises(InvalidJose):
        import_public_key({**jwk, member: "AQAB"})


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
    with pytest.raises(InvalidJose, match=r"not acceptable$|size that is not accepted$"):
        import_public_key(jwk)


@pytest.mark.parametrize("bits", [2048, 3072])
def test_rsa_keys_of_sound_sizes_are_taken(bits: int) -> None:
    signer = Signer.new("RS256", rsa_bits=bits)
    assert import_public_key(signer.jwk).thumbprint == signer.thumbprint


def test_a_key_is_imported_once() -> None:
    jwk = Signer.new("EdDSA").jwk
    assert import_public_key({**jwk, "kid": "other"}) is import_public_key(jwk)


# --- Tokens of this server, verified by another library (A-42, A-70) ---------------------------


ALGORITHMS: list[SigningAlgorithm] = ["ES256", "RS256"]
pair_of = functools.cache(SigningKeyPair.generate)


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
    pair = pair_of(algorithm)
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
    jwk = pair_of(algorithm).public_jwk()
    assert {"d", "p", "q", "dp", "dq", "qi", "k"}.isdisjoint(jwk)
    assert (jwk["use"], jwk["alg"]) == ("sig", algorithm)
    assert jwk["kid"] == import_public_key(jwk).thumbprint == pair_of(algorithm).key_id
    if algorithm == "RS256":
        assert number(jwk["n"]).bit_length() == 2048


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_that_was_kept_signs_as_before(algorithm: SigningAlgorithm) -> None:
    """A-43."""
    pair = pair_of(algorithm)
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


# --- reading -----------------------------------------------------------------------------------
#
# What is a token, before anything is verified? Compact form and strict JSON.


SIGNER = Signer.new("ES256")
GOOD = SIGNER.sign({"kid": "1"}, {"a": 1})
HEADER, CLAIMS, SIGNATURE = GOOD.split(".")


def of(header: str = HEADER, claims: str = CLAIMS, signature: str = SIGNATURE) -> str:
    return f"{header}.{claims}.{signature}"


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_a_token_of_one_of_our_algorithms_is_read() -> None:
    token = read_token(GOOD, max_characters=len(GOOD))
    assert (token.header, token.claims) == ({"alg": "ES256", "kid": "1"}, {"a": 1})
    assert (token.algorithm, token.key_id, token.text) == ("ES256", "1", GOOD)
    assert read_token(SIGNER.sign({"kid": 1}, {}), max_characters=999).key_id is None


NO_TOKENS = {
    "two parts": f"{HEADER}.{CLAIMS}",
    "four parts": f"{GOOD}.{SIGNATURE}",
    "five parts, an encrypted one": f"{GOOD}.AA.AA",
    "no header": of(header=""),
    "no claims": of(claims=""),
    "no signature": of(signature=""),
    "space before": f" {GOOD}",
    "line after": f"{GOOD}\n",
    "padding": of(signature=f"{SIGNATURE}=="),
    "the other alphabet": of(signature="ab+/"),
    "one character left over": of(claims="e30aa"),
    "header no JSON": of(header=base64url(b"alg")),
    "header an array": of(header=encoded([])),
    "claims an array": of(claims=encoded([1])),
    "claims a string": of(claims=encoded("a")),
    "no algorithm": of(header=encoded({})),
    "algorithm in other case": of(header=encoded({"alg": "es256"})),
    "algorithm a list": of(header=encoded({"alg": ["ES256"]})),
    "algorithm null": of(header=encoded({"alg": None})),
    "algorithm on another curve": of(header=encoded({"alg": "ES256K"})),
    "unsigned": unsigned({}, {"a": 1}),
    "unsigned, other case": of(header=encoded({"alg": "None"})),
    "symmetric": signed_with_secret(b"secret", {}, {"a": 1}),
    "critical extension": SIGNER.sign({"crit": ["exp"], "exp": 1}, {}),
    "critical, empty": SIGNER.sign({"crit": []}, {}),
    "payload not encoded": SIGNER.sign({"b64": False}, {}),
}


@pytest.mark.parametrize("text", NO_TOKENS.values(), ids=NO_TOKENS)
def test_tokens_of_others_are_refused(text: str) -> None:
    """A-75."""
    with pytest.raises(InvalidJose, match=r"^Invalid token$"):
        read_token(text, max_characters=4096)


def test_a_token_may_be_as_long_as_the_limit_and_no_longer() -> None:
    """A-114."""
    with pytest.raises(InvalidJose):
        read_token(GOOD, max_characters=len(GOOD) - 1)


@pytest.mark.parametrize("length", [0, 1, 63, 65, 128])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    token = read_token(of(signature=base64url(bytes(length)) or "AA"), max_characters=4096)
    with pytest.raises(InvalidJose, match=r"^Invalid token$"):
        verify_signature(token, import_public_key(SIGNER.jwk))


# --- JSON --------------------------------------------------------------------------------------

BAD_JSON = {
    "member twice": b'{"a":1,"a":1}',
    "member twice, deep": b'{"a":[{"b":1,"b":2}]}',
    "member twice, escaped": b'{"a":1,"\\u0061":1}',
    "not a number": b'{"a":NaN}',
    "infinite": b'{"a":-Infinity}',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "UTF-16": '{"a":1}'.encode("utf-16-le"),
    "UTF-32": '{"a":1}'.encode("utf-32"),
    "no UTF-8": b'{"a":"\xff"}',
    "surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "half a pair": b'{"a":"\\ud800"}',
    "half a pair as a name": b'{"\\udfff":1}',
    "half a pair, deep": b'{"a":[{"b":"x\\uDC00y"}]}',
    "more after it": b'{"a":1} {}',
    "comment": b'{"a":1 /* */}',
    "single quotes": b"{'a':1}",
    "an endless integer": b'{"a":' + b"9" * 5000 + b"}",
    "array": b"[]",
    "number": b"1",
    "nothing": b"",
    "too deep": nested(MAX_DEPTH + 1),
    "too deep in arrays": b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    "so deep that reading it ends the stack": b'{"a":' + b"[" * 100_000,
}


@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
def test_json_that_could_be_read_otherwise_is_refused(content: bytes) -> None:
    """A-114."""
    with pytest.raises(InvalidJose):
        read_object(content)


def test_json_is_read_to_its_depth() -> None:
    """A-114."""
    assert read_object(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
            lambda each: st.lists(each) | st.dictionaries(st.text(), each),
            max_leaves=8,
        ).filter(lambda value: len(json.dumps(value)) < 4000),
    )
)
def test_objects_are_read_as_written(value: dict[str, object]) -> None:
    for content in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False).encode()):
        try:
            assert read_object(content) == value
        except InvalidJose:
            assert str(value).count("[") + str(value).count("{") > MAX_DEPTH


@given(st.binary(max_size=200))
def test_bytes_are_an_object_or_refused(content: bytes) -> None:
    try:
        assert isinstance(read_object(content), dict)
    except InvalidJose:
        return


# --- claims ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 1, True, "", ["a"], {"a": "a"}])
def test_a_claim_that_is_not_text_is_none(value: object) -> None:
    assert claim_text({"a": value}, "a") is None
    assert claim_text({}, "a") is None
    assert claim_text({"a": "x"}, "a") == "x"


@pytest.mark.parametrize(
    "value", [None, True, False, "1", [1], -1, -0.5, float("inf"), float("nan"), 1e15, 10**4000]
)
def test_a_claim_that_is_not_a_time_is_none(value: object) -> None:
    assert claim_number({"a": value}, "a") is None
    assert claim_number({}, "a") is None
    assert claim_number({"a": 1.5}, "a") == 1.5
