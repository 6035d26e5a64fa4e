"""Requests of the protocol tus 1.0.0, as its specification shows them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlsplit

from tests.support.asgi import Answer, Client

VERSION = {"Tus-Resumable": "1.0.0"}
OCTETS = "application/offset+octet-stream"
PLACE = "/.uploads/"


def metadata(**values: str) -> str:
    """Upload-Metadata; ``if_none_match`` is the key ``if-none-match``."""
    return ",".join(
        f"{key.replace('_', '-')} {base64.b64encode(value.encode()).decode()}"
        for key, value in values.items()
    )


async def create(
    client: Client,
    target: str,
    size_bytes: int | str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    **values: str,
) -> Answer:
    """Create an upload; with a ``body``, its first bytes are sent along."""
    fields = {
        **VERSION,
        "Upload-Length": str(size_bytes),
        "Upload-Metadata": metadata(target=target, **values),
        **({"Content-Type": OCTETS} if body is not None else {}),
        **(headers or {}),
    }
    return await client.request("POST", PLACE, headers=fields, body=body)


async def created(
    client: Client,
    target: str,
    size_bytes: int,
    *,
    headers: dict[str, str] | None = None,
    **values: str,
) -> str:
    """The path of a new upload."""
    answer = await create(client, target, size_bytes, headers=headers, body=None, **values)
    assert answer.status == 201, answer.text
    return location(answer)


def location(answer: Answer) -> str:
    found = answer.header("location")
    assert found is not None
    return urlsplit(found).path


async def append(
    client: Client,
    upload: str,
    offset: int | str,
    body: bytes | Iterable[bytes] | AsyncIterator[bytes],
    *,
    headers: dict[str, str] | None = None,
    content_length: int | None = None,
    disconnect: bool = False,
) -> Answer:
    """Send more of it; ``disconnect`` breaks the connection after the body."""
    fields = {
        **VERSION,
        "Upload-Offset": str(offset),
        "Content-Type": OCTETS,
        **(headers or {}),
    }
    return await client.request(
        "PATCH",
        upload,
        headers=fields,
        body=body,
        content_length=content_length,
        disconnect=disconnect,
    )


async def inspect(client: Client, upload: str) -> Answer:
    return await client.request("HEAD", upload, headers=VERSION)


async def cancel(client: Client, upload: str) -> Answer:
    return await client.request("DELETE", upload, headers=VERSION)


async def offset(client: Client, upload: str) -> int:
    """How much the server has."""
    answer = await inspect(client, upload)
    assert answer.status == 200, answer.text
    return int(answer.header("upload-offset") or "")
