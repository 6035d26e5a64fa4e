"""Parses request targets into resource paths, and derives what a path alone determines.

A resource is identified by its canonical path: absolute, percent-encoded, each segment decoded and
encoded again so that one resource has exactly one spelling (P-50). Slash semantics (P-47), the
hierarchy of containers and the names of auxiliary resources (``.acl``, ``.meta``) depend on the
path only, so everything here is pure and works for resources that do not exist.
"""

import re
from enum import Enum
from typing import NewType

from podstead.core.caches import memoize_short_keys
from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest

ResourcePath = NewType("ResourcePath", str)
"""A canonical path such as ``/alice/notes/caf%C3%A9.ttl``; containers end in ``/``."""

ROOT = ResourcePath("/")

ACL_SUFFIX = ".acl"
DESCRIPTION_SUFFIX = ".meta"

MAX_TARGET_BYTES = 8 * 1024
"""The longest path and query that a request may have; RFC 9110 section 4.1 recommends at least
8,000."""
MAX_SUFFIX_BYTES = max(len(ACL_SUFFIX), len(DESCRIPTION_SUFFIX))

# RFC 3986 section 3.3: pchar without "%"; these bytes stand for themselves in a segment. "%2F",
# "%5C" and everything else outside stays encoded, as data inside its segment.
_UNESCAPED = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@"
)
_PLAIN_PATH = re.compile(rb"(?:/[A-Za-z0-9\-_~!$&'()*+,;=:@][A-Za-z0-9\-._~!$&'()*+,;=:@]*)*/?\Z")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Auxiliary(Enum):
    """The kinds of auxiliary resources, by the suffix of their URLs (W-1, C-30)."""

    ACL = ACL_SUFFIX
    DESCRIPTION = DESCRIPTION_SUFFIX


@memoize_short_keys
def parse_path(raw_path: bytes) -> ResourcePath:
    """Canonicalize the path of a request target, exactly as received (P-50).

    Raises BadRequest for a path that is not absolute, has a malformed escape, is not UTF-8 after
    decoding, contains a control character, or has an empty, ``.`` or ``..`` segment.
    """
    if _PLAIN_PATH.match(raw_path) and raw_path:
        return ResourcePath(raw_path.decode("ascii"))
    if not raw_path.startswith(b"/"):
        raise BadRequest("The request target must be an absolute path")
    if _BAD_ESCAPE.search(raw_path):
        raise BadRequest(CoreCodes.MALFORMED_ESCAPE)
    segments = raw_path[1:].split(b"/")
    last = len(segments) - 1
    return ResourcePath(
        "/"
        + "/".join(
            "" if index == last and segment == b"" else _canonical_segment(segment)
            for index, segment in enumerate(segments)
        )
    )


def _canonical_segment(segment: bytes) -> str:
    decoded = _ESCAPE.sub(lambda escape: bytes([int(escape.group(1), 16)]), segment)
    _check_segment(decoded)
    return encode_segment(decoded)


def _check_segment(decoded: bytes) -> None:
    if decoded == b"":
        raise BadRequest(CoreCodes.EMPTY_SEGMENT)
    if decoded in (b".", b".."):
        raise BadRequest(CoreCodes.DOT_SEGMENT)
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(CoreCodes.TARGET_NOT_UTF_8) from error
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text):
        raise BadRequest(CoreCodes.CONTROL_CHARACTER)


def encode_segment(decoded: bytes) -> str:
    """Percent-encode one decoded segment, in upper-case hex and only where necessary."""
    return "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in decoded)


def is_container(path: ResourcePath) -> bool:
    """Whether the path identifies a container, that is, ends in a slash (P-47)."""
    return path.endswith("/")


def moved_path(path: str, source: ResourcePath, destination: ResourcePath) -> ResourcePath:
    """Where a resource is after ``source``, which may be a container, became ``destination``."""
    is_moved = path == source or (is_container(source) and path.startswith(source))
    return ResourcePath(destination + path[len(source) :] if is_moved else path)


def parent_container(path: ResourcePath) -> ResourcePath | None:
    """The container whose member this path would be; ``None`` for the server's root."""
    if path == ROOT:
        return None
    return ResourcePath(path[: path.rindex("/", 0, len(path) - 1) + 1])


def ancestors(path: ResourcePath) -> tuple[ResourcePath, ...]:
    """The containers above the path, from the nearest to the server's root."""
    container = parent_container(path)
    return () if container is None else _with_ancestors(container)


@memoize_short_keys
def _with_ancestors(container: ResourcePath) -> tuple[ResourcePath, ...]:
    """The container and those above it, which all its members have in common."""
    found = [container]
    while (above := parent_container(found[-1])) is not None:
        found.append(above)
    return tuple(found)


def segment_name(path: ResourcePath) -> str:
    """The last segment, encoded, with the slash of a container: ``notes/`` or ``a.ttl``."""
    return path[path.rindex("/", 0, len(path) - 1) + 1 :] if path != ROOT else "/"


def slash_variant(path: ResourcePath) -> ResourcePath:
    """The path with the trailing slash added or removed; only one of the two can exist (P-47)."""
    return ResourcePath(path[:-1] if path.endswith("/") else path + "/")


def storage_root(path: ResourcePath) -> ResourcePath | None:
    """The root container of the storage that contains the path: its first segment.

    ``None`` for the server's root and for documents directly below it, which are in no storage.
    """
    end = path.find("/", 1)
    return None if end < 0 else ResourcePath(path[: end + 1])


def storage_description_of(root: ResourcePath) -> ResourcePath:
    """The path of the description of the storage with this root container (P-32)."""
    return ResourcePath(f"{root}.well-known/solid")


def auxiliary_kind(path: ResourcePath) -> Auxiliary | None:
    """Which auxiliary resource the path names, if any."""
    if path.endswith(ACL_SUFFIX):
        return Auxiliary.ACL
    if path.endswith(DESCRIPTION_SUFFIX):
        return Auxiliary.DESCRIPTION
    return None


def subject_of(path: ResourcePath) -> ResourcePath:
    """The resource that an auxiliary path belongs to; any other path is its own subject."""
    kind = auxiliary_kind(path)
    return path if kind is None else ResourcePath(path[: -len(kind.value)])


def acl_of(subject: ResourcePath) -> ResourcePath:
    """The path of the ACL resource of a subject (W-1)."""
    return ResourcePath(subject + ACL_SUFFIX)


def description_of(subject: ResourcePath) -> ResourcePath:
    """The path of the description resource of a subject (C-30)."""
    return ResourcePath(subject + DESCRIPTION_SUFFIX)


# Canonicalizes the HTTP IRIs of resources (P-50, W-11).

_HTTP_IRI = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@]+)(?P<path>/[^?#]*)?\Z", re.IGNORECASE
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@memoize_short_keys
def canonical_url(iri: str) -> str | None:
    """The canonical form of an ``http(s)`` IRI: scheme and host in lower case, no default port, the
    path as :func:`podstead.core.identifiers.parse_path` returns it.

    ``None`` for other schemes, and for IRIs with a query, fragment or user name, which do not
    identify a resource that access rules could apply to.
    """
    match = _HTTP_IRI.match(iri)
    if match is None:
        return None
    try:
        path = parse_path((match["path"] or "/").encode())
    except (BadRequest, UnicodeEncodeError):
        return None
    scheme, authority = match["scheme"].lower(), match["authority"].lower()
    return f"{scheme}://{authority.removesuffix(_DEFAULT_PORTS[scheme])}{path}"


# Lists the methods that a target supports, judged by its path alone (P-13, P-14).


@memoize_short_keys
def allowed_methods(target: ResourcePath) -> tuple[str, ...]:
    """The methods in the order in which ``Allow`` lists them.

    Containers support POST; a storage root and its ACL cannot be deleted (C-19). Auxiliary
    resources are copied and moved with their subject only.
    """
    auxiliary = auxiliary_kind(target)
    methods = ["OPTIONS", "HEAD", "GET", "PUT", "PATCH"]
    if is_container(target) and auxiliary is None:
        methods.append("POST")
    of_storage_root = storage_root(target) == subject_of(target)
    if not (of_storage_root and auxiliary is not Auxiliary.DESCRIPTION):
        methods.append("DELETE")
    if auxiliary is None:
        methods.append("COPY")
        if not of_storage_root:
            methods.append("MOVE")
    return tuple(methods)


def accepts_only_rdf(target: ResourcePath) -> bool:
    """Whether a body at the target must be RDF: containers, ACLs and descriptions."""
    return is_container(target) or auxiliary_kind(target) is not None
