"""Sending COPY and MOVE, and looking at what is stored afterwards."""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Store
from tests.support.asgi import Answer, Client

TEXT = "text/plain"


async def transfer(
    client: Client, method: str, source: str, destination: str, **fields: str
) -> Answer:
    """Send a COPY or MOVE; ``fields`` are further header fields."""
    headers = {"Destination": destination, **{k.replace("_", "-"): v for k, v in fields.items()}}
    return await client.request(method, source, headers=headers)


async def copy(client: Client, source: str, destination: str, **fields: str) -> Answer:
    return await transfer(client, "COPY", source, destination, **fields)


async def move(client: Client, source: str, destination: str, **fields: str) -> Answer:
    return await transfer(client, "MOVE", source, destination, **fields)


async def put(
    client: Client, path: str, content: str | bytes = "content", kind: str = TEXT
) -> None:
    """PUT what must succeed."""
    answer = await client.put(path, content, kind)
    assert answer.status in (201, 204), answer.text


async def tree_at(store: Store, root: str) -> dict[str, tuple[str, bytes]]:
    """Everything at and below a path, by what follows the path: media type and bytes."""
    found = await store.read_tree(ResourcePath(root), limit=100_000)
    contents = {}
    for path, metadata in found.items():
        assert metadata is not None
        body = await store.open_body(metadata)
        assert body is not None
        content = b"".join([chunk async for chunk in body.chunks()])
        contents[path[len(root) :]] = (metadata.content_type, content)
    return contents
