"""What is a valid event: one thing wrong in a valid one is refused (NIP-01, A-140, A-141)."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.features.nostr import schnorr
from podstead.features.nostr.events import (
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    MAX_TEXT_CHARACTERS,
    InvalidEvent,
    read_event,
)
from podstead.features.nostr.keys import npub
from tests.support.nostr import ORDER, Change, Json, NostrKey, id_of, packed, set_to, with_tag

KEY = NostrKey.of(11)
NOW_S = 1_800_000_000
URL = "https://pod.example/alice/a?b=c"


def event(*changes: Change) -> Json:
    return KEY.event("GET", URL, NOW_S, *changes)


def refused(text: str, phrase: str) -> None:
    with pytest.raises(InvalidEvent, match=phrase):
        read_event(text)


def test_an_event_says_who_signed_what_and_when() -> None:
    made = event(with_tag("extra", "1"), set_to("content", "ä\n\x01\u2028\U0001f511"))
    read = read_event(packed(made))
    assert (read.public_key, read.created_s, read.kind) == (KEY.public, NOW_S, 27235)
    assert read.event_id == made["id"]
    assert read.signature == bytes.fromhex(made["sig"])
    assert read.tagged("u") == [["u", URL]]
    assert read.tagged("none") == []


def test_a_known_event_has_the_id_that_its_maker_gave_it() -> None:
    """An event that nostr-tools 2.25.2 made of a secret of 9, with characters that are escaped."""
    example = {
        "kind": 27235,
        "created_at": 1800000000,
        "tags": [
            ["u", URL],
            ["method", "GET"],
            ["note", 'ä\n\t"\\\x01\u2028\U0001f511/'],
        ],
        "content": "ß\x7f<é>\b",
        "pubkey": "acd484e2f0c7f65309ad178a9f559abde09796974c57e714c35f110dfc27ccbe",
        "id": "0592e0eb0646aee033f2f2b1d592552d8e6ddb52ce94525604245be4d779e106",
        "sig": "0c750e83d178b29d8c88be77c0af5c56178bdd23c009c0721dc928d0aa50b54e"
        "549ca056ed45c5513c23d31d53aee73eb340199e39c54f3a11aaa6fa8cfa0a69",
    }
    read = read_event(packed(example))
    assert read.event_id == example["id"]
    key, message = bytes.fromhex(read.public_key), bytes.fromhex(read.event_id)
    assert schnorr.verify(key, message, read.signature)


@pytest.mark.parametrize("unpadded", [False, True])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("filler", ["", "x", "xx"])
def test_either_alphabet_and_no_padding_will_do(encode: type, unpadded: bool, filler: str) -> None:
    """A-140."""
    raw = json.dumps(event(set_to("content", f"ÿÿÿ>>>???{filler}")), ensure_ascii=False).encode()
    text = encode(raw).decode()
    read_event(text.rstrip("=") if unpadded else text)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text + "=",
        lambda text: text[:9] + "=" + text[9:],
        lambda text: text[:9] + "\n" + text[9:],
        lambda text: text[:9] + "*" + text[9:],
        lambda text: text[:-1],
        lambda text: "-_" + text[2:] + "+/",
        lambda _: "",
        lambda _: "====",
        lambda _: "A",
    ],
)
def test_base64_is_read_strictly(spoil: Callable[[str], str]) -> None:
    text = packed(event())
    while text.endswith("="):
        text = packed(event(set_to("content", "x" * len(text))))
    read_event(text)
    refused(spoil(text), "base64")


def test_unused_bits_are_refused() -> None:
    """Else one event would have several spellings."""
    raw = json.dumps(event()).encode()
    while len(raw) % 3 != 1:
        raw += b" "
    text = base64.b64encode(raw).decode()
    read_event(text)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(text[-3])
    assert last % 16 == 0
    spoilt = text[:-3] + chr(ord(text[-3]) + 1) + "=="
    assert base64.b64decode(spoilt, validate=True) == raw
    refused(spoilt, "base64")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"a"', b"1", b"null", b"\xff{}", b'{"a":NaN}', b'{"a":1}{}', b"[" * 9999],
)
def test_anything_but_a_json_object_in_utf_8_is_refused(content: bytes) -> None:
    refused(base64.b64encode(content).decode(), "base64 of a JSON object")


def test_a_member_named_twice_is_refused() -> None:
    text = json.dumps(event())
    twice = text[:-1] + f', "pubkey": "{KEY.public}"}}'
    refused(base64.b64encode(twice.encode()).decode(), "base64 of a JSON object")


def test_half_a_character_is_refused() -> None:
    refused(packed(event(set_to("content", "\ud800"))), "base64 of a JSON object")


def test_members_that_are_not_known_are_left_alone() -> None:
    """A-141."""
    read_event(packed({**event(), "ots": {"a": [1, None]}, "seen": True}))


@pytest.mark.parametrize("name", ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"])
def test_no_member_may_be_missing(name: str) -> None:
    """The id included."""
    made = event()
    del made[name]
    refused(packed(made), "missing or has the wrong type")


UPPER, SHORT, LONG = KEY.public.upper(), KEY.public[:-1], KEY.public + "0"
WRONG: dict[str, Sequence[object]] = {
    "pubkey": (UPPER, SHORT, LONG, 1, None, "g" * 64, " " * 64),
    "created_at": (str(NOW_S), float(NOW_S), True, None, [NOW_S]),
    "kind": ("27235", 27235.0, True, None),
    "content": (None, 1, []),
    "tags": (None, {}, "u", [1], ["u"], [["u", 1]], [["u", None]], [[[]]]),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_no_member_may_be_of_another_type(name: str, value: object) -> None:
    """Whoever signed it."""
    refused(packed(event(set_to(name, value))), "missing or has the wrong type")


@pytest.mark.parametrize("value", [None, 1, "", "0" * 127, "0" * 129, "g" * 128, " " * 128])
def test_a_signature_is_128_hexadecimal_digits(value: object) -> None:
    refused(packed({**event(), "sig": value}), "missing or has the wrong type")
    made = event()
    assert read_event(packed({**made, "sig": made["sig"].upper()})).signature


@pytest.mark.parametrize("change", [str.upper, lambda _: None, lambda text: text[:-1], lambda _: 1])
def test_an_id_of_another_form_is_refused(change: Callable[[str], object]) -> None:
    made = event()
    assert made["id"] != made["id"].upper()
    refused(packed({**made, "id": change(made["id"])}), "missing or has the wrong type")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("created_at", NOW_S + 1),
        ("kind", 1),
        ("content", "x"),
        ("tags", [["u", URL], ["method", "PUT"]]),
        ("pubkey", NostrKey.of(12).public),
        ("id", "0" * 64),
    ],
)
def test_the_id_is_that_of_what_the_event_says(name: str, value: object) -> None:
    refused(packed({**event(), name: value}), "id of the event does not match")


def test_tags_are_bounded_in_number_and_length() -> None:
    """A-141."""
    more = [with_tag("t", "")] * (MAX_TAGS - 2)
    read_event(packed(event(*more)))
    refused(packed(event(*more, with_tag("t", ""))), "missing or has the wrong type")
    read_event(packed(event(with_tag("t", "x" * (MAX_TAG_CHARACTERS - 1)))))
    refused(packed(event(with_tag("t", "x" * MAX_TAG_CHARACTERS))), "missing or has the wrong type")


def test_the_text_is_bounded() -> None:
    read_event(packed(event(set_to("content", "x" * 9000))))
    refused(packed(event(set_to("content", "x" * MAX_TEXT_CHARACTERS))), "too long")


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_has_the_id_that_another_serialiser_gives_it(content: str) -> None:
    """NIP-01."""
    made = event(set_to("content", content), with_tag(content))
    assert read_event(packed(made)).event_id == id_of(made).hex()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]), json_values
)
def test_any_other_json_value_is_refused_and_nothing_else_happens(name: str, value: object) -> None:
    """No error but the one that says so."""
    right = event()
    made = {**right, name: value}
    try:
        read_event(packed(made))
    except InvalidEvent:
        return
    assert made == right or name == "sig"


@given(
    st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode())
)
def test_any_text_is_refused_and_nothing_else_happens(text: str) -> None:
    with pytest.raises(InvalidEvent):
        read_event(text)


# --- Both verifications of signatures, by the vectors of BIP-340 and by each other -------------


VECTORS = Path(__file__).resolve().parents[2] / "vectors/nostr/bip340.csv"
Verify = Callable[[bytes, bytes, bytes], bool]
BOTH = pytest.mark.parametrize(
    "verify", [schnorr.verify_in_python, schnorr.verify], ids=["python", "chosen"]
)


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
    for verify in (schnorr.verify_in_python, schnorr.verify):
        assert verify(*said)
        assert not verify(*changed)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
@settings(max_examples=40)
def test_both_verifications_agree_on_anything(key: bytes, signature: bytes) -> None:
    assert schnorr.verify_in_python(key, key, signature) == schnorr.verify(key, key, signature)


def test_the_sum_of_a_point_and_itself_is_its_double() -> None:
    """A case of the addition that no signature made by honest means comes to."""
    generator = schnorr._GENERATOR
    affine = []
    for x, y, z in (schnorr._add(generator, generator), schnorr._double(generator)):
        inverse = pow(z, -1, schnorr._FIELD)
        affine.append((x * inverse**2 % schnorr._FIELD, y * inverse**3 % schnorr._FIELD))
    assert affine[0] == affine[1]


# --- Keys as people see them, against the examples of NIP-19 and of BIP-173 --------------------


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
