"""Keys as people see them, against the examples of NIP-19 and of BIP-173."""

from __future__ import annotations

import pytest

from podstead.nostr.npub import npub


@pytest.mark.parametrize(
    ("public_key", "shown"),
    [
        (
            "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d",
            "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6",
        ),
        (
            "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e",
            "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
        ),
    ],
)
def test_the_examples_of_the_specification(public_key: str, shown: str) -> None:
    assert npub(public_key) == shown


@pytest.mark.parametrize("public_key", ["00" * 32, "ff" * 32, "01" + "00" * 31])
def test_leading_and_trailing_bits_are_kept(public_key: str) -> None:
    alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    data = npub(public_key).removeprefix("npub1")[:-6]
    bits = "".join(f"{alphabet.index(letter):05b}" for letter in data)
    assert len(bits) == 260
    assert int(bits[:256], 2) == int(public_key, 16)
    assert bits[256:] == "0000"
