"""A storage is charged for what it takes, and nobody sends a body that it has no room for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from podstead.config import Settings
from podstead.core.media_types import SPARQL_UPDATE
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer
from tests.support.pod_pages import sign_in_by_token
from tests.support.rdf import TURTLE

QUOTA_BYTES = 200_000
TEXT = "text/plain"
PATH = "/alice/private/body"


@pytest.fixture
async def server(start: Start) -> Server:
    return await start(quota_bytes=QUOTA_BYTES)


def said(answer: Answer) -> tuple[int, int, int]:
    """Used, limit and needed, which the sentence says too."""
    assert answer.status == 507
    told = answer.json()
    found = (told["usedBytes"], told["limitBytes"], told["neededBytes"])
    assert all(str(number) in told["message"] for number in found)
    return found


async def pieces(*sent: bytes) -> AsyncIterator[bytes]:
    for piece in sent:
        yield piece


async def nothing(reason: str) -> AsyncIterator[bytes]:
    if reason:
        raise AssertionError(reason)
    yield b""


@pytest.mark.parametrize("content_type", [TEXT, TURTLE])
@pytest.mark.parametrize(("method", "target"), [("PUT", PATH), ("POST", "/alice/private/")])
async def test_a_length_beyond_the_rest_is_refused_before_a_byte_is_taken(
    server: Server, store: SqliteStore, method: str, target: str, content_type: str
) -> None:
    used = await store.used_bytes("alice")
    answer = await server.alice.request(
        method,
        target,
        # A client that waits for 100 Continue: nothing of its body is asked for.
        headers={"Content-Type": content_type, "Expect": "100-continue"},
        body=nothing("the body was asked for"),
        content_length=QUOTA_BYTES,
    )
    told_used, limit, needed = said(answer)
    assert (told_used, limit) == (used, QUOTA_BYTES)
    assert QUOTA_BYTES < needed < QUOTA_BYTES + 1024  # with what the resource takes besides
    assert await store.used_bytes("alice") == used


@pytest.mark.parametrize("content_type", [TEXT, TURTLE])
async def test_a_body_without_a_length_ends_when_it_passes_the_rest(
    server: Server, settings: Settings, content_type: str
) -> None:
    filler = b"#" * 50_000
    headers = {"Content-Type": content_type, "Transfer-Encoding": "chunked"}
    refused = await server.alice.request("PUT", PATH, headers=headers, body=pieces(*[filler] * 6))
    used, limit, needed = said(refused)
    assert used + needed > limit
    assert needed <= 4 * len(filler) + 1024
    assert (await server.alice.get(PATH)).status == 404
    assert [path for path in (settings.root / "blobs").rglob("*") if path.is_file()] == []
    fits = await server.alice.request("PUT", PATH, headers=headers, body=pieces(filler))
    assert fits.status == 201


async def test_bodies_that_come_at_once_share_the_rest(start: Start) -> None:
    """Else many at once would fill the disk with what cannot be committed."""
    server = await start(quota_bytes=1_000_000)
    sending = asyncio.Event()
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        sending.set()
        await go_on.wait()
        yield b"x" * 500_000

    first = asyncio.create_task(
        server.alice.request(
            "PUT", PATH, headers={"Content-Type": TEXT}, body=slow(), content_length=600_000
        )
    )
    await sending.wait()
    second = await server.alice.request(
        "PUT",
        f"{PATH}2",
        headers={"Content-Type": TEXT, "Expect": "100-continue"},
        body=nothing("the body was asked for"),
        content_length=600_000,
    )
    assert second.status == 507
    # Other pods are not concerned.
    other = await server.bob.put("/bob/private/x", b"x" * 600_000, TEXT)
    assert other.status == 201
    go_on.set()
    assert (await first).status == 201
    third = await server.alice.put(f"{PATH}2", b"x" * 300_000, TEXT)
    assert third.status == 201


async def test_each_resource_and_each_long_path_has_a_price(
    server: Server, store: SqliteStore
) -> None:
    used = await store.used_bytes("alice")
    assert (await server.alice.put(PATH, b"", TEXT)).status == 201
    empty = await store.used_bytes("alice")
    assert empty - used >= 512
    long = "/alice/private/".ljust(4000, "x")
    assert (await server.alice.put(long, b"", TEXT)).status == 201
    assert await store.used_bytes("alice") - empty >= 20_000
    assert (await server.alice.delete(long)).status == 204
    assert (await server.alice.delete(PATH)).status == 204
    assert await store.used_bytes("alice") == used


async def test_empty_resources_fill_a_pod(server: Server) -> None:
    count = 0
    while (answer := await server.alice.put(f"/alice/private/{count}", b"", TEXT)).status == 201:
        count += 1
        assert count < 400
    assert count > 100
    used, limit, needed = said(answer)
    assert used + needed > limit == QUOTA_BYTES
    # What is there can still be read, emptied and deleted.
    assert (await server.alice.get("/alice/private/0")).status == 200
    assert (await server.alice.delete("/alice/private/0")).status == 204
    assert (await server.alice.put("/alice/private/x", b"", TEXT)).status == 201


async def test_access_rules_and_descriptions_are_charged_for(
    server: Server, store: SqliteStore
) -> None:
    await server.alice.put(PATH, b"", TEXT)
    for auxiliary in (".acl", ".meta"):
        used = await store.used_bytes("alice")
        if auxiliary == ".acl":
            await server.put_acl(PATH)
        else:
            await server.alice.put(PATH + auxiliary, "<#a> <#b> <#c>.", TURTLE)
        grown = await store.used_bytes("alice") - used
        size = len((await server.alice.get(PATH + auxiliary)).body)
        assert grown >= size + 512


async def test_a_large_body_counts_no_more_once_it_is_deleted(
    server: Server, store: SqliteStore
) -> None:
    used = await store.used_bytes("alice")
    for _ in range(5):
        assert (await server.alice.put(PATH, b"x" * 150_000, TEXT)).status == 201
        assert (await server.alice.delete(PATH)).status == 204
        assert await store.used_bytes("alice") == used


async def test_a_document_of_a_fifth_of_the_quota_can_be_replaced_again_and_again(
    start: Start,
) -> None:
    server = await start(quota_bytes=1_000_000)
    assert (await server.alice.put(PATH, b"0" * 200_000, TEXT)).status == 201
    for number in range(1, 12):
        replaced = await server.alice.put(PATH, b"%d" % (number % 10) * 200_000, TEXT)
        assert replaced.status == 204
    assert (await server.alice.get(PATH)).status == 200


async def test_a_replacement_needs_only_what_it_takes_more(server: Server) -> None:
    for number in range(3):
        await server.alice.put(f"{PATH}{number}", b"x" * 60_000, TEXT)
    assert (await server.alice.put(f"{PATH}0", b"y" * 60_000, TEXT)).status == 204
    assert (await server.alice.put(f"{PATH}0", b"y" * 100, TEXT)).status == 204
    assert (await server.alice.put(f"{PATH}0", b"y" * 60_000, TEXT)).status == 204
    assert (await server.alice.put(f"{PATH}3", b"y" * 60_000, TEXT)).status == 507


async def test_a_patch_beyond_the_rest_says_what_it_needs(start: Start) -> None:
    server = await start(quota_bytes=20_000)
    body = b'INSERT DATA { <#a> <#b> "%s" }' % (b"x" * 20_000)
    refused = await server.alice.request(
        "PATCH", PATH, headers={"Content-Type": SPARQL_UPDATE}, body=body
    )
    _, limit, needed = said(refused)
    assert limit == 20_000 < needed
    assert (await server.alice.get(PATH)).status == 404


# --- the warning ------------------------------------------------------------------------------


def level(answer: Answer) -> tuple[int, int] | None:
    """What a response says about the quota."""
    value = answer.header("storage-quota")
    if value is None:
        return None
    found = re.fullmatch(r"used=([0-9]+), limit=([0-9]+)", value)
    assert found is not None
    return int(found[1]), int(found[2])


SMALL_QUOTA_BYTES = 60_000
"""What fills it is in the database, and free again as soon as it is deleted."""


@pytest.fixture
async def small(start: Start) -> Server:
    return await start(quota_bytes=SMALL_QUOTA_BYTES)


async def filled(server: Server, store: SqliteStore, percent: int) -> Answer:
    """Alice's pod, filled so far with bodies that are small."""
    answer = await server.alice.put(PATH, b"", TEXT)
    for number in range(30):
        rest = SMALL_QUOTA_BYTES * percent // 100 - await store.used_bytes("alice") - 2000
        if rest < 0:
            break
        content = b"x" * min(rest, 4000)
        answer = await server.alice.put(f"{PATH}-{number}", content, TEXT)
        assert answer.status == 201
    return answer


async def test_the_owner_is_warned_from_ninety_percent_on(
    small: Server, settings: Settings
) -> None:
    store = SqliteStore(settings.root)
    await store.open()
    try:
        assert level(await filled(small, store, 89)) is None
        last = await small.alice.put(PATH, b"x" * 4000, TEXT)
        assert level(last) == (await store.used_bytes("alice"), SMALL_QUOTA_BYTES)
        assert level(await small.alice.get(PATH)) is None, "only writes say it"
        appended = await small.bob.post("/alice/inbox/", b"", TEXT)
        assert (appended.status, level(appended)) == (201, None), "that is not Bob's business"
        assert level(await small.alice.put(f"{PATH}-t", b"", TEXT)) is not None
        copy = {"Destination": f"{BASE}{PATH}-u"}
        copied = await small.alice.request("COPY", f"{PATH}-t", headers=copy)
        assert copied.status == 201
        assert level(copied) is not None
        assert level(await small.alice.request("DELETE", f"{PATH}-t")) is not None
        await small.alice.request("DELETE", PATH)
        deleted = await small.alice.request("DELETE", f"{PATH}-0")
        assert level(deleted) is None, "there is room again"
    finally:
        await store.close()


async def test_without_a_quota_nobody_is_warned(start: Start) -> None:
    server = await start()
    assert level(await server.alice.put(PATH, b"x" * QUOTA_BYTES, TEXT)) is None


async def test_the_pages_warn_too(server: Server) -> None:
    await server.alice.put(PATH, b"x" * (QUOTA_BYTES * 92 // 100), TEXT)
    browser = await sign_in_by_token(server, server.alice)
    for address in ("/.pages/storage", "/.pages/"):
        assert "nearly full" in (await browser.get(address)).text
