"""Forms with files, as browsers send them (RFC 7578)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

File = tuple[str, bytes, str]
"""A file's name, content and media type."""


def encode_form(fields: Sequence[tuple[str, str]], files: Sequence[File]) -> tuple[str, bytes]:
    """The Content-Type and the body of a form."""
    boundary = f"----WebKitFormBoundary{secrets.token_hex(8)}"
    parts = []
    for name, value in fields:
        head = f'Content-Disposition: form-data; name="{name}"'
        parts.append(_part(boundary, head, value.encode()))
    for filename, content, media_type in files:
        quoted = filename.replace("\n", "%0A").replace("\r", "%0D").replace('"', "%22")
        head = (
            f'Content-Disposition: form-data; name="files"; filename="{quoted}"\r\n'
            f"Content-Type: {media_type}"
        )
        parts.append(_part(boundary, head, content))
    end = f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", b"".join(parts) + end


def _part(boundary: str, head: str, content: bytes) -> bytes:
    return f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
