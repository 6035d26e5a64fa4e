"""The nonces that DPoP proofs must contain (RFC 9449, section 8)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from podstead.authn.resource_tokens import SLOT_S, DpopNonces
from tests.support.clock import FakeClock
from tests.support.signing import Signer

SECRET = b"s" * 32
NONCE_KEY = Signer.new("ES256")


def nonces(clock: FakeClock, secret: bytes = SECRET) -> DpopNonces:
    return DpopNonces(secret=secret, clock=clock)


def proof(nonce: object) -> bytes:
    return NONCE_KEY.proof({"nonce": nonce}).encode()


@given(begin_s=st.integers(0, 2**33), later_s=st.integers(0, 3 * SLOT_S))
def test_a_nonce_is_taken_for_the_rest_of_its_slot_and_all_of_the_next(
    begin_s: int, later_s: int
) -> None:
    clock = FakeClock(begin_s * 1000)
    given_out = nonces(clock).current()
    clock.advance(later_s)
    slots_later = (begin_s + later_s) // SLOT_S - begin_s // SLOT_S
    assert nonces(clock).accepts(given_out) is (slots_later < 2)


def test_a_nonce_of_a_time_to_come_is_not_taken() -> None:
    clock = FakeClock()
    clock.advance(SLOT_S)
    later = nonces(clock).current()
    clock.advance(-SLOT_S)
    assert not nonces(clock).accepts(later)


def test_nonces_are_valid_with_the_same_secret_only() -> None:
    clock = FakeClock()
    given_out = nonces(clock).current()
    assert nonces(clock).accepts(given_out)
    assert not nonces(clock, b"t" * 32).accepts(given_out)


def test_other_texts_are_not_taken() -> None:
    clock = FakeClock()
    given_out = nonces(clock).current()
    for other in (None, "", "é", given_out[:-1], given_out + "A", given_out.swapcase()):
        assert not nonces(clock).accepts(other)


def test_a_nonce_is_made_of_the_characters_that_the_field_takes() -> None:
    """RFC 9449 section 8.1: NQCHAR."""
    assert re.fullmatch(r"[\x21\x23-\x5B\x5D-\x7E]+", nonces(FakeClock()).current())


def test_clients_that_send_proofs_without_a_nonce_get_one() -> None:
    """RFC 9449 section 8.2."""
    clock = FakeClock()
    known = nonces(clock)
    now = known.current()
    assert known.to_give([]) is None
    assert known.to_give([proof(now)]) is None
    bad: list[object] = [None, "", "other", 1, [now]]
    for nonce in bad:
        assert known.to_give([proof(nonce)]) == now
    assert known.to_give([b"no proof"]) == now
    assert known.to_give([b"\xe9.\xff.x"]) == now
    clock.advance(SLOT_S)
    following = known.current()
    assert following != now
    assert known.to_give([proof(now)]) == following
