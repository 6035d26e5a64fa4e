"""Clients follow the redirect to S3, which lets every origin read: curl, and browsers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from podstead.web.resource_endpoint import FROM_BYTES
from tests.support.client import Client, create_pod
from tests.support.curl import curl
from tests.support.seaweedfs import s3_environment, shared_s3_server
from tests.support.server import ServerProcess, running_server
from tests.support.websites import running_website

pytestmark = pytest.mark.needs("chromium")

CONTENT = os.urandom(FROM_BYTES)
READ = """async ([url, range]) => {
    try {
        const answer = await fetch(url, {headers: range ? {Range: range} : {}});
        const bytes = new Uint8Array(await answer.arrayBuffer());
        return [answer.status, new URL(answer.url).origin, bytes.length, bytes[0]];
    } catch (error) { return error.name; }
}"""


def test_clients_get_the_content_from_s3(tmp_path: Path, page: Page) -> None:
    s3 = shared_s3_server()
    url = s3.new_location()
    options = ("--workers", "1", "--bodies", url, "--redirect-large-reads")
    server = ServerProcess(tmp_path / "root", options, environment=s3_environment())
    with running_server(server), running_website() as website:
        pod = create_pod(server)
        film = f"{pod.root}public/film.mp4"
        with Client(server, token=pod.token) as owner:
            assert owner.put(film, CONTENT, "video/mp4").status == 201
        film = server.base_url + film
        assert curl(film).status == 307
        assert curl("--location", film).body == CONTENT
        part = curl("--location", "--range", "5-14", film)
        assert (part.status, part.body) == (206, CONTENT[5:15])

        page.goto(website.publish("/", "<!doctype html><title>App</title>", "text/html"))
        first, size_bytes = CONTENT[0], len(CONTENT)
        assert page.evaluate(READ, [film, None]) == [200, s3.endpoint, size_bytes, first]
        assert page.evaluate(READ, [film, "bytes=5-14"]) == [206, s3.endpoint, 10, CONTENT[5]]
