"""Limits how often an address may do what is costly or helps an attacker, for all workers together.

The key of a limit is the address that the request comes from, for IPv6 its /64 (A-180, A-181). A
limit of 0 means no limit.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network
from typing import Final

from podstead.core.caches import memoize_short_keys
from podstead.core.clock import Clock
from podstead.core.errors import RateLimited
from podstead.storage.protocol import RateCounters
from podstead.web.authority import read_address

WRONG_INVITATIONS_PER_HOUR: Final = 20
"""How many codes of invitations one address may guess wrong in an hour."""


@memoize_short_keys
def address_key(address: str) -> str:
    """The part of an address that one customer is assigned: an IPv4 address, or an IPv6 /64."""
    parsed = read_address(address)
    if parsed is None:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


@memoize_short_keys
def network_key(address: str) -> str:
    """The network of an address: an IPv4 /24, or an IPv6 /48, the most that one site is assigned
    (RFC 6177). It is the key of limits on what is stored for strangers, since further addresses
    within a network cost nothing.
    """
    parsed = read_address(address)
    if parsed is None:
        return address
    bits = 48 if isinstance(parsed, IPv6Address) else 24
    return str(ip_network((parsed, bits), strict=False))


def is_loopback_client(address: str) -> bool:
    """Whether a peer is on this machine."""
    parsed = read_address(address)
    return parsed is not None and parsed.is_loopback


@dataclass(frozen=True, slots=True)
class InvalidCredentialLimit:
    """Counts refused credentials. Above ``per_minute`` the response is 429 (A-181)."""

    counters: RateCounters
    clock: Clock
    per_minute: int

    async def count(self, address: str) -> None:
        """Count one. Raises RateLimited."""
        await take(
            self.counters,
            f"credential:{address_key(address)}",
            capacity=self.per_minute,
            period_s=60,
            clock=self.clock,
        )


@dataclass(frozen=True, slots=True)
class PodCreationLimit:
    """Counts created pods per address and hour. There is no limit for loopback clients of a server
    with a loopback base URL (A-181)."""

    counters: RateCounters
    clock: Clock
    per_hour: int
    exempt_loopback: bool

    async def count(self, address: str) -> None:
        """Count one. Raises RateLimited."""
        if self.exempt_loopback and is_loopback_client(address):
            return
        await take(
            self.counters,
            f"pod:{address_key(address)}",
            capacity=self.per_hour,
            period_s=3600,
            clock=self.clock,
        )


@dataclass(frozen=True, slots=True)
class InvitationGuessLimit:
    """Counts codes of invitations that an address guessed wrong."""

    counters: RateCounters
    clock: Clock

    async def check(self, address: str) -> None:
        """Refuse an address that has guessed too often. Raises RateLimited."""
        retry_after_s = await self.counters.wait_s(
            _invitation_key(address),
            capacity=WRONG_INVITATIONS_PER_HOUR,
            per_s=WRONG_INVITATIONS_PER_HOUR / 3600,
            now_ms=self.clock.now_ms(),
        )
        if retry_after_s is not None:
            raise RateLimited(retry_after_s=retry_after_s)

    async def count(self, address: str) -> None:
        """Count one that was wrong. Raises RateLimited, and then nothing may be said about the
        code: many guesses sent at once get no more answers than others."""
        await take(
            self.counters,
            _invitation_key(address),
            capacity=WRONG_INVITATIONS_PER_HOUR,
            period_s=3600,
            clock=self.clock,
        )


def _invitation_key(address: str) -> str:
    return f"invitation:{address_key(address)}"


async def take(
    counters: RateCounters, key: str, *, capacity: int, period_s: int, clock: Clock
) -> None:
    """Take one of ``capacity`` in ``period_s`` seconds. Raises RateLimited if none is left."""
    if capacity == 0:
        return
    retry_after_s = await counters.take(
        key, capacity=capacity, per_s=capacity / period_s, now_ms=clock.now_ms()
    )
    if retry_after_s is not None:
        raise RateLimited(retry_after_s=retry_after_s)
