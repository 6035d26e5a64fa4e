"""When a failing host is left alone (A-191)."""

from __future__ import annotations

import pytest

from podstead.outbound.circuit import CircuitBreaker
from podstead.outbound.errors import CircuitOpen

HOST = "peer.example"


def broken(failures: int, now_ms: int = 0) -> CircuitBreaker:
    """A breaker that saw the host fail this often."""
    circuit = CircuitBreaker(max_failures=5, pause_s=60)
    for _ in range(failures):
        circuit.check(HOST, now_ms)
        circuit.failed(HOST, now_ms)
    return circuit


def test_four_failures_leave_the_circuit_closed_and_five_open_it() -> None:
    """A-191, at the limit and one before it."""
    broken(4).check(HOST, 0)
    with pytest.raises(CircuitOpen):
        broken(5).check(HOST, 0)


def test_another_host_is_not_affected() -> None:
    """A-191, per host."""
    broken(5).check("other.example", 0)


def test_a_success_in_between_starts_the_count_anew() -> None:
    """A-191: failures in a row."""
    circuit = broken(4)
    circuit.succeeded(HOST)
    for _ in range(4):
        circuit.failed(HOST, 0)
    circuit.check(HOST, 0)


def test_the_circuit_stays_open_for_exactly_the_pause() -> None:
    """A-191, 60 s."""
    with pytest.raises(CircuitOpen):
        broken(5).check(HOST, 59_999)
    broken(5).check(HOST, 60_000)


def test_after_the_pause_a_single_fetch_tries() -> None:
    """A-191: a host that is still down costs one attempt per pause."""
    circuit = broken(5)
    circuit.check(HOST, 60_000)
    with pytest.raises(CircuitOpen):
        circuit.check(HOST, 60_001)


def test_a_successful_trial_closes_the_circuit() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(HOST, 60_000)
    circuit.succeeded(HOST)
    circuit.check(HOST, 60_001)
    circuit.failed(HOST, 60_001)
    circuit.check(HOST, 60_001)


def test_a_failed_trial_opens_it_again() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(HOST, 60_000)
    circuit.failed(HOST, 61_000)
    with pytest.raises(CircuitOpen):
        circuit.check(HOST, 120_999)
    circuit.check(HOST, 121_000)
