"""Decides whether this server may fetch from a URL and connect to an address."""

import re
from dataclasses import dataclass, replace
from enum import Enum
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)
from typing import NewType

import idna
from yarl import URL

from podstead.outbound.errors import OwnOrigin, Refusal, Refused

# Decides whether this server may connect to an IP address.
#
# The forbidden networks are an explicit list, because ``ipaddress.is_global`` differs
# between Python versions and is true for NAT64 forms of loopback, multicast and site-local
# addresses. An IPv6 address that stands for an IPv4 address is treated as the IPv4 address that
# packets would reach. Pure: names are resolved elsewhere.

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class AddressScope(Enum):
    """Which part of the network an origin may lead to."""

    PUBLIC = "public"
    """The public Internet only: the rule for every origin that is not an exception."""
    LOOPBACK = "loopback"
    """This machine only: for loopback names and addresses in a loopback deployment (A-190)."""
    PRIVATE = "private"
    """Public and private networks: for origins that the operator has listed (A-190)."""


def _networks(*texts: str) -> tuple[IPNetwork, ...]:
    return tuple(ip_network(text) for text in texts)


FORBIDDEN_NETWORKS = _networks(
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # carrier-grade NAT
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local, cloud metadata
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # IETF protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relay anycast
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarking
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, limited broadcast
    "::/96",  # unspecified, loopback, IPv4-compatible
    "64:ff9b:1::/48",  # local-use NAT64
    "100::/64",  # discard
    "2001::/23",  # IETF protocol assignments, Teredo
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
    "5f00::/16",  # segment routing
    "fc00::/7",  # unique local
    "fe80::/10",  # link-local
    "fec0::/10",  # site-local
    "ff00::/8",  # multicast
)
"""A-188. Mapped and well-known NAT64 addresses are treated as their IPv4 address instead."""

PRIVATE_NETWORKS = _networks(
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
)
"""What an operator can permit by listing an origin; link-local (cloud metadata) stays forbidden."""

LOOPBACK_NETWORKS = _networks("127.0.0.0/8", "::1/128")

# IPv6 forms that reach an IPv4 host: the kernel translates the first (RFC 4291 section 2.5.5.2), a
# NAT64 the second (RFC 6052 section 2.1). In networks with DNS64 every IPv4-only host is reached by
# the second form, so it cannot be forbidden as a whole. Tunnels (6to4, Teredo) and the deprecated
# IPv4-compatible form have no such use and are forbidden entirely.
_STANDS_FOR_IPV4 = _networks("::ffff:0:0/96", "64:ff9b::/96")


def is_loopback(address: IPAddress) -> bool:
    """Whether the address is a loopback address in its own notation, not an embedded one."""
    return _in_any(address, LOOPBACK_NETWORKS)


def may_be_reached(address: IPAddress, reach: AddressScope) -> bool:
    """Whether a connection may be opened to the address (A-188)."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    reached = _reached(address)
    if reach is AddressScope.LOOPBACK:
        return is_loopback(address)
    if not _in_any(reached, FORBIDDEN_NETWORKS):
        return True
    # Not embedded addresses: 64:ff9b::7f00:1 is the loopback address of the NAT64, not ours.
    return reach is AddressScope.PRIVATE and _in_any(address, PRIVATE_NETWORKS)


def _reached(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address stands for; any other address itself."""
    if _in_any(address, _STANDS_FOR_IPV4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _in_any(address: IPAddress, networks: tuple[IPNetwork, ...]) -> bool:
    return any(address in network for network in networks)


# Decides by its text whether this server may fetch from a URL.
#
# A URL is accepted only if all parsers agree about it. What a WHATWG parser would repair
# (tabs, backslashes, missing slashes, percent-encoded hosts) or interpret in its own way (decimal,
# octal, hexadecimal and short IPv4 notations) is refused. An accepted URL is parsed once, into a
# :class:`Target`, and its text is not parsed again. Pure: names are not resolved here, so an
# accepted name may still resolve to a forbidden address.

Origin = NewType("Origin", str)
"""An ASCII origin as WHATWG serializes it: lower case, without the default port of the scheme."""

MAX_URL_CHARS = 2048

# Characters that are not allowed in URLs (RFC 3986 section 2) or that parsers repair differently.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f\"<>\\^`{|}]")
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]+)"
    r"(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?",
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOWEST_UNPRIVILEGED_PORT = 1024
# WHATWG Fetch, "bad port", from 1024 on; below 1024, only 443 is permitted.
_BAD_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)


@dataclass(frozen=True, slots=True)
class Target:
    """An accepted URL and its parts. ``url`` is ASCII and has no fragment."""

    url: str
    scheme: str
    host: str
    """Lower-case ASCII name, or an IP literal without brackets."""
    port: int
    literal: IPAddress | None
    """The host, if it is an IP literal."""
    reach: AddressScope

    @property
    def origin(self) -> Origin:
        """The origin of the URL."""
        return _origin(self.scheme, self.host, self.port)


@dataclass(frozen=True, slots=True)
class UrlRules:
    """The origins of this server, and the exceptions of this deployment.

    Nothing is fetched from ``own_origins``, with either scheme (A-190). ``private_origins`` may be
    in private networks, with any port and with http. ``loopback_allowed`` permits the same for
    loopback names and addresses (A-190).
    """

    own_origins: frozenset[Origin] = frozenset()
    private_origins: frozenset[Origin] = frozenset()
    loopback_allowed: bool = False

    def admit(self, url: str) -> Target:
        """Parse the URL if it may be fetched. Raises Refused with the rule that forbids it."""
        target = _parse(url)
        if any(_same_listener(_parse(origin), target) for origin in self.own_origins):
            raise OwnOrigin(Refusal.OWN_ORIGIN)
        if target.origin in self.private_origins:
            return replace(target, reach=AddressScope.PRIVATE)
        if self.loopback_allowed and is_loopback_host(target.host):
            return replace(target, reach=AddressScope.LOOPBACK)
        _check_public(target)
        return target


def parse_origin(text: str) -> Origin:
    """Parse an origin, which may end in a slash.

    Raises Refused (malformed, scheme, credentials or host).
    """
    target = _parse(text)
    if target.url != f"{target.origin}/" or "#" in text:
        raise Refused(Refusal.MALFORMED)
    return target.origin


def origin_of_url(url: str) -> Origin:
    """The origin of a URL, whatever follows it. Raises as :func:`parse_origin`."""
    scheme, _, rest = url.partition("://")
    return parse_origin(f"{scheme}://{rest.partition('/')[0].partition('?')[0]}")


def resolve_reference(base: str, reference: str) -> str:
    """Resolve a Location against the URL of its response (RFC 3986 section 5.2).

    The result has not been checked yet. Raises Refused (malformed).
    """
    if _UNSAFE.search(reference):  # the library would repair some of it
        raise Refused(Refusal.MALFORMED)
    try:
        return str(URL(base, encoded=True).join(URL(reference, encoded=True)))
    except ValueError as error:
        raise Refused(Refusal.MALFORMED) from error


def is_loopback_host(host: str) -> bool:
    """Whether the host is ``localhost``, a name below it, or a loopback IP literal (A-190)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    literal = _literal(host)
    return literal is not None and is_loopback(literal)


def _parse(url: str) -> Target:
    """The parts of a URL, as one of the public Internet."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARS else None
    if match is None or _UNSAFE.search(url):
        raise Refused(Refusal.MALFORMED)
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise Refused(Refusal.SCHEME)
    if "@" in match["authority"]:
        raise Refused(Refusal.CREDENTIALS)
    host, port = _host_and_port(match["authority"], _DEFAULT_PORTS[scheme])
    rest = _encode_non_ascii((match["path"] or "/") + (match["query"] or ""))
    url = _origin(scheme, host, port) + rest
    return Target(url, scheme, host, port, _literal(host), AddressScope.PUBLIC)


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise Refused(Refusal.MALFORMED)
    port = int(match["port"] or default_port)
    if not 0 < port <= 0xFFFF:
        raise Refused(Refusal.PORT)
    return _canonical_host(match["host"]), port


def _canonical_host(text: str) -> str:
    if text.startswith("["):
        return _canonical_ipv6(text[1:-1])
    host = text.lower() if text.isascii() else _idna(text)
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Refused(Refusal.HOST)
    # WHATWG URL, "ends in a number checker": such a host is an IPv4 address in some notation.
    # Resolvers accept decimal, octal, hexadecimal and short ones; only the canonical one is valid.
    if _NUMERIC_LABEL.fullmatch(labels[-1]) and _literal(host) is None:
        raise Refused(Refusal.HOST)
    return host


def _canonical_ipv6(text: str) -> str:
    if "%" in text:  # a zone identifier names an interface of this machine
        raise Refused(Refusal.HOST)
    try:
        return str(IPv6Address(text))
    except AddressValueError as error:
        raise Refused(Refusal.HOST) from error


def _idna(text: str) -> str:
    """The ASCII form according to UTS 46, as in browsers, but without the fallback to IDNA 2003,
    which names other hosts ("ß" becomes "ss")."""
    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except idna.IDNAError as error:
        raise Refused(Refusal.HOST) from error


def _literal(host: str) -> IPAddress | None:
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None


def _encode_non_ascii(text: str) -> str:
    try:
        return _NON_ASCII.sub(
            lambda run: "".join(f"%{byte:02X}" for byte in run[0].encode("utf-8")), text
        )
    except UnicodeEncodeError as error:  # a lone surrogate
        raise Refused(Refusal.MALFORMED) from error


def _check_public(parts: Target) -> None:
    if parts.scheme != "https":
        raise Refused(Refusal.SCHEME)
    if is_loopback_host(parts.host):
        raise Refused(Refusal.HOST)
    if parts.port != _DEFAULT_PORTS["https"] and (
        parts.port < _LOWEST_UNPRIVILEGED_PORT or parts.port in _BAD_PORTS
    ):
        raise Refused(Refusal.PORT)


def _same_listener(own: Target, other: Target) -> bool:
    """Whether both name the same listening port of this server, whatever the scheme."""
    both_loopback = is_loopback_host(own.host) and is_loopback_host(other.host)
    return own.port == other.port and (own.host == other.host or both_loopback)


def _origin(scheme: str, host: str, port: int) -> Origin:
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port == _DEFAULT_PORTS[scheme] else f":{port}"
    return Origin(f"{scheme}://{shown_host}{shown_port}")
