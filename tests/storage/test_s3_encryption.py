"""The settings of encryption: S3 is asked for it in every request that stores something."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podstead.core.errors import StoreUnavailable
from podstead.storage.blobs.s3 import Objects, objects
from podstead.storage.blobs.s3_location import parse_s3_location
from tests.support.breaking_proxy import BreakingProxy, running_breaking_proxy
from tests.support.seaweedfs import REGION, S3Server, s3_environment

PART_BYTES = 5 * 1024 * 1024
SIZES = {"small": 100_000, "large": PART_BYTES + 100_000}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[S3Server]:
    server = S3Server(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", PART_BYTES)
    for name, value in s3_environment().items():
        monkeypatch.setenv(name, value)


async def store(kept: Objects, key: str, content: bytes) -> None:
    async def read(start: int, end: int) -> bytes:
        return content[start:end]

    await kept.put(key, read, len(content))


async def test_s3_encrypts_bodies_and_their_copies(server: S3Server, folder: Path) -> None:
    """What is encrypted is not on its disk, and what is not encrypted is."""
    for encryption in (None, "AES256"):
        parameters = f"&encryption={encryption}" if encryption else ""
        location = parse_s3_location(server.new_location(parameters=parameters))
        kept = Objects(location)
        for name, size_bytes in SIZES.items():
            content = os.urandom(size_bytes)
            await store(kept, name, content)
            await kept.copy(name, f"{name}-copy", size_bytes)
            for key in (name, f"{name}-copy"):
                assert b"".join([each async for each in kept.read(key, 0, size_bytes)]) == content
                said = server.ask("GET", f"{location.bucket}/{location.prefix}/{key}", "--head")
                found = re.findall(r"(?im)^x-amz-server-side-encryption: (\S+)", said)
                assert found == ([encryption] if encryption else []), (key, said)
            assert is_on_disk(folder, content[:1000]) == (encryption is None)


def is_on_disk(folder: Path, content: bytes) -> bool:
    return any(content in each.read_bytes() for each in folder.rglob("*.dat"))


async def test_each_request_that_stores_asks_for_the_key(server: S3Server) -> None:
    """This server has no such keys and refuses the requests, so it is told with what they come."""
    prefix = parse_s3_location(server.new_location()).prefix
    parameters = f"region={REGION}&encryption=aws:kms&kms-key=key-1"
    with running_breaking_proxy() as proxy:
        proxy.target_port = server.port
        proxy.recorded = bytearray()
        direct = f"s3://tests/{prefix}?endpoint={server.endpoint}&region={REGION}"
        await store(Objects(parse_s3_location(direct)), "source", b"x")
        through = f"s3://tests/{prefix}?endpoint=http://127.0.0.1:{proxy.port}&{parameters}"
        kept = Objects(parse_s3_location(through))
        for request, attempt in {
            "PUT /tests/[^ ]*/small": partial(store, kept, "small", bytes(SIZES["small"])),
            "POST /tests/[^ ]*/large[?]uploads=?": partial(
                store, kept, "large", bytes(SIZES["large"])
            ),
            "PUT /tests/[^ ]*/copy": partial(kept.copy, "source", "copy", 1),
        }.items():
            with pytest.raises(StoreUnavailable):
                await attempt()
            head = requested(proxy, request)
            assert head["x-amz-server-side-encryption"] == "aws:kms"
            assert head["x-amz-server-side-encryption-aws-kms-key-id"] == "key-1"


def requested(proxy: BreakingProxy, pattern: str) -> dict[str, str]:
    """The header fields of the first request of that kind."""
    assert proxy.recorded is not None
    text = bytes(proxy.recorded).decode("latin-1")
    found = re.search(rf"{pattern} HTTP/1.1\r\n(.*?)\r\n\r\n", text, re.DOTALL)
    assert found, pattern
    pairs = (line.split(": ", 1) for line in found[1].split("\r\n"))
    return {name.lower(): value for name, value in pairs}
