"""Known answers of the specifications: keys, thumbprints, signatures and proofs."""

from __future__ import annotations

import pytest

from podstead.jose.proof import ProofContext, check_proof
from podstead.jose.tokens import (
    CompactToken,
    InvalidJose,
    PublicKeyCache,
    import_public_key,
    read_token,
    verify_signature,
)
from tests.support.signing import with_other_signature

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
    proof = check_proof(TOKEN_PROOF, request, now_s=TOKEN_PROOF_S, keys=PublicKeyCache())
    assert proof.thumbprint == THUMBPRINT


def test_the_proof_of_a_resource_request_names_its_token() -> None:
    """RFC 9449 section 7.1: with ``ath``, whether it is asked for or not."""
    url = "https://resource.example.org/protectedresource"
    for required in (False, True):
        proof = check_proof(
            RESOURCE_PROOF,
            ProofContext("GET", url, RESOURCE_TOKEN),
            now_s=TOKEN_PROOF_S,
            keys=PublicKeyCache(),
            require_ath=required,
        )
        assert proof.thumbprint == THUMBPRINT
    with pytest.raises(InvalidJose, match="another access token"):
        check_proof(
            RESOURCE_PROOF,
            ProofContext("GET", url, RESOURCE_TOKEN.swapcase()),
            now_s=TOKEN_PROOF_S,
            keys=PublicKeyCache(),
        )
