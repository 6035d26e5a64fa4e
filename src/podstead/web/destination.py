"""What do the header fields of COPY and MOVE ask for? (RFC 4918 sections 10.2, 10.3 and 10.6)"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec.structs import replace

from podstead.core.errors import (
    BadRequest,
    ForbiddenDestination,
    ForeignDestination,
    UnsupportedMediaType,
)
from podstead.core.identifiers import (
    ResourcePath,
    parse_path,
    storage_description_of,
    storage_root,
)
from podstead.core.operation import Operation
from podstead.web.authority import hosts_of
from podstead.web.request import Request
from podstead.web.routes import is_reserved

TRANSFERS = frozenset({"COPY", "MOVE"})

_OVERWRITE = {None: True, "T": True, "t": True, "F": False, "f": False}


def transfer_of(operation: Operation, request: Request, *, base_url: str) -> Operation:
    """The operation with its destination and the other parameters of a copy or move.

    Raises BadRequest, ForeignDestination, ForbiddenDestination, and UnsupportedMediaType for a
    request with content, which means nothing here (RFC 4918 section 8.4).
    """
    if request.body.announced:
        raise UnsupportedMediaType(f"{operation.method} has no content")
    destination = request.fields.get(b"destination")
    if destination is None:
        raise BadRequest("The Destination header is missing")
    overwrite = _OVERWRITE.get(request.fields.get(b"overwrite"))
    if overwrite is None:
        raise BadRequest("The Overwrite header must be T or F")
    return replace(
        operation,
        destination=destination_path(destination, base_url=base_url, host=request.host),
        overwrite=overwrite,
        with_members=_with_members(operation.method, request.fields.get(b"depth")),
    )


def destination_path(destination: str, *, base_url: str, host: str) -> ResourcePath:
    """The path of a Destination: an absolute URL on this server, or an absolute path.

    ``host`` is the host that the request was sent to. Raises BadRequest, ForeignDestination and
    ForbiddenDestination.
    """
    try:
        parts = urlsplit(destination.strip())
    except ValueError as error:
        raise BadRequest("The Destination header is not a URL") from error
    if parts.query or parts.fragment:
        raise BadRequest("The Destination header must be a URL without query and fragment")
    if parts.netloc and parts.netloc.lower() not in hosts_of(base_url) | {host}:
        raise ForeignDestination("The destination is on another server")
    if parts.scheme not in ("http", "https") if parts.netloc else parts.scheme:
        raise BadRequest("The Destination header must be an http URL or an absolute path")
    try:
        path = parse_path((parts.path or "/").encode("latin-1"))
    except UnicodeEncodeError as error:
        raise BadRequest("The Destination header must be percent-encoded") from error
    root = storage_root(path)
    if is_reserved(path) or (root is not None and path == storage_description_of(root)):
        raise ForbiddenDestination("No resource can have the URL of the destination")
    return path


def _with_members(method: str, depth: str | None) -> bool:
    if depth is None or depth.lower() == "infinity":
        return True
    if method == "COPY" and depth == "0":
        return False
    allowed = "0 or infinity" if method == "COPY" else "infinity"
    raise BadRequest(f"The Depth of {method} must be {allowed}")
