"""The domain and the pages of passkeys are those that browsers accept."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.config import Settings, StartRefused, read_settings
from podstead.config.sources import OptionValue
from podstead.features.passkeys import PasskeySettings


def read(options: dict[str, OptionValue]) -> Settings:
    return read_settings(options, {}, folder=Path("/srv/pods"))


def refusal(options: dict[str, OptionValue]) -> str:
    with pytest.raises(StartRefused) as caught:
        read(options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "rp_id"),
    [
        ("https://id.pods.example", "id.pods.example"),
        ("https://id.pods.example:8443", "Pods.Example"),
        ("http://localhost:3000", "localhost"),
        ("http://id.pods.localhost:3000", "pods.localhost"),
    ],
)
def test_passkeys_are_of_the_base_urls_host_or_the_end_of_it(base_url: str, rp_id: str) -> None:
    """A-115"""
    settings = read({"base_url": base_url, "passkey_rp_id": rp_id})
    assert settings.of(PasskeySettings).passkey_rp_id == rp_id.lower()


@pytest.mark.parametrize(
    ("base_url", "rp_id", "said"),
    [
        ("https://id.pods.example", "example", "at least two labels"),
        ("https://id.pods.example", "ods.example", "must be id.pods.example"),
        ("https://id.pods.example", "x.id.pods.example", "must be id.pods.example"),
        ("https://id.pods.example", "elsewhere.example", "must be id.pods.example"),
        ("http://id.localhost:3000", "localhost", "at least two labels"),
        ("http://pods.example", "pods.example", "browsers do not support passkeys"),
        ("https://192.0.2.1", "pods.example", "browsers do not support passkeys"),
        ("https://pods.example", "pods.example:443", "--passkey-rp-id is"),
        ("https://pods.example", "https://pods.example", "--passkey-rp-id is"),
        ("https://pods.example", "192.0.2.1", "--passkey-rp-id is"),
        ("https://pods.example", "pods.example.", "--passkey-rp-id is"),
    ],
)
def test_passkeys_are_of_no_other_domain(base_url: str, rp_id: str, said: str) -> None:
    """A-115: which the browser would refuse, at the first person who tries."""
    assert said in refusal({"base_url": base_url, "passkey_rp_id": rp_id})


def test_the_domain_of_passkeys_is_judged_when_the_base_url_follows_from_other_settings() -> None:
    """A-115"""
    assert "must be localhost" in refusal({"passkey_rp_id": "pods.example"})


@pytest.mark.parametrize(
    ("base_url", "rp_id", "origin"),
    [
        ("https://pods.example", None, "https://pods.example"),
        ("https://pods.example", None, "https://login.pods.example:8443"),
        ("https://id.pods.example", "pods.example", "https://www.pods.example"),
        ("http://localhost:3000", None, "http://localhost:4000"),
        ("http://localhost:3000", None, "http://app.localhost:4000"),
    ],
)
def test_pages_of_the_domain_may_use_its_passkeys(
    base_url: str, rp_id: str | None, origin: str
) -> None:
    """A-115"""
    settings = read({"base_url": base_url, "passkey_rp_id": rp_id, "passkey_origins": (origin,)})
    assert settings.of(PasskeySettings).passkey_origins == (origin,)


@pytest.mark.parametrize(
    ("base_url", "origin", "said"),
    [
        ("https://pods.example", "http://pods.example", "must use https"),
        ("https://pods.example", "https://192.0.2.1", "must use https"),
        ("https://pods.example", "https://elsewhere.example", "does not belong to pods.example"),
        ("https://id.pods.example", "https://pods.example", "does not belong to id.pods.example"),
        ("https://pods.example", "http://localhost:3000", "does not belong to pods.example"),
        ("https://pods.example", "https://pods.example/path", "--passkey-origin is"),
        ("http://127.0.0.1:3000", "http://localhost:3000", "browsers do not support passkeys"),
    ],
)
def test_no_other_pages_may_use_passkeys(base_url: str, origin: str, said: str) -> None:
    """A-115"""
    assert said in refusal({"base_url": base_url, "passkey_origins": (origin,)})


def test_passkeys_are_of_the_provider() -> None:
    options: dict[str, OptionValue] = {
        "base_url": "https://pods.example",
        "idp": True,
        "idp_base_url": "https://login.example",
        "passkey_rp_id": "pods.example",
    }
    assert "must be login.example" in refusal(options)
