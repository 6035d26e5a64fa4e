"""The header fields of tus 1.0.0, a protocol for resumable uploads (tus.io)."""

import base64
import binascii
import re
from typing import Final

from podstead.core.errors import BadRequest
from podstead.core.identifiers import is_container, parse_path
from podstead.core.media_types import parse_media_type
from podstead.core.numbers import whole_number
from podstead.features.uploads.service import Checksum
from podstead.storage.uploads import UploadRecord
from podstead.web.files.uploads import member, type_of
from podstead.web.resource_responses import http_date
from podstead.web.response import HeaderField

VERSION: Final = b"1.0.0"
CONTENT_TYPE: Final = "application/offset+octet-stream"
EXTENSIONS: Final = b"creation,creation-with-upload,expiration,termination,checksum"

VERSION_FIELD: Final[HeaderField] = (b"tus-resumable", VERSION)
OFFERED_VERSION: Final[HeaderField] = (b"tus-version", VERSION)
EXPOSED: Final[HeaderField] = (
    b"access-control-expose-headers",
    (
        b"Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, "
        b"Upload-Offset, Upload-Length, Upload-Metadata, Upload-Expires"
    ),
)

MAX_METADATA_CHARS: Final = 8192
_ALGORITHMS: Final = ("sha1", "sha256", "sha512")
_KEY: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_MAX_NUMBER: Final = 10**19 - 1


def options(max_bytes: int) -> tuple[HeaderField, ...]:
    """The fields of a response to OPTIONS: what the server supports."""
    return (
        VERSION_FIELD,
        OFFERED_VERSION,
        (b"tus-extension", EXTENSIONS),
        (b"tus-max-size", str(max_bytes).encode("ascii")),
        (b"tus-checksum-algorithm", ",".join(_ALGORITHMS).encode("ascii")),
        EXPOSED,
    )


def number(name: str, value: str | None) -> int:
    """The value of Upload-Offset or Upload-Length. Raises BadRequest."""
    found = whole_number(value or "", _MAX_NUMBER)
    if found is None:
        raise BadRequest(f"{name} must be a number")
    return found


def expires(expires_ms: int) -> HeaderField:
    """The time after which the upload is removed if nothing arrives."""
    return (b"upload-expires", http_date(expires_ms // 1000))


def read_checksum(value: str | None) -> Checksum | None:
    """The value of Upload-Checksum. Raises BadRequest."""
    if value is None:
        return None
    algorithm, _, encoded = value.partition(" ")
    if algorithm not in _ALGORITHMS:
        raise BadRequest(f"The algorithms of Upload-Checksum are {', '.join(_ALGORITHMS)}")
    return Checksum(algorithm, _decode(encoded))


def read_new_upload(metadata: str | None, *, size_bytes: int, base_url: str) -> UploadRecord:
    """What an upload will become, by its Upload-Metadata. Raises BadRequest.

    ``target`` is the URL or the path of the document, or of a container; in that case ``filename``
    is the name of the document in it. ``filetype`` is its media type. ``if-match`` and
    ``if-none-match`` are the conditions of the PUT.
    """
    values = _read_metadata(metadata or "")
    named = values.get("target")
    if named is None:
        raise BadRequest("Upload-Metadata must contain the target")
    target = parse_path(named.removeprefix(base_url).encode())
    filename = values.get("filename")
    if is_container(target) and filename:
        target = member(target, filename)
    content_type = type_of(target, values.get("filetype"))
    parse_media_type(content_type)
    return UploadRecord(
        target=target,
        size_bytes=size_bytes,
        content_type=content_type,
        if_match=values.get("if-match"),
        if_none_match=values.get("if-none-match"),
        description=metadata,
    )


def _read_metadata(value: str) -> dict[str, str]:
    if len(value) > MAX_METADATA_CHARS:
        raise BadRequest(f"Upload-Metadata can have at most {MAX_METADATA_CHARS} characters")
    found: dict[str, str] = {}
    for pair in filter(None, value.split(",")):
        key, _, encoded = pair.strip().partition(" ")
        if _KEY.fullmatch(key) is None or key in found:
            raise BadRequest("Upload-Metadata must consist of different keys with base64 values")
        try:
            found[key] = _decode(encoded).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRequest("The values of Upload-Metadata must be UTF-8") from error
    return found


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("Upload-Metadata and Upload-Checksum have values in base64") from error
