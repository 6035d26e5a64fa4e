"""The display form of a Nostr key: ``npub1…``, in Bech32 (NIP-19, BIP-173)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_PREFIX: Final = "npub"
_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM_GROUPS: Final = 6
_GROUP_BITS: Final = 5


def npub(public_key: str) -> str:
    """The display form of a public key, which is given as 64 hexadecimal digits."""
    groups = _groups(bytes.fromhex(public_key))
    groups += _checksum(groups)
    return f"{_PREFIX}1{''.join(_ALPHABET[group] for group in groups)}"


def _groups(content: bytes) -> list[int]:
    """The bits in groups of five, the last group padded with zeros."""
    count = -(-len(content) * 8 // _GROUP_BITS)
    number = int.from_bytes(content, "big") << count * _GROUP_BITS - len(content) * 8
    return [number >> _GROUP_BITS * place & 31 for place in reversed(range(count))]


def _checksum(groups: list[int]) -> list[int]:
    high = [ord(letter) >> 5 for letter in _PREFIX]
    low = [ord(letter) & 31 for letter in _PREFIX]
    remainder = _polymod([*high, 0, *low, *groups, *[0] * _CHECKSUM_GROUPS]) ^ 1
    return [remainder >> _GROUP_BITS * place & 31 for place in reversed(range(_CHECKSUM_GROUPS))]


def _polymod(groups: Iterable[int]) -> int:
    """The remainder of the division by the generator polynomial of BIP-173."""
    remainder = 1
    for group in groups:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << _GROUP_BITS ^ group
        for place, generator in enumerate(_GENERATORS):
            if top >> place & 1:
                remainder ^= generator
    return remainder
