"""When may the next one be taken from a token bucket?

A bucket is known by one number, the time at which it will be full again: taking one puts that time
off by what one takes to refill. A full bucket therefore needs no row, and an idle one becomes full
by itself. Times are integers in microseconds, so that rates such as one in a minute stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

_US_PER_MS = 1_000
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class BucketRate:
    """A bucket that holds ``capacity`` and refills ``per_s`` a second; both above 0."""

    capacity: int
    per_s: float

    def __post_init__(self) -> None:
        if self.capacity < 1 or not self.per_s > 0:
            raise ValueError("A bucket must hold at least one and refill")


@dataclass(frozen=True, slots=True)
class Taken:
    """One was there; the bucket will be full again at ``full_at_us`` (Unix microseconds)."""

    full_at_us: int


@dataclass(frozen=True, slots=True)
class Wait:
    """None was there; one will be in ``seconds``, rounded up and at least 1."""

    seconds: int


def take_one(full_at_us: int | None, rate: BucketRate, *, now_ms: int) -> Taken | Wait:
    """Take one from the bucket; ``full_at_us`` is ``None`` for one never taken from.

    A bucket that seems to need longer than empty ones do, since the clock was set back, counts as
    empty.
    """
    now_us = now_ms * _US_PER_MS
    one_us = round(_US_PER_S / rate.per_s)
    empty_us = rate.capacity * one_us
    behind_us = 0 if full_at_us is None else min(max(full_at_us - now_us, 0), empty_us)
    excess_us = behind_us + one_us - empty_us
    if excess_us > 0:
        return Wait(-(-excess_us // _US_PER_S))
    return Taken(now_us + behind_us + one_us)
