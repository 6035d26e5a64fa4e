"""Resumable uploads by tus 1.0.0: nothing that was acknowledged is lost, and an upload is a PUT."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.resources import uploads as service
from podstead.storage.sqlite import SqliteStore
from tests.support import tus
from tests.support.application import Server, Start
from tests.support.clock import FakeClock
from tests.support.rdf import TURTLE
from tests.support.tus import append, cancel, create, created, inspect, location, offset

TARGET = "/alice/private/film.mp4"
FILM = os.urandom(300_000)
"""More than is kept in the database."""


def drafts(settings: Settings) -> list[Path]:
    return sorted((settings.root / "blobs/uploads").iterdir())


async def test_options_names_the_version_the_extensions_and_the_limit(server: Server) -> None:
    for path in (tus.PLACE, f"{tus.PLACE}{'0' * 48}"):
        answer = await server.public.request("OPTIONS", path)
        assert answer.status == 204
        assert answer.header("tus-version") == "1.0.0"
        extensions = answer.header("tus-extension")
        assert extensions == "creation,creation-with-upload,expiration,termination,checksum"
        assert answer.header("tus-max-size") == str(1024**3)
        assert answer.header("tus-checksum-algorithm") == "sha1,sha256,sha512"


@pytest.mark.parametrize("size", [1, 1000, 65_536, 65_537, len(FILM)])
async def test_an_upload_in_parts_becomes_the_resource(
    server: Server, settings: Settings, size: int
) -> None:
    content = FILM[:size]
    upload = await created(server.alice, TARGET, size, filetype="video/mp4")
    half = size // 2
    answer = await append(server.alice, upload, 0, content[:half])
    assert (answer.status, answer.header("upload-offset")) == (204, str(half))
    assert (await server.alice.get(TARGET)).status == 404
    answer = await append(server.alice, upload, half, content[half:])
    assert (answer.status, answer.header("upload-offset")) == (204, str(size))
    answer = await server.alice.get(TARGET)
    assert (answer.status, answer.header("content-type")) == (200, "video/mp4")
    assert (await stored(server, TARGET)) == content
    assert drafts(settings) == []


async def stored(server: Server, target: str) -> bytes:
    answer = await server.alice.get(target)
    assert answer.status == 200
    return answer.body if answer.file_path is None else Path(answer.file_path).read_bytes()  # noqa: ASYNC240


async def test_an_empty_upload_is_finished_when_it_is_created(server: Server) -> None:
    answer = await create(server.alice, TARGET, 0)
    assert answer.status == 201
    assert await stored(server, TARGET) == b""
    assert await offset(server.alice, location(answer)) == 0


async def test_a_small_file_takes_one_request(server: Server) -> None:
    answer = await create(server.alice, "/alice/private/", 5, body=b"hello", filename="a b.txt")
    assert (answer.status, answer.header("upload-offset")) == (201, "5")
    assert await stored(server, "/alice/private/a%20b.txt") == b"hello"


@pytest.mark.parametrize("size", [5, 100_000, 2_000_000])
async def test_what_is_sent_with_the_creation_is_stored_at_once(
    server: Server, settings: Settings, size: int
) -> None:
    content = os.urandom(size)
    answer = await create(server.alice, TARGET, size, body=content, if_none_match="*")
    assert (answer.status, answer.header("upload-offset")) == (201, str(size))
    assert await stored(server, TARGET) == content
    assert drafts(settings) == []
    # Who did not get the answer asks, if it knows the URL, or is told that the name is taken.
    assert await offset(server.alice, location(answer)) == size
    assert (await inspect(server.bob, location(answer))).status == 404
    answer = await create(server.alice, TARGET, size, body=content, if_none_match="*")
    assert answer.status == 412


@pytest.mark.parametrize("size", [5, 2_000_000])
async def test_a_creation_that_breaks_leaves_nothing(
    server: Server, settings: Settings, size: int
) -> None:
    fields = {
        **tus.VERSION,
        "Upload-Length": str(size),
        "Upload-Metadata": tus.metadata(target=TARGET),
        "Content-Type": tus.OCTETS,
    }
    answer = await server.alice.request(
        "POST", tus.PLACE, headers=fields, body=[b"abc"], content_length=size, disconnect=True
    )
    assert answer.status == 400
    assert drafts(settings) == []
    assert (await server.alice.get(TARGET)).status == 404


async def test_what_arrived_before_the_connection_broke_is_kept(server: Server) -> None:
    upload = await created(server.alice, TARGET, len(FILM))
    answer = await append(
        server.alice, upload, 0, [FILM[:100_000]], content_length=len(FILM), disconnect=True
    )
    assert answer.status == 400
    answer = await inspect(server.alice, upload)
    assert answer.header("upload-offset") == "100000"
    assert answer.header("upload-length") == str(len(FILM))
    assert answer.header("cache-control") == "no-store"
    await append(server.alice, upload, 100_000, FILM[100_000:])
    assert await stored(server, TARGET) == FILM


async def test_an_upload_survives_a_restart(start: Start) -> None:
    server = await start()
    upload = await created(server.alice, TARGET, len(FILM))
    await append(server.alice, upload, 0, FILM[:200_000])
    await server.application.lifespan.stop()
    await server.application.lifespan.start()
    assert await offset(server.alice, upload) == 200_000
    await append(server.alice, upload, 200_000, FILM[200_000:])
    assert await stored(server, TARGET) == FILM


async def test_bytes_that_were_not_acknowledged_are_sent_again(
    server: Server, settings: Settings
) -> None:
    """After a crash, a draft may be longer than what had been flushed to the disk."""
    upload = await created(server.alice, TARGET, len(FILM))
    await append(server.alice, upload, 0, FILM[:1000])
    with (drafts(settings)[0] / "body").open("ab") as body:
        body.write(bytes(5000))
    assert await offset(server.alice, upload) == 1000
    await append(server.alice, upload, 1000, FILM[1000:])
    assert await stored(server, TARGET) == FILM


@pytest.mark.parametrize("wrong", [0, 999, 1001, 5000])
async def test_a_wrong_offset_changes_nothing(server: Server, wrong: int) -> None:
    upload = await created(server.alice, TARGET, 5000)
    await append(server.alice, upload, 0, FILM[:1000])
    assert (await append(server.alice, upload, wrong, FILM[:10])).status == 409
    assert await offset(server.alice, upload) == 1000


@pytest.mark.parametrize("wrong", ["", "-1", "x", "1e3", "9" * 20])
async def test_an_offset_that_is_no_number_is_refused(server: Server, wrong: str) -> None:
    upload = await created(server.alice, TARGET, 5000)
    assert (await append(server.alice, upload, wrong, b"x")).status == 400
    assert (await create(server.alice, TARGET, wrong)).status == 400


async def test_more_than_was_announced_is_refused(server: Server) -> None:
    upload = await created(server.alice, TARGET, 1000)
    assert (await append(server.alice, upload, 0, FILM[:1001])).status == 413
    assert await offset(server.alice, upload) == 0
    assert (await server.alice.get(TARGET)).status == 404
    assert (await append(server.alice, upload, 0, FILM[:1000])).status == 204


async def test_another_version_of_the_protocol_is_refused(server: Server) -> None:
    answer = await create(server.alice, TARGET, 5, headers={"Tus-Resumable": "0.2.2"})
    assert (answer.status, answer.header("tus-version")) == (412, "1.0.0")


async def test_every_answer_names_the_version(server: Server) -> None:
    upload = await created(server.alice, TARGET, 10)
    for answer in (
        await append(server.alice, upload, 5, b"x"),
        await inspect(server.bob, upload),
        await create(server.public, TARGET, 10),
        await inspect(server.alice, upload),
    ):
        assert answer.header("tus-resumable") == "1.0.0"


async def test_a_method_can_be_overridden(server: Server) -> None:
    upload = await created(server.alice, TARGET, 4)
    headers = {**tus.VERSION, "X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0"}
    headers["Content-Type"] = tus.OCTETS
    answer = await server.alice.request("POST", upload, headers=headers, body=b"abcd")
    assert answer.status == 204
    assert await stored(server, TARGET) == b"abcd"
    answer = await server.alice.request("POST", upload, headers=tus.VERSION, body=b"abcd")
    assert answer.status == 405


async def test_another_content_type_is_refused(server: Server) -> None:
    upload = await created(server.alice, TARGET, 4)
    answer = await append(server.alice, upload, 0, b"abcd", headers={"Content-Type": "text/plain"})
    assert answer.status == 415


# --- checksums ------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
async def test_a_checksum_covers_what_one_request_sends(server: Server, algorithm: str) -> None:
    upload = await created(server.alice, TARGET, 2000)

    def checksum(content: bytes) -> dict[str, str]:
        digest = base64.b64encode(hashlib.new(algorithm, content).digest()).decode()
        return {"Upload-Checksum": f"{algorithm} {digest}"}

    answer = await append(server.alice, upload, 0, FILM[:1000], headers=checksum(FILM[:999] + b"!"))
    assert answer.status == 460
    assert await offset(server.alice, upload) == 0
    answer = await append(server.alice, upload, 0, FILM[:1000], headers=checksum(FILM[:1000]))
    assert answer.status == 204
    answer = await append(server.alice, upload, 1000, FILM[1000:2000], headers=checksum(b""))
    assert answer.status == 460
    answer = await append(server.alice, upload, 1000, FILM[1000:2000])
    assert await stored(server, TARGET) == FILM[:2000]


async def test_nothing_of_a_broken_request_with_a_checksum_is_kept(server: Server) -> None:
    upload = await created(server.alice, TARGET, 2000)
    headers = {"Upload-Checksum": f"sha1 {base64.b64encode(bytes(20)).decode()}"}
    await append(
        server.alice, upload, 0, [b"x"], headers=headers, content_length=9, disconnect=True
    )
    assert await offset(server.alice, upload) == 0


@pytest.mark.parametrize("wrong", ["md5 AAAA", "sha1 %%%", "sha1"])
async def test_an_unknown_checksum_is_refused(server: Server, wrong: str) -> None:
    upload = await created(server.alice, TARGET, 2000)
    answer = await append(server.alice, upload, 0, b"x", headers={"Upload-Checksum": wrong})
    assert answer.status in {400, 460}
    assert await offset(server.alice, upload) == 0


# --- an upload is a PUT -----------------------------------------------------------------------


async def test_who_may_not_write_is_refused_before_a_byte_is_sent(
    server: Server, settings: Settings
) -> None:
    assert (await create(server.public, TARGET, 5)).status == 401
    assert (await create(server.bob, TARGET, 5)).status == 403
    assert drafts(settings) == []


async def test_an_upload_belongs_to_its_agent(server: Server) -> None:
    upload = await created(server.alice, TARGET, 5)
    for other in (server.bob, server.public):
        assert (await inspect(other, upload)).status == 404
        assert (await append(other, upload, 0, b"evil!")).status == 404
        assert (await cancel(other, upload)).status == 404
    assert await offset(server.alice, upload) == 0


async def test_access_is_decided_again_at_the_end(server: Server) -> None:
    await server.alice.put("/alice/shared/", None, TURTLE)
    rule = f"acl:agent <{server.bob_web_id}>"
    await server.put_acl("/alice/shared/", (rule, "+Read +Write"))
    upload = await created(server.bob, "/alice/shared/a.txt", 5)
    await append(server.bob, upload, 0, b"hel")
    await server.put_acl("/alice/shared/")
    assert (await append(server.bob, upload, 3, b"lo")).status == 403
    assert (await server.alice.get("/alice/shared/a.txt")).status == 404
    # The last byte is missing, so the client can try again once it may.
    assert await offset(server.bob, upload) == 4
    await server.put_acl("/alice/shared/", (rule, "+Read +Write"))
    assert (await append(server.bob, upload, 4, b"o")).status == 204
    assert await stored(server, "/alice/shared/a.txt") == b"hello"


async def test_a_name_that_is_taken_is_refused_at_the_beginning_and_at_the_end(
    server: Server,
) -> None:
    upload = await created(server.alice, TARGET, len(FILM), if_none_match="*")
    await append(server.alice, upload, 0, FILM[:-10])
    await server.alice.put(TARGET, b"first", "text/plain")
    assert (await append(server.alice, upload, len(FILM) - 10, FILM[-10:])).status == 412
    assert await stored(server, TARGET) == b"first"
    assert (await create(server.alice, TARGET, 5, if_none_match="*")).status == 412
    # As soon as the name is free, the byte that is missing is enough.
    await server.alice.delete(TARGET)
    at = await offset(server.alice, upload)
    assert at == len(FILM) - 1
    assert (await append(server.alice, upload, at, FILM[-1:])).status == 204
    assert await stored(server, TARGET) == FILM


async def test_a_version_can_be_replaced_by_its_entity_tag(server: Server) -> None:
    answer = await server.alice.put(TARGET, b"first", "text/plain")
    etag = answer.header("etag") or ""
    upload = await created(server.alice, TARGET, 5, if_match=etag)
    assert (await append(server.alice, upload, 0, b"other")).status == 204
    assert (await create(server.alice, TARGET, 5, if_match=etag)).status == 412


async def test_linked_data_is_checked_like_that_of_a_put(server: Server) -> None:
    target = "/alice/private/data.ttl"
    upload = await created(server.alice, target, 5)
    assert (await append(server.alice, upload, 0, b"<a> <")).status == 400
    assert (await server.alice.get(target)).status == 404
    content = b"<> a <#A>."
    upload = await created(server.alice, target, len(content))
    assert (await append(server.alice, upload, 0, content)).status == 204
    assert (await server.alice.get(target)).header("content-type") == TURTLE


async def test_linked_data_beyond_its_limit_is_refused_at_the_beginning(start: Start) -> None:
    server = await start(max_rdf_bytes=1000)
    assert (await create(server.alice, "/alice/private/data.ttl", 1001)).status == 413


async def test_a_body_beyond_the_limit_is_refused_at_the_beginning(start: Start) -> None:
    server = await start(max_body_bytes=1000)
    assert (await create(server.alice, TARGET, 1001)).status == 413


async def test_a_body_beyond_the_quota_is_refused_at_the_beginning(start: Start) -> None:
    server = await start(quota_bytes=200_000)
    assert (await create(server.alice, TARGET, 200_000)).status == 507
    # Uploads in progress take their part.
    await created(server.alice, TARGET, 120_000)
    assert (await create(server.alice, f"{TARGET}2", 120_000)).status == 507


@pytest.mark.parametrize(
    "target",
    [
        "/alice/private/",
        "/alice/private/.acl",
        "/alice/private/film.mp4.acl",
        "/alice/private/film.mp4.meta",
    ],
)
async def test_only_documents_are_uploaded(server: Server, target: str) -> None:
    assert (await create(server.alice, target, 5)).status == 409


@pytest.mark.parametrize(
    "target",
    [
        "",
        "film.mp4",
        "/alice/../bob/x",
        "/alice//x",
        "/alice/%",
        "/alice/a%00b",
        "https://x.example/a",
    ],
)
async def test_a_target_that_is_no_path_here_is_refused(server: Server, target: str) -> None:
    assert (await create(server.alice, target, 5)).status == 400


@pytest.mark.parametrize(
    "target",
    ["/.pods", "/.uploads/x", "/alice/.well-known/solid", "/idp/x", "/alice/.well-known/solid/x"],
)
async def test_a_target_of_a_service_is_not_found(server: Server, target: str) -> None:
    assert (await create(server.alice, target, 5)).status == 404


@pytest.mark.parametrize(
    ("name", "stored_at"),
    [
        ("../../bob/private/x", "/alice/private/..%2F..%2Fbob%2Fprivate%2Fx"),
        ("/etc/passwd", "/alice/private/%2Fetc%2Fpasswd"),
        ("<img src=x onerror=alert(1)>", "/alice/private/%3Cimg%20src=x%20onerror=alert(1)%3E"),
        ("a?b#c%41", "/alice/private/a%3Fb%23c%2541"),
        ("\N{SNOWMAN}", "/alice/private/%E2%98%83"),
    ],
)
async def test_a_filename_is_one_segment(server: Server, name: str, stored_at: str) -> None:
    answer = await create(server.alice, "/alice/private/", 1, body=b"x", filename=name)
    assert answer.status == 201, answer.text
    assert await stored(server, stored_at) == b"x"


@pytest.mark.parametrize("name", ["..", ".", "a\nb", "a\x00b", "a\x9fb"])
async def test_a_filename_that_is_none_is_refused(server: Server, name: str) -> None:
    answer = await create(server.alice, "/alice/private/", 1, body=b"x", filename=name)
    assert answer.status == 400


@pytest.mark.parametrize("name", ["x.acl", ".acl", "x.meta"])
async def test_a_file_does_not_become_access_rules(server: Server, name: str) -> None:
    answer = await create(server.alice, "/alice/private/", 1, body=b"x", filename=name)
    assert answer.status == 409


@pytest.mark.parametrize(
    "value", ["target", "target !", "t\u00e4rget YQ==", "target L2E=,target L2I=", "x" * 9000]
)
async def test_malformed_metadata_is_refused(server: Server, value: str) -> None:
    headers = {**tus.VERSION, "Upload-Length": "1", "Upload-Metadata": value}
    assert (await server.alice.request("POST", tus.PLACE, headers=headers)).status == 400


# --- life -------------------------------------------------------------------------------------


async def test_a_cancelled_upload_is_gone(server: Server, settings: Settings) -> None:
    upload = await created(server.alice, TARGET, 5)
    assert (await cancel(server.alice, upload)).status == 204
    assert (await inspect(server.alice, upload)).status == 404
    assert drafts(settings) == []


async def test_a_finished_upload_is_still_known_as_finished(server: Server) -> None:
    """Its client may not have received the answer to its last request."""
    upload = await created(server.alice, TARGET, 5, if_none_match="*")
    await append(server.alice, upload, 0, b"hello")
    assert await offset(server.alice, upload) == 5
    assert (await append(server.alice, upload, 5, b"")).status == 204


async def test_an_upload_expires_after_a_day_without_progress(
    start: Start, clock: FakeClock
) -> None:
    server = await start(clock=clock)
    upload = await created(server.alice, TARGET, 5)
    clock.advance(service.LIFETIME_MS / 1000 - 1)
    assert (await append(server.alice, upload, 0, b"h")).status == 204
    clock.advance(service.LIFETIME_MS / 1000 - 1)
    assert await offset(server.alice, upload) == 1
    clock.advance(2)
    assert (await inspect(server.alice, upload)).status == 404


async def test_a_sweep_removes_drafts_without_a_record_only(
    server: Server, store: SqliteStore, settings: Settings
) -> None:
    upload = await created(server.alice, TARGET, 5)
    (kept,) = drafts(settings)
    orphan = settings.root / "blobs/uploads/orphan"
    orphan.mkdir()
    (orphan / "body").write_bytes(b"x")
    for draft in (kept, orphan):
        os.utime(draft / "body", (0, 0))
        os.utime(draft, (0, 0))
    await store.sweep(now_ms=2 * 3600 * 1000)
    assert drafts(settings) == [kept]
    assert (await append(server.alice, upload, 0, b"hello")).status == 204


async def test_an_upload_whose_draft_is_missing_is_forgotten(
    server: Server, settings: Settings
) -> None:
    """As after a restore from a backup of the database."""
    upload = await created(server.alice, TARGET, 5)
    await append(server.alice, upload, 0, b"he")
    (drafts(settings)[0] / "body").unlink()
    assert (await append(server.alice, upload, 2, b"llo")).status == 404
    assert (await inspect(server.alice, upload)).status == 404


async def test_the_client_that_comes_back_ends_its_dead_connection(server: Server) -> None:
    """The server may not have noticed that the first connection is dead."""
    upload = await created(server.alice, TARGET, len(FILM))
    arrived = asyncio.Event()

    async def dead() -> AsyncIterator[bytes]:
        yield FILM[:100_000]
        arrived.set()
        await asyncio.Event().wait()

    first = asyncio.create_task(append(server.alice, upload, 0, dead(), content_length=len(FILM)))
    await arrived.wait()
    assert await offset(server.alice, upload) == 100_000
    assert (await first).status == 400
    assert (await append(server.alice, upload, 100_000, FILM[100_000:])).status == 204
    assert await stored(server, TARGET) == FILM


async def test_one_of_many_simultaneous_requests_appends(server: Server) -> None:
    upload = await created(server.alice, TARGET, 10)
    answers = await asyncio.gather(
        *(append(server.alice, upload, 0, bytes([65 + i]) * 5) for i in range(8))
    )
    assert sorted(answer.status for answer in answers) == [204] + [409] * 7
    assert await offset(server.alice, upload) == 5


async def test_a_resource_does_not_change_when_its_upload_goes_on(
    server: Server, settings: Settings
) -> None:
    """The file of a draft becomes that of the resource. If the server fails between the two
    transactions, nobody may write to that file any more."""
    upload = await created(server.alice, TARGET, len(FILM))
    await append(server.alice, upload, 0, FILM[:-1])
    (draft,) = drafts(settings)
    body = draft / "body"
    with body.open("ab") as file:
        file.write(FILM[-1:])
    published = settings.root / "blobs" / "published"
    published.hardlink_to(body)
    assert (await append(server.alice, upload, len(FILM) - 1, b"!")).status == 204
    assert published.read_bytes() == FILM
    assert await stored(server, TARGET) == FILM[:-1] + b"!"


# --- fairness ---------------------------------------------------------------------------------


async def test_one_agent_cannot_use_up_the_uploads_of_the_others(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OF_AGENT", 3)
    for number in range(3):
        await created(server.alice, f"{TARGET}{number}", 5)
    answer = await create(server.alice, TARGET, 5)
    assert (answer.status, answer.header("retry-after")) == (429, "60")
    await created(server.bob, "/bob/private/x", 5)


async def test_the_last_uploads_are_shared_out(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_IN_ALL", 6)
    monkeypatch.setattr(service, "RESERVED", 3)
    monkeypatch.setattr(service, "MAX_OF_RESERVED", 2)
    for number in range(3):
        await created(server.alice, f"{TARGET}{number}", 5)
    assert (await create(server.alice, TARGET, 5)).status == 429
    for number in range(2):
        await created(server.bob, f"/bob/private/{number}", 5)
    assert (await create(server.bob, "/bob/private/x", 5)).status == 429


async def test_the_public_uploads_where_it_may_write(server: Server) -> None:
    await server.alice.put("/alice/open/", None, TURTLE)
    await server.put_acl("/alice/open/", ("acl:agentClass foaf:Agent", "+Read +Write"))
    upload = await created(server.public, "/alice/open/x", 5)
    assert (await append(server.bob, upload, 0, b"hello")).status == 404
    assert (await append(server.public, upload, 0, b"hello")).status == 204
    assert await stored(server, "/alice/open/x") == b"hello"


async def test_pages_of_other_origins_may_read_the_fields(server: Server) -> None:
    upload = await created(server.alice, TARGET, 5)
    answer = await server.alice.request(
        "HEAD", upload, headers={**tus.VERSION, "Origin": "https://app.example"}
    )
    exposed = ", ".join(answer.header_lines("access-control-expose-headers"))
    assert {"Upload-Offset", "Location", "Tus-Resumable"} <= set(exposed.split(", "))
