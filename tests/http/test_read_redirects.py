"""Large public content is read from S3, and nothing else is; what readers get is the same."""

from __future__ import annotations

import os
from urllib.parse import parse_qs, urlsplit

import pytest

from podstead.config import Settings
from podstead.storage.blobs.s3_location import S3Location, parse_s3_location
from podstead.web.resource_endpoint import FROM_BYTES
from tests.support.application import Server, Start
from tests.support.curl import curl
from tests.support.seaweedfs import bodies_of
from tests.support.tus import create

CONTENT = os.urandom(FROM_BYTES + 10)
FILM = "/alice/public/film.mp4"
TYPE = 'video/mp4; codecs="avc1.4d002a"'


@pytest.fixture
def location(settings: Settings) -> S3Location:
    return parse_s3_location(bodies_of(settings.root))


@pytest.fixture
async def redirecting(start: Start, location: S3Location) -> Server:
    server = await start(bodies=location, redirect_large_reads=True)
    answer = await server.alice.put(FILM, CONTENT, TYPE)
    assert answer.status == 201, answer.text
    return server


async def test_who_reads_a_large_public_film_gets_it_from_s3(
    redirecting: Server, location: S3Location
) -> None:
    origin = "https://app.example"
    answer = await redirecting.public.get(
        FILM, **{"Sec-Fetch-Site": "cross-site", "Origin": origin}
    )
    assert (answer.status, answer.body) == (307, b"")
    address = answer.header("location")
    assert address is not None
    assert address.startswith(f"{location.endpoint}/{location.bucket}/{location.prefix}/bodies/")
    assert parse_qs(urlsplit(address).query)["X-Amz-Expires"] == ["300"]
    assert answer.header("cache-control") == "no-store"
    assert answer.header("wac-allow") == 'user="read",public="read"'
    assert "acl" in (answer.header("link") or "")
    assert answer.header("access-control-allow-origin") == origin
    # Those of S3 are others.
    assert answer.header("etag") is answer.header("last-modified") is None
    sent = curl("--dump-header", "-", address)
    head, _, body = sent.body.partition(b"\r\n\r\n")
    assert (sent.status, body) == (200, CONTENT)
    assert f"content-type: {TYPE}".encode() in head.lower()
    part = await redirecting.public.get(FILM, Range="bytes=10-19")
    assert part.status == 307
    sent = curl("--header", "Range: bytes=10-19", part.header("location") or "")
    assert (sent.status, sent.body) == (206, CONTENT[10:20])


@pytest.mark.feature("uploads")
async def test_copies_and_uploads_are_redirected_as_well(redirecting: Server) -> None:
    copy = "/alice/public/copy.mp4"
    answer = await redirecting.alice.request("COPY", FILM, headers={"Destination": copy})
    assert answer.status == 201, answer.text
    assert (await redirecting.public.get(copy)).status == 307
    upload = "/alice/public/uploaded.mp4"
    answer = await create(redirecting.alice, upload, len(CONTENT), body=CONTENT, filetype=TYPE)
    assert answer.status == 201, answer.text
    assert (await redirecting.public.get(upload)).status == 307


async def test_the_server_answers_all_other_requests_itself(redirecting: Server) -> None:
    read = await redirecting.alice.get(FILM)
    assert (read.status, read.body) == (200, CONTENT), "S3 would refuse the credentials"
    etag = read.header("etag") or ""
    asked: list[tuple[str, dict[str, str], int]] = [
        ("HEAD", {}, 200),
        ("GET", {"If-None-Match": etag}, 304),
        ("GET", {"If-None-Match": '"another"'}, 200),
        ("GET", {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 200),
        ("GET", {"If-Match": '"another"'}, 412),
        ("GET", {"Range": "bytes=0-9", "If-Range": etag}, 206),
        ("GET", {"Range": f"bytes={len(CONTENT)}-"}, 416),
        ("GET", {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "video"}, 200),
        ("GET", {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate"}, 200),
        ("GET", {"Accept": "text/html,*/*;q=0.8"}, 200),
        ("GET", {"Accept": "text/turtle, video/mp4;q=0"}, 406),
    ]
    for method, headers, status in asked:
        answer = await redirecting.public.request(method, FILM, headers=headers)
        assert answer.status == status, (method, headers)


@pytest.mark.parametrize(
    ("content_type", "size_bytes"),
    [
        ("video/mp4", FROM_BYTES - 1),
        ("text/html", FROM_BYTES),
        ("image/svg+xml", FROM_BYTES),
        ("text/javascript", FROM_BYTES),
        ("application/xml", FROM_BYTES),
    ],
)
async def test_little_content_and_what_browsers_run_comes_from_the_server(
    redirecting: Server, content_type: str, size_bytes: int
) -> None:
    """All pods share the origin of the bucket, and no policy of the server holds there."""
    path = "/alice/public/other"
    assert (await redirecting.alice.put(path, bytes(size_bytes), content_type)).status == 201
    assert (await redirecting.public.get(path)).status == 200


@pytest.mark.parametrize("name", ["a  b", "a\tb", "a" * 300])
async def test_a_type_that_s3_may_refuse_is_not_sent_there(redirecting: Server, name: str) -> None:
    """S3 takes several spaces for one when it verifies a signature, which has to hold for as many
    as were sent."""
    path, content_type = "/alice/public/image", f'image/png; name="{name}"'
    assert (await redirecting.alice.put(path, CONTENT, content_type)).status == 201
    answer = await redirecting.public.get(path)
    assert (answer.status, answer.header("content-type")) == (200, content_type)


async def test_what_is_not_public_is_never_redirected(redirecting: Server) -> None:
    path = "/alice/private/film.mp4"
    assert (await redirecting.alice.put(path, CONTENT, "video/mp4")).status == 201
    assert (await redirecting.alice.get(path)).status == 200
    refused = await redirecting.public.get(path)
    assert (refused.status, refused.header("location")) == (401, None)
    await redirecting.put_acl(path, (f"acl:agent <{redirecting.bob_web_id}>", "Read"))
    assert (await redirecting.bob.get(path)).status == 200
    await redirecting.put_acl(path, ("acl:agentClass acl:AuthenticatedAgent", "Read"))
    assert (await redirecting.bob.get(path)).status == 200
    assert (await redirecting.public.get(path)).status == 401
    await redirecting.put_acl(path, ("acl:agentClass foaf:Agent", "Read"))
    assert (await redirecting.public.get(path)).status == 307
    await redirecting.put_acl(path)
    assert (await redirecting.public.get(path)).status == 401


async def test_nothing_is_redirected_by_default(start: Start, location: S3Location) -> None:
    server = await start(bodies=location)
    await server.alice.put(FILM, CONTENT, TYPE)
    answer = await server.public.get(FILM)
    assert (answer.status, answer.body) == (200, CONTENT)
