"""Both verifications of signatures, by the vectors of BIP-340 and by each other."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.nostr import bip340, schnorr
from tests.support.nostr import ORDER, NostrKey

VECTORS = Path(__file__).resolve().parents[2] / "vectors/nostr/bip340.csv"
Verify = Callable[[bytes, bytes, bytes], bool]
BOTH = pytest.mark.parametrize("verify", [bip340.verify, schnorr.verify], ids=["python", "chosen"])


@dataclass(frozen=True)
class Vector:
    """One row of the table."""

    index: str
    key: bytes
    message: bytes
    signature: bytes
    valid: bool


def vectors() -> list[Vector]:
    with VECTORS.open(encoding="utf-8", newline="") as file:
        return [
            Vector(
                row["index"],
                bytes.fromhex(row["public key"]),
                bytes.fromhex(row["message"]),
                bytes.fromhex(row["signature"]),
                row["verification result"] == "TRUE",
            )
            for row in csv.DictReader(file)
        ]


def test_all_vectors_are_there() -> None:
    assert [vector.index for vector in vectors()] == [str(number) for number in range(19)]
    assert sum(vector.valid for vector in vectors()) == 9


@BOTH
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.index)
def test_a_vector_of_bip_340_is_judged_as_it_says(verify: Verify, vector: Vector) -> None:
    assert verify(vector.key, vector.message, vector.signature) is vector.valid


@BOTH
@pytest.mark.parametrize("short", [0, 1, 31, 33, 63, 65])
def test_keys_and_signatures_of_another_length_are_refused(verify: Verify, short: int) -> None:
    """The native library would read beyond what is too short."""
    key, message = NostrKey.of(7), bytes(32)
    signature = key.sign(message)
    public = bytes.fromhex(key.public)
    assert verify(public, message, signature)
    assert not verify((public * 3)[:short], message, signature)
    assert not verify(public, message, (signature * 2)[:short])


@given(st.integers(1, ORDER - 1), st.binary(min_size=32, max_size=32), st.integers(0, 767))
@settings(max_examples=40)
def test_what_is_signed_is_verified_and_not_with_one_bit_changed(
    number: int, message: bytes, bit: int
) -> None:
    key = NostrKey.of(number)
    said = [bytes.fromhex(key.public), message, key.sign(message)]
    whole = bytearray(b"".join(said))
    whole[bit // 8 % len(whole)] ^= 1 << bit % 8
    changed = bytes(whole[:32]), bytes(whole[32:64]), bytes(whole[64:])
    for verify in (bip340.verify, schnorr.verify):
        assert verify(*said)
        assert not verify(*changed)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
@settings(max_examples=40)
def test_both_verifications_agree_on_anything(key: bytes, signature: bytes) -> None:
    assert bip340.verify(key, key, signature) == schnorr.verify(key, key, signature)


def test_the_sum_of_a_point_and_itself_is_its_double() -> None:
    """A case of the addition that no signature made by honest means comes to."""
    generator = bip340._GENERATOR
    affine = []
    for x, y, z in (bip340._add(generator, generator), bip340._double(generator)):
        inverse = pow(z, -1, bip340._FIELD)
        affine.append((x * inverse**2 % bip340._FIELD, y * inverse**3 % bip340._FIELD))
    assert affine[0] == affine[1]
