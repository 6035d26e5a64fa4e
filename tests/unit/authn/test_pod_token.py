"""Signed tokens: a known answer made without our code, and the order in which one is judged."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest

from podstead.authn import credentials
from podstead.authn.credentials import InvalidToken, SigningKey, make_token, verify_token

KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
WEB_ID = "http://localhost:3000/alice/#me"
NOW_S = 1_800_000_000
KNOWN = (
    "eyJ2IjoxLCJqdGkiOiIwMCIsIndlYklkIjoiaHR0cDovL2xvY2FsaG9zdDozMDAwL2FsaWNlLyNtZSIsImlhdCI6MTgwMDAw"
    "MDAwMCwiZXhwIjoxODAwMDAwMDYwfQ"
)
"""``printf '{"v":1,…}' | base64`` in the URL alphabet, without padding."""


def made(key: SigningKey = KEY, expires_s: int | None = NOW_S + 60) -> str:
    return make_token(key, token_id="00", web_id=WEB_ID, issued_s=NOW_S, expires_s=expires_s)


def test_a_token_is_the_base64_of_its_claims_and_their_hmac() -> None:
    """A-30: by the standard library alone."""
    digest = hmac.new(b"k" * 32, KNOWN.encode(), hashlib.sha256).digest()
    signature = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert made() == f"{KNOWN}.{signature}"
    claims = json.loads(base64.urlsafe_b64decode(KNOWN + "=="))
    assert claims == {"v": 1, "jti": "00", "webId": WEB_ID, "iat": NOW_S, "exp": NOW_S + 60}


def test_a_verified_token_says_what_was_signed() -> None:
    verified = verify_token(made(), keys=[KEY], now_s=NOW_S)
    assert (verified.token_id, verified.web_id) == ("00", WEB_ID)
    assert (verified.issued_s, verified.expires_s) == (NOW_S, NOW_S + 60)
    assert verify_token(made(expires_s=None), keys=[KEY], now_s=2**40).expires_s is None


@pytest.mark.parametrize(("now_s", "valid"), [(NOW_S + 59, True), (NOW_S + 60, False)])
def test_a_token_ends_on_its_second(now_s: int, valid: bool) -> None:
    """A-33."""
    if valid:
        assert verify_token(made(), keys=[KEY], now_s=now_s).token_id == "00"
    else:
        with pytest.raises(InvalidToken, match="Access token expired"):
            verify_token(made(), keys=[KEY], now_s=now_s)


def test_the_previous_key_is_valid_and_no_other() -> None:
    """A-32."""
    assert verify_token(made(OTHER), keys=[KEY, OTHER], now_s=NOW_S).token_id == "00"
    for keys in ([KEY], []):
        with pytest.raises(InvalidToken, match="Invalid token"):
            verify_token(made(OTHER), keys=keys, now_s=NOW_S)


def test_what_is_not_signed_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A-33: the signature comes before the JSON, and an expiry is told to its holder only."""

    class Refusing:
        def decode(self, _: bytes) -> None:
            raise AssertionError("parsed")

    monkeypatch.setattr(credentials, "_decoder", Refusing())
    for token in (made(OTHER), made()[:-1] + "A", made(OTHER, expires_s=1)):
        with pytest.raises(InvalidToken, match="Invalid token"):
            verify_token(token, keys=[KEY], now_s=NOW_S)
    with pytest.raises(AssertionError, match="parsed"):
        verify_token(made(), keys=[KEY], now_s=NOW_S)


@pytest.mark.parametrize("token", ["", ".", "a", "a.b", "..", "é.é", "x" * 5000, f"a.{'b' * 43}.c"])
def test_anything_else_is_invalid(token: str) -> None:
    with pytest.raises(InvalidToken, match="Invalid token"):
        verify_token(token, keys=[KEY], now_s=NOW_S)
