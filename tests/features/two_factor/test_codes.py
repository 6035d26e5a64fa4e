"""Codes of authenticator apps, by the values of RFC 6238, and the setting that demands them."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from podstead.config import StartRefused, read_settings
from podstead.features.two_factor import TwoFactorSettings
from podstead.features.two_factor.account_pages import PyotpPasswords
from podstead.features.two_factor.codes import matching_step, recovery_hash

SECRET = base64.b32encode(b"12345678901234567890").decode()
# RFC 6238 appendix B, SHA-1: the last six of the eight digits.
VALUES = {
    59: "287082",
    1111111109: "081804",
    1111111111: "050471",
    1234567890: "005924",
    2000000000: "279037",
    20000000000: "353130",
}
ARABIC_INDIC = "".join(chr(0x0660 + int(each)) for each in "287082")


@pytest.mark.parametrize(("at_s", "code"), VALUES.items())
def test_codes_are_those_of_the_standard(at_s: int, code: str) -> None:
    passwords = PyotpPasswords()
    assert passwords.code(SECRET, at_s // 30) == code
    assert matching_step(passwords, SECRET, code, now_s=at_s, after=0) == at_s // 30
    assert matching_step(passwords, SECRET, f"{code[:3]} {code[3:]}", now_s=at_s + 30, after=0)
    assert matching_step(passwords, SECRET, code, now_s=at_s + 60, after=0) is None
    assert matching_step(passwords, SECRET, code, now_s=at_s, after=at_s // 30) is None


@pytest.mark.parametrize(
    "typed", ["", "28708", "2870820", "28708x", ARABIC_INDIC, "-28708", "2.7082"]
)
def test_what_is_no_code_is_none(typed: str) -> None:
    assert matching_step(PyotpPasswords(), SECRET, typed, now_s=59, after=0) is None


def test_an_app_reads_the_secret_the_server_and_the_name() -> None:
    address = PyotpPasswords().address(SECRET, name="alice", issuer="pods.example:3000")
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    assert parts.path == "/pods.example%3A3000:alice"
    query = parse_qs(parts.query)
    assert query["secret"] == [SECRET]
    assert query["issuer"] == ["pods.example:3000"]


def test_the_picture_is_an_svg_without_scripts_or_styles() -> None:
    picture = PyotpPasswords().picture(f"otpauth://totp/a:b?secret={SECRET}&issuer=a")
    tags = {each.tag.rpartition("}")[2] for each in ET.fromstring(picture).iter()}
    assert tags <= {"svg", "path", "g"}
    assert "style=" not in picture


@pytest.mark.parametrize(
    "typed", ["abcd-efgh-ijkl-mno2", " ABCD EFGH IJKL MNO2", "abcdefghijklmn02"]
)
def test_a_recovery_code_may_be_typed_in_many_ways(typed: str) -> None:
    assert recovery_hash("x", typed) == recovery_hash("x", "abcd-efgh-ijkl-mno2")
    assert recovery_hash("y", typed) != recovery_hash("x", "abcd-efgh-ijkl-mno2")


def test_a_second_factor_is_demanded_of_accounts(tmp_path: Path) -> None:
    file = tmp_path / "podstead.toml"
    file.write_text("require-two-factor = true\n")
    for options in ({"require_two_factor": True}, {"config": str(file)}):
        with pytest.raises(StartRefused, match="Add --idp"):
            read_settings(options, {}, folder=tmp_path)
        read = read_settings({"idp": True, **options}, {}, folder=tmp_path)
        assert read.of(TwoFactorSettings).require_two_factor
