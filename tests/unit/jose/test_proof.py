"""Every point of a DPoP proof: one thing made wrong in a good one is refused (RFC 9449 4.3)."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podstead.jose.proof import (
    FUTURE_S,
    MAX_PROOF_CHARACTERS,
    PAST_S,
    DpopProof,
    ProofContext,
    check_proof,
    normalized_htu,
)
from podstead.jose.tokens import SIGNATURE_ALGORITHMS, InvalidJose, PublicKeyCache
from tests.support.signing import (
    Change,
    Json,
    Signer,
    encoded,
    set_to,
    signed_with_secret,
    token_hash,
    unsigned,
    with_other_signature,
    without,
)

NOW_S = 1_800_000_000
URL = "https://pod.example/alice/a%20b"
TOKEN = "abc.def.ghi"
SIGNER = Signer.new("ES256")


def claims(*changes: Change) -> Json:
    made: Json = {"htm": "GET", "htu": URL, "iat": NOW_S, "jti": "0123456789"}
    for change in changes:
        change(made)
    return made


def check(
    text: str, *, method: str = "GET", url: str = URL, token: str | None = TOKEN, ath: bool = False
) -> DpopProof:
    request = ProofContext(method, url, token)
    return check_proof(text, request, now_s=NOW_S, keys=PublicKeyCache(), require_ath=ath)


@pytest.mark.parametrize("algorithm", SIGNATURE_ALGORITHMS)
def test_a_good_proof_names_its_key_and_its_use(algorithm: str) -> None:
    """A-101, A-104."""
    signer = Signer.new(algorithm)
    proof = check(signer.proof(claims()))
    assert proof.thumbprint == signer.thumbprint
    assert proof.use_key == hashlib.sha256(f"{signer.thumbprint}|0123456789".encode()).digest()
    assert proof.usable_until_s == NOW_S + PAST_S + 1


BAD_CLAIMS = {
    "htm missing": (without("htm"), "another method"),
    "htm other": (set_to("htm", "POST"), "another method"),
    "htm no text": (set_to("htm", ["GET"]), "another method"),
    "htu missing": (without("htu"), "another URL"),
    "htu no text": (set_to("htu", 1), "another URL"),
    "htu no URL": (set_to("htu", "/alice/a%20b"), "another URL"),
    "htu other path": (set_to("htu", "https://pod.example/alice/b"), "another URL"),
    "htu other host": (set_to("htu", "https://evil.example/alice/a%20b"), "another URL"),
    "htu other scheme": (set_to("htu", "http://pod.example/alice/a%20b"), "another URL"),
    "htu other port": (set_to("htu", "https://pod.example:444/alice/a%20b"), "another URL"),
    "htu slash at its end": (set_to("htu", f"{URL}/"), "another URL"),
    "htu decoded": (set_to("htu", "https://pod.example/alice/a b"), "another URL"),
    "htu with a name": (set_to("htu", "https://a@pod.example/alice/a%20b"), "another URL"),
    "htu in two slashes": (set_to("htu", "https://pod.example//alice/a%20b"), "another URL"),
    "htu with dots": (set_to("htu", "https://pod.example/x/../alice/a%20b"), "another URL"),
    "iat missing": (without("iat"), "too old or from the future"),
    "iat a text": (set_to("iat", str(NOW_S)), "too old or from the future"),
    "iat true": (set_to("iat", True), "too old or from the future"),
    "iat old": (set_to("iat", NOW_S - PAST_S - 1), "too old or from the future"),
    "iat of the future": (set_to("iat", NOW_S + FUTURE_S + 1), "too old or from the future"),
    "jti missing": (without("jti"), "lacks a jti"),
    "jti a number": (set_to("jti", 12345678), "lacks a jti"),
    "jti short": (set_to("jti", "1234567"), "lacks a jti"),
    "jti long": (set_to("jti", "1" * 257), "lacks a jti"),
    "ath other": (set_to("ath", token_hash("other")), "another access token"),
    "ath empty": (set_to("ath", ""), "another access token"),
    "ath a number": (set_to("ath", 1), "another access token"),
    "ath not ASCII": (set_to("ath", "é"), "another access token"),
}


@pytest.mark.parametrize(("change", "phrase"), BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_a_proof_with_one_wrong_claim_is_refused(change: Change, phrase: str) -> None:
    """A-101 to A-105."""
    check(SIGNER.proof(claims()))
    with pytest.raises(InvalidJose, match=phrase):
        check(SIGNER.proof(claims(change)))


GOOD_CLAIMS: dict[str, Change] = {
    "htm in lower case": set_to("htm", "get"),
    "htu with query and fragment": set_to("htu", f"{URL}?a=b#c"),
    "htu with the default port": set_to("htu", "https://pod.example:443/alice/a%20b"),
    "htu with another case of scheme and host": set_to("htu", "HTTPS://Pod.Example/alice/a%20b"),
    "iat as old as may be": set_to("iat", NOW_S - PAST_S),
    "iat as far ahead as may be": set_to("iat", NOW_S + FUTURE_S),
    "iat with a fraction": set_to("iat", NOW_S + 0.5),
    "jti short": set_to("jti", "12345678"),
    "jti long": set_to("jti", "1" * 256),
    "jti of any text": set_to("jti", "é — 0123 \U0001f600"),
    "ath": set_to("ath", token_hash(TOKEN)),
    "ath with padding": set_to("ath", token_hash(TOKEN) + "="),
    "a claim that nobody knows": set_to("nonce", "x"),
}


@pytest.mark.parametrize("change", GOOD_CLAIMS.values(), ids=GOOD_CLAIMS)
def test_what_clients_do_otherwise_is_accepted(change: Change) -> None:
    assert check(SIGNER.proof(claims(change))).thumbprint == SIGNER.thumbprint


def test_the_query_of_the_request_does_not_count() -> None:
    """A-102."""
    assert check(SIGNER.proof(claims()), url=f"{URL}?x=y").thumbprint == SIGNER.thumbprint


def test_ath_can_be_required() -> None:
    """A-105."""
    named = SIGNER.proof(claims(set_to("ath", token_hash(TOKEN))))
    assert check(named, ath=True).thumbprint == SIGNER.thumbprint
    with pytest.raises(InvalidJose, match="another access token"):
        check(SIGNER.proof(claims()), ath=True)


def test_ath_without_a_token_is_refused() -> None:
    """A-63: a proof for the provider's token endpoint names no token."""
    with pytest.raises(InvalidJose, match="another access token"):
        check(SIGNER.proof(claims(set_to("ath", token_hash("")))), token=None)


BAD_HEADERS: dict[str, Json] = {
    "typ missing": {"typ": None},
    "typ of a token": {"typ": "JWT"},
    "typ in other case": {"typ": "DPoP+JWT"},
    "jwk missing": {"jwk": None},
    "jwk a text": {"jwk": "x"},
    "jwk of another": {"jwk": Signer.new("ES256").jwk},
    "jwk private": {"jwk": {**SIGNER.jwk, "d": "AQAB"}},
    "jwk symmetric": {"jwk": {"kty": "oct", "k": "AQAB"}},
    "alg other than the key": {"alg": "ES384"},
    "alg none": {"alg": "none"},
    "critical extension": {"crit": ["typ"]},
}


@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_proof_with_a_wrong_header_is_refused(header: Json) -> None:
    """A-101, A-75."""
    with pytest.raises(InvalidJose):
        check(SIGNER.proof(claims(), **header))


def test_a_proof_without_a_signature_of_its_key_is_refused() -> None:
    """A-101, W-12: also one that is signed by the secret that it shows."""
    header: Json = {"typ": "dpop+jwt", "jwk": SIGNER.jwk}
    secret = {"typ": "dpop+jwt", "jwk": {"kty": "oct", "k": encoded("secret")}}
    for text in (
        with_other_signature(SIGNER.proof(claims())),
        unsigned(header, claims()),
        signed_with_secret(b'"secret"', secret, claims()),
        signed_with_secret(SIGNER.jwk["x"].encode(), header, claims()),
    ):
        with pytest.raises(InvalidJose, match="Invalid token"):
            check(text)


def test_a_proof_may_be_of_four_kibibytes() -> None:
    """A-101."""
    long = SIGNER.proof(claims(), padding="")
    room = (MAX_PROOF_CHARACTERS - len(long)) * 3 // 4 - 2
    assert check(SIGNER.proof(claims(), padding="x" * room)).thumbprint == SIGNER.thumbprint
    with pytest.raises(InvalidJose):
        check(SIGNER.proof(claims(), padding="x" * (room + 5)))


# --- URLs --------------------------------------------------------------------------------------

SAME = [
    ("http://a", "http://a/"),
    ("http://a/?x", "http://a/"),
    ("http://a?x=/y", "http://a/"),
    ("http://a#x", "http://a/"),
    ("HTTP://A/b", "http://a/b"),
    ("http://a:80/b", "http://a/b"),
    ("https://a:443/b", "https://a/b"),
    ("http://[::1]:80/b", "http://[::1]/b"),
    ("http://a/%2f%c3%A9", "http://a/%2F%C3%A9"),
]
DIFFERENT = [
    ("http://a/b", "http://a/B"),
    ("http://a/b", "http://a/b/"),
    ("http://a/b", "https://a/b"),
    ("http://a:443/b", "https://a/b"),
    ("https://a:80/b", "https://a/b"),
    ("http://a/%41", "http://a/A"),
    ("http://a/b//c", "http://a/b/c"),
    ("http://a/./b", "http://a/b"),
    ("http://a.example/b", "http://a.example./b"),
    ("http://a:8080/b", "http://a/b"),
    ("http://a:080/b", "http://a/b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_urls_that_compare_equal(one: str, other: str) -> None:
    """A-102."""
    assert normalized_htu(one) == normalized_htu(other) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_urls_that_differ(one: str, other: str) -> None:
    """A-102, W-12."""
    first, second = normalized_htu(one), normalized_htu(other)
    assert first is not None
    assert second is not None
    assert first != second


@pytest.mark.parametrize(
    "url", ["", "a", "/a", "ftp://a/", "http:/a", "http://", "http:///a", "http://?a", " http://a/"]
)
def test_what_is_no_url_compares_with_nothing(url: str) -> None:
    assert normalized_htu(url) is None


PATHS = st.text(alphabet="abAB%2f./-é ", max_size=12).map(lambda text: f"/{text}")
AUTHORITIES = st.sampled_from(["a.example", "A.Example", "a.example:80", "a.example:443", "[::1]"])
SCHEMES = st.sampled_from(["http", "https", "HTTP", "HttpS"])
AFTER = st.sampled_from(["", "?", "?q=%2f", "#f", "?q#f", "?a?b"])


@given(SCHEMES, AUTHORITIES, PATHS, AFTER)
def test_comparing_twice_is_comparing_once(scheme: str, host: str, path: str, after: str) -> None:
    url = normalized_htu(f"{scheme}://{host}{path}{after}")
    assert url is not None
    assert normalized_htu(url) == url
    parts = urlsplit(url)
    assert (parts.query, parts.fragment) == ("", "")
    assert parts.port != {"http": 80, "https": 443}[parts.scheme]


@given(SCHEMES, AUTHORITIES, PATHS, AUTHORITIES, PATHS, AFTER)
def test_urls_compare_equal_only_if_a_second_reader_finds_them_equal(
    scheme: str, host: str, path: str, other_host: str, other_path: str, after: str
) -> None:
    """A-102: by the standard library's parser, with paths compared but for the case of escapes."""
    one, other = f"{scheme}://{host}{path}", f"{scheme.lower()}://{other_host}{other_path}{after}"
    assume("?" not in path)
    equal = normalized_htu(one) == normalized_htu(other)
    assert equal == (read_again(one) == read_again(other))


def read_again(url: str) -> tuple[str, str | None, int, str]:
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}[parts.scheme]
    path = re.sub("%[0-9a-fA-F]{2}", lambda found: found[0].lower(), parts.path or "/")
    return parts.scheme, parts.hostname, parts.port or default, path
