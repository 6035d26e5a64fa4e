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
from podstead.jose.tokens import (
    SIGNATURE_ALGORITHMS,
    CompactToken,
    InvalidJose,
    import_public_key,
    read_token,
    verify_signature,
)
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
    return check_proof(text, request, now_s=NOW_S, require_ath=ath)


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


# --- Known answers of the specifications: keys, thumbprints, signatures and proofs -------------


RFC_7515_PAYLOAD = (
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
)
RFC_7515_RSA = {
    "kty": "RSA",
    "n": (
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4"
        "d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re"
        "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX"
        "FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    ),
    "e": "AQAB",
}
RFC_7515_A_2 = (
    f"eyJhbGciOiJSUzI1NiJ9.{RFC_7515_PAYLOAD}."
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5"
    "jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb"
    "1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QO"
    "YEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
)
RFC_7515_EC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}
RFC_7515_A_3 = (
    f"eyJhbGciOiJFUzI1NiJ9.{RFC_7515_PAYLOAD}."
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
)
RFC_7515_P_521 = {
    "kty": "EC",
    "crv": "P-521",
    "x": "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
    "y": "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
}
RFC_7515_A_4 = (
    "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA."
    "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8G"
    "aSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn"
)
RFC_8037_KEY = {
    "kty": "OKP",
    "crv": "Ed25519",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}
RFC_8037_A_4 = (
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
)
RFC_7638_KEY = {
    "kty": "RSA",
    "n": (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECP"
        "ebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY"
        "368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0f"
        "M4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    ),
    "e": "AQAB",
    "alg": "RS256",
    "kid": "2011-04-29",
}

# RFC 9449 section 4.1 (token request) and section 7.1 (protected resource).
TOKEN_PROOF = (
    "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNo"
    "UklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERW"
    "clUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh"
    "0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8"
    "v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
)
TOKEN_PROOF_S = 1562262616
RESOURCE_PROOF = (
    "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNo"
    "UklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERW"
    "clUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR"
    "1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCw"
    "iYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-E"
    "y71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
)
RESOURCE_TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
THUMBPRINT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

SIGNED = {
    "RFC 7515 A.2, RS256": (RFC_7515_RSA, RFC_7515_A_2, "RS256"),
    "RFC 7515 A.3, ES256": (RFC_7515_EC, RFC_7515_A_3, "ES256"),
    "RFC 7515 A.4, ES512": (RFC_7515_P_521, RFC_7515_A_4, "ES512"),
    "RFC 8037 A.4, Ed25519": (RFC_8037_KEY, RFC_8037_A_4, "EdDSA"),
}


@pytest.mark.parametrize(("jwk", "text", "algorithm"), SIGNED.values(), ids=SIGNED)
def test_the_signatures_of_the_specifications_verify(
    jwk: dict[str, object], text: str, algorithm: str
) -> None:
    key = import_public_key(jwk)
    verify_signature(CompactToken(text, {}, {}, algorithm), key)
    with pytest.raises(InvalidJose):
        verify_signature(CompactToken(with_other_signature(text), {}, {}, algorithm), key)


def test_a_token_is_read_as_the_specification_says() -> None:
    """RFC 7515 A.3."""
    token = read_token(RFC_7515_A_3, max_characters=4096)
    assert (token.algorithm, token.key_id, token.header) == ("ES256", None, {"alg": "ES256"})
    expected = {"iss": "joe", "exp": 1300819380, "http://example.com/is_root": True}
    assert token.claims == expected


def test_thumbprints_are_those_of_the_specifications() -> None:
    """RFC 7638 section 3.1, RFC 8037 A.3 and RFC 9449 section 6.1: required members only."""
    rsa = import_public_key(RFC_7638_KEY)
    assert rsa.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    ed25519 = import_public_key({**RFC_8037_KEY, "use": "sig", "alg": "EdDSA"})
    assert ed25519.thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_the_proof_of_a_token_request_holds() -> None:
    """RFC 9449 section 4.1."""
    request = ProofContext("POST", "https://server.example.com/token")
    proof = check_proof(TOKEN_PROOF, request, now_s=TOKEN_PROOF_S)
    assert proof.thumbprint == THUMBPRINT


def test_the_proof_of_a_resource_request_names_its_token() -> None:
    """RFC 9449 section 7.1: with ``ath``, whether it is asked for or not."""
    url = "https://resource.example.org/protectedresource"
    for required in (False, True):
        proof = check_proof(
            RESOURCE_PROOF,
            ProofContext("GET", url, RESOURCE_TOKEN),
            now_s=TOKEN_PROOF_S,
            require_ath=required,
        )
        assert proof.thumbprint == THUMBPRINT
    with pytest.raises(InvalidJose, match="another access token"):
        check_proof(
            RESOURCE_PROOF,
            ProofContext("GET", url, RESOURCE_TOKEN.swapcase()),
            now_s=TOKEN_PROOF_S,
        )
