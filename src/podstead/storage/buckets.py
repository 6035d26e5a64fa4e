"""Token buckets.

The state of a bucket is one number, the time at which it will be full again; taking a token moves
that time by the time that one token takes to refill. A full bucket therefore needs no row, and an
idle one becomes full without an update. Times are integers in microseconds, so that rates such as
one per minute are exact.
"""

from dataclasses import dataclass

_US_PER_MS = 1_000
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class BucketRate:
    """A bucket for ``capacity`` tokens that refills with ``per_s`` tokens per second; both above
    0."""

    capacity: int
    per_s: float

    def __post_init__(self) -> None:
        if self.capacity < 1 or not self.per_s > 0:
            raise ValueError("A bucket needs a capacity of at least 1 and a positive rate")


@dataclass(frozen=True, slots=True)
class Taken:
    """A token was taken; the bucket will be full again at ``full_at_us`` (Unix microseconds)."""

    full_at_us: int


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The bucket is empty; the next token is available in ``seconds``, rounded up."""

    seconds: int


def one_us(per_s: float) -> int:
    """The microseconds in which one token refills."""
    return round(_US_PER_S / per_s)


def take_one(full_at_us: int | None, rate: BucketRate, *, now_ms: int) -> Taken | RetryAfter:
    """Take one token; ``full_at_us`` is ``None`` for a full bucket.

    If the clock was set back, a bucket can seem to need longer than an empty one; it is then
    treated as empty.
    """
    now_us = now_ms * _US_PER_MS
    refill_us = one_us(rate.per_s)
    empty_us = rate.capacity * refill_us
    behind_us = 0 if full_at_us is None else min(max(full_at_us - now_us, 0), empty_us)
    excess_us = behind_us + refill_us - empty_us
    if excess_us > 0:
        return RetryAfter(-(-excess_us // _US_PER_S))
    return Taken(now_us + behind_us + refill_us)
