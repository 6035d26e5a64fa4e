"""How are addresses blocked? By a packet filter, before their connections are established.

A classic Berkeley Packet Filter on the listening socket drops all packets from these addresses. It
needs no privilege and costs this process no time. Open connections are not affected: the filter
applies to the socket that it was attached to, and to those accepted from it later, which have other
peers. Linux only.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Hashable, Sequence
from ipaddress import IPv4Network, IPv6Network

from podstead.app.process.connections.kernel import attach_filter, detach_filter

MAX_BLOCKED = 128
"""How many addresses are blocked at once: each takes up to five instructions, and the kernel
limits the memory for a socket's options."""

_INSTRUCTION = struct.Struct("=HBBI")

_LOAD_BYTE, _LOAD_WORD, _AND, _JUMP, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x20, 0x54, 0x05, 0x15, 0x06
_NETWORK_HEADER = 0xFFF00000
"""SKF_NET_OFF: offsets from here are into the IP header."""
_IPV4_SOURCE, _IPV6_SOURCE = 12, 8
_VERSION_MASK, _VERSION_6 = 0xF0, 0x60
_DROP, _TAKE = 0, 0xFFFFFFFF

Network = IPv4Network | IPv6Network


class PacketFilter:
    """The filter on the listening socket of one worker. Safe to use from any thread."""

    def __init__(self, descriptor: int) -> None:
        """The descriptor must stay open until :meth:`detach` has been called."""
        self._descriptor = descriptor
        # The supervisor's thread sets filters; the one that stops the worker takes them off.
        self._lock = threading.Lock()
        self._is_ours = sys.platform == "linux"
        self._is_filtered = True  # perhaps, by a worker that had the same socket before

    def block(self, networks: Sequence[Hashable]) -> None:
        """Drop packets from these addresses (from the last of them if there are too many), and from
        no others."""
        blocked = [each for each in networks if isinstance(each, (IPv4Network, IPv6Network))]
        with self._lock:
            if self._is_ours and (blocked or self._is_filtered):
                self._is_filtered = self._filter(blocked[-MAX_BLOCKED:])

    def detach(self) -> None:
        """Block no address any more: the socket is about to be closed or used by another worker."""
        self.block(())
        with self._lock:
            self._is_ours = False

    def _filter(self, networks: Sequence[Network]) -> bool:
        if networks and attach_filter(self._descriptor, program(networks)):
            return True
        # Also if the new filter was refused: the old one would keep blocking its addresses.
        detach_filter(self._descriptor)
        return False


def program(networks: Sequence[Network]) -> bytes:
    """A filter that drops packets from these networks: IPv4 addresses, and /64 of IPv6.

    Jumps in this machine are relative and go forward only, so the program is put together from its
    end: first what follows, then the jump over it.
    """
    by_version: dict[int, list[bytes]] = {4: [], 6: []}
    for network in networks:
        by_version[network.version].append(_drop(network))
    ipv6 = b"".join(by_version[6]) + _instruction(_RETURN, _TAKE)
    ipv4 = _instruction(_LOAD_WORD, _NETWORK_HEADER + _IPV4_SOURCE) + b"".join(by_version[4])
    return b"".join(
        (
            _instruction(_LOAD_BYTE, _NETWORK_HEADER),
            _instruction(_AND, _VERSION_MASK),
            # A comparison skips at most 255 instructions, and the part for IPv4 may be longer. So
            # it skips only the unconditional jump behind it, which reaches any distance.
            _instruction(_JUMP_IF_EQUAL, _VERSION_6, otherwise=1),
            _instruction(_JUMP, len(ipv4) // _INSTRUCTION.size + 1),
            ipv4,
            _instruction(_RETURN, _TAKE),
            ipv6,
        )
    )


def _drop(network: Network) -> bytes:
    source = network.network_address.packed
    if isinstance(network, IPv4Network):
        return _instruction(
            _JUMP_IF_EQUAL, int.from_bytes(source, "big"), otherwise=1
        ) + _instruction(_RETURN, _DROP)
    # The machine compares 32 bits at a time, so a /64 takes two loads. IPv4 needs none here: its
    # address is loaded once, before all comparisons.
    first, second = (int.from_bytes(source[at : at + 4], "big") for at in (0, 4))
    return b"".join(
        (
            _instruction(_LOAD_WORD, _NETWORK_HEADER + _IPV6_SOURCE),
            _instruction(_JUMP_IF_EQUAL, first, otherwise=3),
            _instruction(_LOAD_WORD, _NETWORK_HEADER + _IPV6_SOURCE + 4),
            _instruction(_JUMP_IF_EQUAL, second, otherwise=1),
            _instruction(_RETURN, _DROP),
        )
    )


def _instruction(code: int, operand: int, *, otherwise: int = 0) -> bytes:
    """One instruction; a comparison that fails skips ``otherwise`` of those that follow."""
    return _INSTRUCTION.pack(code, 0, otherwise, operand)
