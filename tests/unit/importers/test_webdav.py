"""A WebDAV server that answers with what it should not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from podstead.importers.folders import Unreadable
from podstead.importers.values import FoundResource, LeftOut
from podstead.importers.webdav import WebDavFolder, WebDavRefused
from podstead.outbound.fetch import trusted_certificates
from podstead.outbound.guard import Guard
from podstead.outbound.urls import UrlRules
from tests.support.peer import Peer, ScriptedResolver, answer, redirect

FOLDER = "<d:resourcetype><d:collection/></d:resourcetype>"


def listing(*members: tuple[str, str]) -> bytes:
    responses = "".join(
        f"<d:response><d:href>{href}</d:href><d:propstat><d:prop>{properties}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        for href, properties in members
    )
    return f'<d:multistatus xmlns:d="DAV:">{responses}</d:multistatus>'.encode()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()


def folder(peer: Peer) -> WebDavFolder:
    guard = Guard(UrlRules(loopback_allowed=True), ScriptedResolver({}))
    return WebDavFolder(peer.url("/files"), guard, tls=trusted_certificates())


async def everything(found: WebDavFolder) -> list[FoundResource | LeftOut]:
    return [each async for each in found.resources()]


async def test_only_members_of_the_folder_are_followed(peer: Peer) -> None:
    peer.replies["/files/"] = answer(
        "207 Multi-Status",
        body=listing(
            ("/files/", FOLDER),
            ("/files/a.txt", "<d:getcontenttype>text/plain; charset=utf-8</d:getcontenttype>"),
            ("/files/inner", FOLDER),
            ("/files/rules.acl", ""),
            ("/other/secret.txt", ""),
            ("/files/../secret.txt", ""),
            ("/files/%2E%2E/secret.txt", ""),
            ("/files//b.txt", ""),
            ("http://elsewhere.example/files/c.txt", ""),
            ("", ""),
        ),
    )
    # The folder says that it contains itself and the one above it.
    peer.replies["/files/inner/"] = answer(
        "207 Multi-Status",
        body=listing(("/files/inner/", FOLDER), ("/files/", FOLDER), ("/files/inner/d.ttl", "")),
    )
    found = await everything(folder(peer))
    taken = {each.path: each for each in found if isinstance(each, FoundResource)}
    assert set(taken) == {"", "a.txt", "inner/", "inner/d.ttl"}
    assert taken["a.txt"].content_type == "text/plain; charset=utf-8"
    assert taken["inner/d.ttl"].content_type == "text/turtle"
    assert {request.path for request in peer.requests} == {"/files/", "/files/inner/"}


@pytest.mark.parametrize(
    "body",
    [
        b"not XML",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><d:multistatus xmlns:d="DAV:">&a;</d:multistatus>',
        b"",
    ],
)
async def test_a_list_that_is_none_is_refused(peer: Peer, body: bytes) -> None:
    peer.replies["/files/"] = answer("207 Multi-Status", body=body)
    with pytest.raises(WebDavRefused):
        await everything(folder(peer))


async def test_redirects_are_not_followed_and_missing_files_are_reported(peer: Peer) -> None:
    peer.replies["/files/"] = redirect(peer.url("/other/"))
    with pytest.raises(WebDavRefused, match="302"):
        await everything(folder(peer))
    gone = FoundResource("gone.txt", peer.url("/files/gone.txt"), "text/plain", content=b"")
    with pytest.raises(Unreadable, match="404"):
        async for _ in folder(peer).content(gone):
            pass
