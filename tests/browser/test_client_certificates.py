"""A browser sends its certificate with requests of any page; only those of its owner are accepted.

A-170: with a real browser that holds a certificate, and pages of this server and of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.application_page import running_application
from tests.support.certificates import holder, key_turtle, rsa_key
from tests.support.client import Pod, create_pod
from tests.support.listeners import LISTENERS, client_tls
from tests.support.server import ServerProcess, running_server

pytestmark = [pytest.mark.feature("webid_tls"), pytest.mark.needs("chromium")]

ASK = """async ([url, init]) => {
    try {
        const answer = await fetch(url, init);
        return [answer.status, await answer.text()];
    } catch (error) {
        return [0, String(error)];
    }
}"""
STORED = "<!doctype html><title>Stored</title><p>A page of the pod"


def _site() -> Iterator[str]:
    with running_application() as url:
        yield url.removesuffix("/")


@pytest.fixture(scope="module")
def other_site() -> Iterator[str]:
    """The origin of a site that has nothing to do with the server."""
    yield from _site()


@pytest.fixture(scope="module")
def friend() -> Iterator[str]:
    """The origin of a site that the operator lets use the certificates of its visitors."""
    yield from _site()


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory, friend: str) -> Iterator[Pod]:
    """A pod whose owner has a certificate, with a private document and a page."""
    root = tmp_path_factory.mktemp("certificates") / "root"
    options = (*LISTENERS["webid-tls"], "--client-cert-origin", friend)
    with running_server(ServerProcess(root, options, tls=client_tls())) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            assert owner.put(f"{pod.root}private/doc", "text").status == 201
            page = owner.put(f"{pod.root}public/page", STORED, "text/html")
            assert page.status == 201
            assert owner.put(pod.root, key_turtle(rsa_key()), "text/turtle").status == 204
        yield pod


@dataclass(frozen=True)
class Visitor:
    """The owner at their browser, which has their certificate."""

    page: Page
    pod: Pod

    @property
    def origin(self) -> str:
        return self.pod.server.base_url

    @property
    def doc(self) -> str:
        return f"{self.origin}{self.pod.root}private/doc"

    def fetch(self, url: str, **init: object) -> tuple[int, str]:
        status, text = self.page.evaluate(ASK, [url, {"credentials": "include", **init}])
        return int(status), str(text)


@pytest.fixture
def visitor(chromium: Browser, pod: Pod, tmp_path: Path) -> Visitor:
    certificate, key = holder(pod.web_id).write(tmp_path)
    context = chromium.new_context(
        service_workers="block",
        ignore_https_errors=True,  # the server's certificate is of its own making
        client_certificates=[
            {"origin": pod.server.base_url, "certPath": certificate, "keyPath": key}
        ],
    )
    return Visitor(context.new_page(), pod)


def test_who_goes_there_themselves_is_known(visitor: Visitor) -> None:
    answer = visitor.page.goto(visitor.doc)
    assert answer is not None
    assert (answer.status, answer.text()) == (200, "text")


def test_a_page_of_another_site_gets_what_the_public_gets(
    visitor: Visitor, other_site: str
) -> None:
    visitor.page.goto(other_site)
    status, text = visitor.fetch(visitor.doc)
    assert (status, "Authentication required" in text) == (401, True)
    status, _ = visitor.fetch(visitor.doc, method="PUT", body="changed")
    assert status == 401
    status, _ = visitor.fetch(f"{visitor.origin}{visitor.pod.root}")
    assert status == 200
    # What needs no permission of the server to be sent: a link, and a form.
    with visitor.page.expect_navigation(url="**/.pages/sign-in**"):
        visitor.page.evaluate("url => { location.href = url }", visitor.doc)
    visitor.page.goto(other_site)
    inbox = f"{visitor.origin}{visitor.pod.root}private/"
    with visitor.page.expect_navigation(url=inbox) as sent:
        visitor.page.evaluate(
            """url => {
                const form = document.createElement("form");
                form.action = url;
                form.method = "post";
                document.body.append(form);
                form.submit();
            }""",
            inbox,
        )
    assert sent.value.status == 401
    visitor.page.goto(visitor.doc)
    assert "text" in visitor.page.content()


def test_a_stored_page_acts_for_nobody(visitor: Visitor) -> None:
    """It has an origin of its own, though it lies on this server (R-15)."""
    visitor.page.goto(f"{visitor.origin}{visitor.pod.root}public/page")
    assert visitor.page.title() == "Stored"
    assert visitor.fetch(visitor.doc)[0] == 401
    assert visitor.fetch(visitor.doc, method="PUT", body="changed")[0] == 401


def test_a_site_that_the_operator_lets_may_use_the_certificate(
    visitor: Visitor, friend: str
) -> None:
    visitor.page.goto(friend)
    assert visitor.fetch(visitor.doc) == (200, "text")
