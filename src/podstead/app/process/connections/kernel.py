"""Examines and ends the connections of this process, and blocks addresses, by calls to the kernel.

The HTTP server does not give its sockets away, but they are descriptors of this process, and the
kernel names the peer of each. The functions of the C library are called without releasing the
interpreter's lock, because with a busy event loop each release costs the calling thread up to five
milliseconds. None of them blocks.

Addresses are blocked by a classic Berkeley Packet Filter on the listening socket, which drops all
their packets before a connection is established. It needs no privilege and costs this process no
time. Open connections are not affected: the filter applies to the socket that it was attached to,
and to those accepted from it later, which have other peers.

Linux only: elsewhere the structures differ.
"""

import ctypes
import os
import resource
import socket
import struct
import sys
import threading
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path

from podstead.app.process.connections.policy import Sent

_LIBRARY = ctypes.PyDLL(None)
_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_LIBRARY.getpeername.argtypes = [_INT, _POINTER, _POINTER]
_LIBRARY.getsockname.argtypes = [_INT, _POINTER, _POINTER]
_LIBRARY.getsockopt.argtypes = [_INT, _INT, _INT, _POINTER, _POINTER]
_LIBRARY.setsockopt.argtypes = [_INT, _INT, _INT, _POINTER, ctypes.c_uint32]
_LIBRARY.shutdown.argtypes = [_INT, _INT]

_STATUS = Path("/proc/self/status")
_MAX_DESCRIPTORS = 65_536
"""How many descriptors are tried where the system does not say how many there are."""

_NAME_BYTES = 28
"""The size of the name of an IPv6 socket; that of an IPv4 one is 16."""
_IPV4_NAME_BYTES = 16

# struct tcp_info of linux/tcp.h: tcpi_unacked; tcpi_bytes_acked and tcpi_notsent_bytes. Older
# kernels fill in the beginning only.
_TCP_INFO_BYTES = 192
_UNACKNOWLEDGED = struct.Struct("=24xI")
_ACKNOWLEDGED_AND_UNSENT = struct.Struct("=120xQ16xI")

# SO_LINGER with a time of zero: closing discards unsent data and resets the connection.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_INSTRUCTION_BYTES = 8


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection."""

    address: IPv4Address | IPv6Address
    port: int

    @property
    def client(self) -> tuple[str, str]:
        """The address as the HTTP server passes it to the application."""
        mapped = self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None
        host = str(self.address) if mapped is None else f"::ffff:{mapped}"
        return host, str(self.port)


class Descriptors:
    """The descriptors of this process, as far as they are connected sockets. For one thread."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(_TCP_INFO_BYTES)
        self._length = ctypes.c_uint32()
        self._length_at = ctypes.addressof(self._length)
        # A number reserved for ``end``, so that connections can be ended also when no descriptor is
        # left: that is when it matters most.
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        self._own = os.dup(self._nothing)

    def connected(self) -> Iterator[tuple[int, bytes]]:
        """Each with the name of its peer, see :func:`read_name`."""
        # Fails for files, listening sockets and unused numbers, which are thereby left out.
        buffer, length, length_at = self._buffer, self._length, self._length_at
        getpeername = _LIBRARY.getpeername
        for descriptor in range(_table_size()):
            length.value = _NAME_BYTES
            if getpeername(descriptor, buffer, length_at) == 0:
                yield descriptor, buffer.raw[: length.value]

    def local_port(self, descriptor: int) -> int | None:
        """The port of this end of a connection; ``None`` for one that is not of the internet."""
        self._length.value = _NAME_BYTES
        if _LIBRARY.getsockname(descriptor, self._buffer, self._length_at) != 0:
            return None
        name = read_name(self._buffer.raw[: self._length.value])
        return None if name is None else name.port

    def sent(self, descriptor: int) -> Sent | None:
        """What the client has received; ``None`` if the kernel does not say."""
        self._length.value = _TCP_INFO_BYTES
        asked = (descriptor, socket.IPPROTO_TCP, socket.TCP_INFO)
        if _LIBRARY.getsockopt(*asked, self._buffer, self._length_at) != 0:
            return None
        if self._length.value < _ACKNOWLEDGED_AND_UNSENT.size:
            return None
        (unacknowledged,) = _UNACKNOWLEDGED.unpack_from(self._buffer)
        acknowledged_bytes, unsent = _ACKNOWLEDGED_AND_UNSENT.unpack_from(self._buffer)
        return Sent(unacknowledged > 0 or unsent > 0, acknowledged_bytes)

    def end(self, descriptor: int, peer: bytes, *, port: int, abort: bool) -> bool:
        """End the connection that a descriptor stood for a moment ago, if it still does.

        The HTTP server sees the end and closes its descriptor. With ``abort`` the system then drops
        what the client has not taken, instead of keeping it for minutes.
        """
        own = self._own
        # The HTTP server may close the descriptor at any moment, and a new connection may get the
        # number. A duplicate stays what it is, so the check below holds until the shutdown.
        if _LIBRARY.dup3(descriptor, own, os.O_CLOEXEC) < 0:
            return False
        try:
            self._length.value = _NAME_BYTES
            if _LIBRARY.getpeername(own, self._buffer, self._length_at) != 0:
                return False
            if self._buffer.raw[: self._length.value] != peer or self.local_port(own) != port:
                return False
            if abort:
                option = (own, socket.SOL_SOCKET, socket.SO_LINGER)
                _LIBRARY.setsockopt(*option, _RESET_ON_CLOSE, len(_RESET_ON_CLOSE))
            return bool(_LIBRARY.shutdown(own, socket.SHUT_RDWR) == 0)
        finally:
            # Lets go of the connection, which would otherwise stay open after the server closed it.
            _LIBRARY.dup3(self._nothing, own, os.O_CLOEXEC)


def attach_filter(descriptor: int, code: bytes) -> bool:
    """Attach a classic Berkeley Packet Filter to a socket, in place of any other; False if the
    kernel refuses it."""
    # Referenced until the call returns; the kernel then has a copy.
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(code) // _INSTRUCTION_BYTES, ctypes.addressof(kept))
    option = (descriptor, socket.SOL_SOCKET, _SO_ATTACH_FILTER)
    return bool(_LIBRARY.setsockopt(*option, program, len(program)) == 0)


def detach_filter(descriptor: int) -> None:
    """Take the filter off a socket."""
    option = (descriptor, socket.SOL_SOCKET, _SO_DETACH_FILTER)
    _LIBRARY.setsockopt(*option, bytes(4), 4)


def read_name(name: bytes) -> Peer | None:
    """The peer that a socket's name denotes; ``None`` if it is not an internet address."""
    if len(name) < _IPV4_NAME_BYTES:
        return None
    family = int.from_bytes(name[:2], sys.byteorder)
    port = int.from_bytes(name[2:4], "big")
    if family == socket.AF_INET:
        return Peer(ip_address(name[4:8]), port)
    if family == socket.AF_INET6 and len(name) == _NAME_BYTES:
        return Peer(ip_address(name[8:24]), port)
    return None


def _table_size() -> int:
    """More than the highest descriptor."""
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return min(soft, _MAX_DESCRIPTORS)
    return int(status.partition("FDSize:")[2].partition("\n")[0])


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
