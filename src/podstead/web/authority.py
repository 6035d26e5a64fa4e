"""Determines the host that a request is for and the address that it is from (A-11, A-12).

The base URL is set in the configuration, so a Host header is either right or wrong. Forwarding
headers are read only if the peer is a trusted proxy.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from podstead.core.errors import BadRequest, Misdirected
from podstead.web.asgi import HeaderFields

Network = IPv4Network | IPv6Network
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class FormerHost(Misdirected):
    """The host is that of a former base URL; ``base_url`` is the present one."""

    def __init__(self, base_url: str) -> None:
        super().__init__(f"This server is at {base_url} now")
        self.base_url = base_url


@dataclass(frozen=True, slots=True)
class Authorities:
    """The Host values of this server, and the peers that may forward requests of others.

    ``former_hosts`` are those of former base URLs, in place of which there is ``base_url``.
    """

    hosts: frozenset[str]
    trusted_proxies: tuple[Network, ...] = ()
    former_hosts: frozenset[str] = frozenset()
    base_url: str = ""

    def check_host(self, fields: HeaderFields, *, peer: str) -> str:
        """The requested host, in lower case. Raises BadRequest without one, FormerHost for one that
        was of this server, Misdirected for one that is not."""
        host = fields.get(b"host")
        if self.trusts(peer):
            host = _last_value(fields.get(b"x-forwarded-host")) or host
        if not host:
            raise BadRequest("The Host header is missing")
        if host in self.hosts or (host := host.lower()) in self.hosts:
            return host
        if host in self.former_hosts:
            raise FormerHost(self.base_url)
        raise Misdirected(
            "This server does not serve the host in the Host header. Use its base URL, or ask its "
            "operator to add the host with --host-alias"
        )

    def client_address(self, fields: HeaderFields, *, peer: str) -> str:
        """The address that the request comes from: the peer, or the address that a trusted proxy
        names.

        X-Forwarded-For is read from its end, skipping entries that are trusted proxies themselves.
        """
        if not self.trusts(peer):
            return peer
        address = peer
        forwarded = fields.get(b"x-forwarded-for") or ""
        for hop in reversed([part.strip() for part in forwarded.split(",") if part.strip()]):
            if not self.trusts(address):
                break
            address = hop
        return address

    def trusts(self, peer: str) -> bool:
        """Whether a peer is a trusted proxy."""
        if not self.trusted_proxies:
            return False
        address = read_address(peer)
        return address is not None and any(address in net for net in self.trusted_proxies)


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address; ``None`` if it is not valid. IPv4-mapped IPv6 becomes IPv4, since sockets
    for both families write IPv4 addresses so."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_loopback_url(url: str) -> bool:
    """Whether the host of an absolute URL is a loopback name or address."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def served_hosts(base_url: str, *, port: int, aliases: tuple[str, ...] = ()) -> frozenset[str]:
    """Every Host value of this server: the authority of the base URL and the aliases.

    If the base URL is a loopback URL, the loopback names with the listening port are aliases, too
    (A-11).
    """
    hosts = hosts_of(base_url) | {alias.lower() for alias in aliases}
    if is_loopback_url(base_url):
        hosts |= {f"{name}:{port}" for name in _LOOPBACK_NAMES}
        if port == _DEFAULT_PORTS[urlsplit(base_url).scheme]:
            hosts |= set(_LOOPBACK_NAMES)
    return hosts


def hosts_of(url: str) -> frozenset[str]:
    """The Host values that clients may send for a URL: with the port, and also without it if it is
    the default port of the scheme."""
    parts = urlsplit(url)
    default_port = _DEFAULT_PORTS[parts.scheme]
    authority = parts.netloc.lower()
    if (parts.port or default_port) != default_port:
        return frozenset({authority})
    bare = authority.rpartition(":")[0] if parts.port else authority
    return frozenset({bare, f"{bare}:{default_port}"})


def _last_value(value: str | None) -> str | None:
    return None if value is None else value.rpartition(",")[2].strip()
