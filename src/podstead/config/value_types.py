"""The kinds of values that settings can have, with their parsers.

The same parser handles text from options, environment variables and the file. A value in the file
must also have the TOML type of its kind, so that a number in quotes is an error.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Generic, TypeVar

from podstead.authn.credentials import MIN_KEY_BYTES
from podstead.outbound.errors import Refused
from podstead.outbound.urls import Origin, parse_origin
from podstead.storage.blobs.s3_location import S3Location, parse_s3_location

T = TypeVar("T")

Network = IPv4Network | IPv6Network

_AUTOMATIC = "auto"
_MAX_INTEGER = 2**53  # what every JSON and TOML reader holds exactly
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,18})(?: ?([KMGT])(?:i?B)?)?", re.IGNORECASE)
_SIZE_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_HOST_NAME = re.compile(r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\.?")
_AUTHORITY = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_EMAIL_ADDRESS = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+")
_CONTACT_URL = re.compile(r"https?://[^\s<>\"]+")
_MAX_LINE_CHARACTERS = 200
# Header fields that the server uses for something else.
_FIELDS_IN_USE = frozenset({"authorization", "cookie", "dpop", "host", "origin"})
# Of 32 random bytes about 30 differ; fewer than 16 do not happen by chance.
_MIN_DISTINCT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ValueType(Generic[T]):
    """One kind of value.

    ``parse`` raises ValueError for text that is not valid; ``expected`` then completes a message
    with "must be …". ``metavar`` stands for the value in help texts.
    """

    metavar: str
    expected: str
    parse: Callable[[str], T]
    toml_type: type[str | int | bool] = str
    words: tuple[str, ...] = ()
    """The texts that a TOML file may contain in quotes although the type is not ``str``."""
    has_units: bool = False
    """Whether a number may be followed by a unit; a TOML file then contains it in quotes."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Secret octets, which never appear in a log, a message or a page."""

    octets: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen: a host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def integer(minimum: int, maximum: int = _MAX_INTEGER) -> ValueType[int]:
    """An integer between bounds, both included."""

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not minimum <= int(text) <= maximum:
            raise ValueError(text)
        return int(text)

    bounds = f"of at least {minimum}" if maximum == _MAX_INTEGER else f"from {minimum} to {maximum}"
    return ValueType("NUMBER", f"must be an integer {bounds}", parse, int)


def size_in_bytes(minimum: int, maximum: int = _MAX_INTEGER) -> ValueType[int]:
    """A number of bytes between bounds, both included; ``5G`` is 5 times 1024 to the third."""

    def parse(text: str) -> int:
        match = _SIZE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        size_bytes = int(match[1]) * _SIZE_FACTORS[(match[2] or "").upper()]
        if not minimum <= size_bytes <= maximum:
            raise ValueError(text)
        return size_bytes

    bounds = "" if minimum == 0 else f" of at least {minimum}"
    bounds = bounds if maximum == _MAX_INTEGER else f" from {minimum} to {maximum}"
    expected = f"must be a number of bytes{bounds}, or a size such as 500M or 5G"
    return ValueType("SIZE", expected, parse, int, has_units=True)


def automatic_or(numbers: ValueType[int]) -> ValueType[int | None]:
    """One of the numbers, or ``auto`` (``None``), for which the server determines the value."""

    def parse(text: str) -> int | None:
        return None if text.lower() == _AUTOMATIC else numbers.parse(text)

    expected = f"{numbers.expected}, or {_AUTOMATIC}"
    metavar = f"{numbers.metavar}|{_AUTOMATIC}"
    return ValueType(metavar, expected, parse, numbers.toml_type, (_AUTOMATIC,))


def one_of(*words: str) -> ValueType[str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return ValueType("|".join(words), f"must be {', '.join(words[:-1])} or {words[-1]}", parse)


def _parse_switch(text: str) -> bool:
    if text.lower() not in ("true", "1", "false", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


def _parse_path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError(text)
    return Path(text)


def _parse_host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        # A name that ends in a digit is an address in a notation that we do not accept.
        if not _HOST_NAME.fullmatch(text) or text[-1].isdigit():
            raise
        return text.lower()


def _parse_domain(text: str) -> str:
    if not _HOST_NAME.fullmatch(text) or text.endswith(".") or text[-1].isdigit():
        raise ValueError(text)
    return text.lower()


def _parse_authority(text: str) -> str:
    if not _AUTHORITY.fullmatch(text):
        raise ValueError(text)
    return text.lower()


def _parse_email(text: str) -> str:
    if not _EMAIL_ADDRESS.fullmatch(text):
        raise ValueError(text)
    return text


def _parse_field_name(text: str) -> str:
    if not _FIELD_NAME.fullmatch(text) or text.lower() in _FIELDS_IN_USE:
        raise ValueError(text)
    return text.lower()


def _parse_origin(text: str) -> Origin:
    try:
        return parse_origin(text)
    except Refused as refusal:
        raise ValueError(text) from refusal


def _parse_base_url(text: str) -> str:
    bare = text.removesuffix("/")
    stem = bare.removesuffix(":0")
    return _parse_origin(stem) + bare[len(stem) :]


def _parse_issuer(text: str) -> str:
    bare = text.removesuffix("/")
    scheme, separator, rest = bare.partition("://")
    authority, slash, path = rest.partition("/")
    if not bare.isprintable() or any(character in bare for character in " ?#"):
        raise ValueError(text)
    return f"{_parse_origin(f'{scheme}{separator}{authority}')}{slash}{path}"


def _parse_postgresql_url(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")) or not text.isprintable():
        raise ValueError(text)
    return text


def _parse_bodies(text: str) -> S3Location | Path:
    if "://" in text:
        return parse_s3_location(text)
    folder = _parse_path(text)
    if not folder.is_absolute():
        raise ValueError(text)
    return folder


def _parse_line(text: str) -> str:
    if not text.isprintable() or len(text) > _MAX_LINE_CHARACTERS:
        raise ValueError(text)
    return text.strip()


def _parse_contact(text: str) -> str:
    line = _parse_line(text)
    if not _EMAIL_ADDRESS.fullmatch(line) and not _CONTACT_URL.fullmatch(line):
        raise ValueError(text)
    return line


def _parse_secret_key(text: str) -> Secret:
    octets = _decode_octets(text.strip())
    if len(octets) < MIN_KEY_BYTES or len(set(octets)) < _MIN_DISTINCT_BYTES:
        raise ValueError
    return Secret(octets)


def _decode_octets(text: str) -> bytes:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError from error


_OFF = "off"
_PORTS = range(65536)


def _parse_listen_address(text: str) -> ListenAddress | None:
    if text.lower() == _OFF:
        return None
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) not in _PORTS:
        raise ValueError(text)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(text)
    return ListenAddress(_parse_host(host.strip("[]")), int(port))


SWITCH = ValueType("", "must be true or false", _parse_switch, bool)
FILE = ValueType("FILE", "must be the path of a file", _parse_path)
FOLDER = ValueType("FOLDER", "must be the path of a folder", _parse_path)

LINE = ValueType("TEXT", "must be a line of at most 200 characters", _parse_line)
CONTACT = ValueType(
    "ADDRESS|URL",
    "must be an e-mail address or a URL, such as help@pods.example or https://pods.example/help",
    _parse_contact,
)

HOST = ValueType(
    "NAME",
    "must be a host name or an IP address without brackets or port, such as localhost, or 0.0.0.0 "
    "for all IPv4 addresses of this machine",
    _parse_host,
)
LISTEN_ADDRESS: ValueType[ListenAddress | None] = ValueType(
    "HOST:PORT|off",
    "must be a host name or an IP address with a port, such as 127.0.0.1:9090, or off",
    _parse_listen_address,
)
DOMAIN = ValueType(
    "NAME",
    "must be a domain name, such as pods.example",
    _parse_domain,
)
AUTHORITY = ValueType(
    "HOST[:PORT]",
    "must be a host, with its port unless it is the default one, such as pods.example:8443",
    _parse_authority,
)
EMAIL = ValueType("ADDRESS", "must be an e-mail address, such as me@pods.example", _parse_email)
FIELD_NAME = ValueType(
    "NAME",
    "must be the name of a header field that has no other use, such as Client-Cert",
    _parse_field_name,
)
"""In lower case."""

POSTGRESQL_URL = ValueType(
    "URL",
    "must be the URL of a PostgreSQL database, such as postgresql://podstead@db.example/podstead",
    _parse_postgresql_url,
)
BODIES: ValueType[S3Location | Path] = ValueType(
    "URL|FOLDER",
    "must be s3://BUCKET/PREFIX, with the parameters endpoint, region, encryption and kms-key at "
    "most, or the absolute path of a folder",
    _parse_bodies,
)
ORIGIN = ValueType(
    "ORIGIN",
    "must be http:// or https://, a host and optionally a port, such as https://example.org",
    _parse_origin,
)
BASE_URL = ValueType(
    "URL",
    "must be http:// or https://, a host and optionally a port, without a path, such as "
    "https://pods.example",
    _parse_base_url,
)
"""An origin, whose port may be 0 until the system has chosen one."""

ISSUER = ValueType(
    "URL",
    "must be the issuer URL of an identity provider, such as https://login.example",
    _parse_issuer,
)
"""The issuer of a Solid-OIDC provider, without a trailing slash."""

NETWORK: ValueType[Network] = ValueType(
    "ADDRESS[/BITS]",
    "must be an IP address or a network, such as 127.0.0.1 or 10.0.0.0/8",
    ip_network,
)
SECRET_KEY = ValueType(
    "KEY",
    f"must be at least {MIN_KEY_BYTES} random bytes in hexadecimal or base64, such as the output "
    "of 'openssl rand -hex 32'",
    _parse_secret_key,
)
"""A signing key that is long and varied enough to be random (A-32)."""
