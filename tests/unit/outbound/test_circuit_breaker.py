"""When a failing origin gets no more requests (A-191)."""

from __future__ import annotations

import pytest

from podstead.outbound.errors import CircuitOpen
from podstead.outbound.foreign_documents import Circuit, CircuitBreaker, Purpose
from podstead.outbound.urls import Origin

ORIGIN = Origin("https://peer.example")
CIRCUIT = Circuit(Purpose.WEB_ID, ORIGIN)


def broken(failures: int, now_ms: int = 0) -> CircuitBreaker:
    """A breaker that saw the origin fail this often."""
    circuit = CircuitBreaker(max_failures=5, pause_s=60)
    for _ in range(failures):
        circuit.check(CIRCUIT, now_ms)
        circuit.failed(CIRCUIT, now_ms)
    return circuit


def test_four_failures_leave_the_circuit_closed_and_five_open_it() -> None:
    """A-191, at the limit and one before it."""
    broken(4).check(CIRCUIT, 0)
    with pytest.raises(CircuitOpen):
        broken(5).check(CIRCUIT, 0)


@pytest.mark.parametrize(
    "other",
    [
        Circuit(Purpose.WEB_ID, Origin("https://other.example")),
        Circuit(Purpose.WEB_ID, Origin("https://peer.example:8443")),
        Circuit(Purpose.WEB_ID, Origin("http://peer.example")),
        *(Circuit(each, ORIGIN) for each in Purpose if each is not Purpose.WEB_ID),
    ],
    ids=str,
)
def test_another_origin_or_purpose_is_not_affected(other: Circuit) -> None:
    """A-191, per origin and purpose: a dead port of a host says nothing about its other ports."""
    broken(5).check(other, 0)


def test_an_open_circuit_says_how_long_it_stays_open() -> None:
    circuit = broken(5)
    for now_ms, retry_after_s in ((0, 60), (1, 60), (59_999, 1)):
        with pytest.raises(CircuitOpen) as caught:
            circuit.check(CIRCUIT, now_ms)
        assert caught.value.retry_after_s == retry_after_s


def test_a_success_in_between_resets_the_count() -> None:
    """A-191: failures in a row."""
    circuit = broken(4)
    circuit.succeeded(CIRCUIT)
    for _ in range(4):
        circuit.failed(CIRCUIT, 0)
    circuit.check(CIRCUIT, 0)


def test_the_circuit_stays_open_for_exactly_the_pause() -> None:
    """A-191, 60 s."""
    with pytest.raises(CircuitOpen):
        broken(5).check(CIRCUIT, 59_999)
    broken(5).check(CIRCUIT, 60_000)


def test_after_the_pause_a_single_fetch_tries() -> None:
    """A-191: an origin that is still down costs one attempt per pause."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    with pytest.raises(CircuitOpen):
        circuit.check(CIRCUIT, 60_001)


def test_a_successful_trial_closes_the_circuit() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    circuit.succeeded(CIRCUIT)
    circuit.check(CIRCUIT, 60_001)
    circuit.failed(CIRCUIT, 60_001)
    circuit.check(CIRCUIT, 60_001)


def test_a_failed_trial_opens_it_again() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    circuit.failed(CIRCUIT, 61_000)
    with pytest.raises(CircuitOpen):
        circuit.check(CIRCUIT, 120_999)
    circuit.check(CIRCUIT, 121_000)
