"""The keys that sign tokens, where the operator gives them (A-32)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from podstead.config import Settings, StartRefused, read_settings
from podstead.config.sources import OptionValue

KEY = bytes(range(7, 39)).hex()
OTHER_KEY = bytes(range(70, 102)).hex()


def read(
    options: dict[str, OptionValue] | None = None, environment: dict[str, str] | None = None
) -> Settings:
    return read_settings(options or {}, environment or {}, folder=Path("/srv/pods"))


def refusal(
    options: dict[str, OptionValue] | None = None, environment: dict[str, str] | None = None
) -> str:
    with pytest.raises(StartRefused) as caught:
        read(options, environment)
    return str(caught.value)


@pytest.mark.parametrize(
    "encode",
    [
        bytes.hex,
        lambda octets: base64.b64encode(octets).decode(),
        lambda octets: base64.urlsafe_b64encode(octets).decode().rstrip("="),
    ],
)
def test_a_token_secret_is_hexadecimal_or_base64(encode: Callable[[bytes], str]) -> None:
    octets = bytes(range(224, 256))
    settings = read(environment={"PODSTEAD_TOKEN_SECRET": encode(octets)})
    assert settings.token_keys == (octets,)


@pytest.mark.parametrize(
    "text", [bytes(range(31)).hex(), "ab" * 32, "password" * 8, "not base64!", "00" * 32]
)
def test_a_secret_of_less_than_32_random_bytes_is_refused_and_not_printed(text: str) -> None:
    """A-32"""
    message = refusal(environment={"PODSTEAD_TOKEN_SECRET": text})
    assert message.startswith("PODSTEAD_TOKEN_SECRET is not valid: it must be at least 32 random")
    assert text not in message


def test_two_keys_serve_a_rotation_the_current_one_first() -> None:
    """A-32"""
    settings = read(
        environment={"PODSTEAD_TOKEN_SECRET": KEY, "PODSTEAD_TOKEN_SECRET_PREVIOUS": OTHER_KEY}
    )
    assert settings.token_keys == (bytes.fromhex(KEY), bytes.fromhex(OTHER_KEY))


def test_without_a_secret_there_are_no_keys_of_the_operator() -> None:
    assert read().token_keys == ()


@pytest.mark.parametrize(
    ("content", "keys"),
    [(f"{KEY}\n", (KEY,)), (f"{KEY}\n{OTHER_KEY}\n", (KEY, OTHER_KEY))],
)
def test_a_file_holds_the_key_and_maybe_the_previous_one(
    tmp_path: Path, content: str, keys: tuple[str, ...]
) -> None:
    path = tmp_path / "secret"
    path.write_text(content)
    settings = read({"token_secret_file": str(path)})
    assert settings.token_keys == tuple(map(bytes.fromhex, keys))


@pytest.mark.parametrize("content", ["", "short", f"{KEY}\n{KEY}\n{KEY}\n", f"{KEY}\nshort\n", "é"])
def test_a_secret_file_that_holds_anything_else_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "secret"
    path.write_text(content, encoding="utf-8")
    message = refusal({"token_secret_file": str(path)})
    assert str(path) in message
    assert KEY not in message


def test_secrets_from_two_places_or_half_of_a_rotation_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(KEY)
    assert "both" in refusal({"token_secret_file": str(path)}, {"PODSTEAD_TOKEN_SECRET": KEY})
    assert "without" in refusal(environment={"PODSTEAD_TOKEN_SECRET_PREVIOUS": KEY})


def test_secrets_are_not_in_the_settings_as_printed() -> None:
    settings = read(environment={"PODSTEAD_TOKEN_SECRET": KEY})
    assert KEY not in repr(settings)
    assert repr(bytes.fromhex(KEY)) not in repr(settings)
