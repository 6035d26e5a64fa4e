"""What is a token, before anything is verified? Compact form and strict JSON (A-75, A-114)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.jose.tokens import (
    MAX_DEPTH,
    InvalidJose,
    claim_number,
    claim_text,
    import_public_key,
    read_object,
    read_token,
    verify_signature,
)
from tests.support.signing import Signer, base64url, encoded, signed_with_secret, unsigned

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


BAD = {
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


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
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
