"""How often the credentials are checked while a body arrives, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from podstead.core.errors import NotAuthenticated
from podstead.web.body import RecheckedBody
from tests.support.clock import FakeClock

PIECES = [b"a", b"b", b"c", b"d", b"e"]


@dataclass
class SlowBody:
    """Pieces, each of which comes so long after the one before."""

    clock: FakeClock
    pause_s: float
    announced: bool = True
    size_bytes: int | None = None

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        assert len(PIECES) < limit_bytes
        for piece in PIECES:
            self.clock.advance(self.pause_s)
            yield piece

    async def read(self, *, limit_bytes: int) -> bytes:
        return b"".join([piece async for piece in self.chunks(limit_bytes=limit_bytes)])


@dataclass
class Sender:
    """Who is refused from the given look on."""

    refused_at: int | None = None
    looks: int = field(default=0)

    async def check_again(self) -> None:
        self.looks += 1
        if self.looks == self.refused_at:
            raise NotAuthenticated("Invalid token", invalid=True)


def late(sender: Sender, *, pause_s: float) -> RecheckedBody:
    clock = FakeClock()
    return RecheckedBody(SlowBody(clock, pause_s), check_again=sender.check_again, clock=clock)


@pytest.mark.parametrize(
    ("pause_s", "looks"), [(0, 0), (0.1, 0), (0.6, 2), (1, 5), (100, 5), (-1, 5)]
)
async def test_the_sender_is_looked_at_once_a_second(pause_s: float, looks: int) -> None:
    """Also where the clock is set back, for it tells nothing then."""
    sender = Sender()
    body = late(sender, pause_s=pause_s)
    assert [piece async for piece in body.chunks(limit_bytes=9)] == PIECES
    assert sender.looks == looks


async def test_nothing_that_comes_after_a_revocation_is_handed_on() -> None:
    """Who takes it may act on it before it has ended, as git does with a push (A-33)."""
    pieces = late(Sender(refused_at=3), pause_s=1).chunks(limit_bytes=9)
    assert [await anext(pieces), await anext(pieces)] == PIECES[:2]
    with pytest.raises(NotAuthenticated):
        await anext(pieces)


async def test_a_body_that_is_read_whole_is_looked_at_when_it_is_there() -> None:
    sender = Sender()
    assert await late(sender, pause_s=1).read(limit_bytes=9) == b"abcde"
    assert sender.looks == 1
    with pytest.raises(NotAuthenticated):
        await late(Sender(refused_at=1), pause_s=1).read(limit_bytes=9)
