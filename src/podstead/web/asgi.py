"""The types of ASGI, and the header fields of its scopes."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from podstead.core.errors import BadRequest

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


# Reads the header fields of a request: combined by name, and checked for forbidden repetition.
#
# RFC 9110 section 5.3: fields of the same name can be joined with commas, unless the field is
# defined to have a single value. If such a field is repeated, the request is refused, since
# ignoring one of the two would be a guess.

_SINGLETONS = frozenset(
    {
        b"host",
        b"content-length",
        b"content-type",
        b"if-modified-since",
        b"if-range",
        b"if-unmodified-since",
        b"origin",
        b"range",
        b"slug",
    }
)


class HeaderFields:
    """The fields of one request by lower-case name. Values are as received; decoded as Latin-1."""

    __slots__ = ("_fields", "authorization", "proofs")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises BadRequest for a repeated field that must have a single value."""
        fields: dict[bytes, bytes] = {}
        authorization: list[bytes] = []
        proofs: list[bytes] = []
        for name, value in headers:
            if name == b"authorization":
                authorization.append(value)
            elif name == b"dpop":
                proofs.append(value)
            elif name not in fields:
                fields[name] = value
            elif name in _SINGLETONS:
                raise BadRequest(f"The {name.decode('latin-1')} header must not be repeated")
            else:
                fields[name] = fields[name] + b", " + value
        self._fields = fields
        self.authorization = authorization
        """Each Authorization field, because more than one is refused (A-6)."""
        self.proofs = proofs
        """Each DPoP field, for the same reason (RFC 9449 section 4.3)."""

    def get(self, name: bytes) -> str | None:
        value = self._fields.get(name)
        return None if value is None else value.decode("latin-1")

    def get_raw(self, name: bytes) -> bytes | None:
        return self._fields.get(name)

    def has_any(self, names: frozenset[bytes]) -> bool:
        """Whether the request has a field with one of these names."""
        return not names.isdisjoint(self._fields)

    def __contains__(self, name: bytes) -> bool:
        return name in self._fields


def certificate_of_connection(scope: Scope) -> str | None:
    """The client certificate of the connection (ASGI TLS extension: PEM, the client's own first),
    used or not; ``None`` if the client presented none."""
    tls = scope.get("extensions", {}).get("tls")
    chain = tls.get("client_cert_chain") if tls else None
    return next(iter(chain)) if chain else None
