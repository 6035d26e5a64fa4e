"""No application passes for somebody else on the page that asks for consent."""

from __future__ import annotations

import json

import pytest

from podstead.web.idp.shown_clients import place_of
from tests.http.conftest import BASE, Server, acl_turtle
from tests.http.idp_pages.conftest import App
from tests.support.browser import Browser

BOBS = f"{BASE}/bob/public"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://app.example/a/b?c", "app.example"),
        ("https://App.example:8443/", "app.example:8443"),
        ("http://[::1]:5000/callback", "[::1]:5000"),
        ("org.example.app:/callback", "org.example.app:"),
        ("https://\u0430pp.example/", "xn--pp-6kc.example"),
        ("https://ex\u00e4mple.org/app", "xn--exmple-cua.org"),
        (f"https://{'a' * 80}\u00e4.example/", f"{'a' * 80}\\xe4.example"),
        ("https://pods.example/bob/app", "pods.example/bob"),
        ("https://PODS.example:443/bob/app", "pods.example:443/bob"),
        ("https://pods.example/alice/../bob/app", "pods.example/bob"),
        ("https://pods.example/alice/%2E%2e/bob/app", "pods.example/bob"),
        ("https://pods.example//bob/app", "pods.example/bob"),
        ("https://pods.example/", "pods.example"),
        ("https://pods.example", "pods.example"),
        ("http://pods.example/bob/", "pods.example"),
    ],
)
def test_a_place_is_named_so_that_nobody_passes_for_another(url: str, shown: str) -> None:
    assert place_of(url, base_url="https://pods.example") == shown


async def test_an_application_in_a_pod_does_not_pass_for_the_server(
    server: Server, browser: Browser
) -> None:
    """A-51: Bob's document is on the provider's host, and so is where the code would go."""
    document = {
        "client_id": f"{BOBS}/app",
        "client_name": "localhost:3000",
        "redirect_uris": [f"{BOBS}/app.html"],
    }
    put = await server.bob.put("/bob/public/app", json.dumps(document), "application/json")
    assert put.status == 201, put.text
    rules = acl_turtle(
        "/bob/public/app",
        (f"acl:agent <{server.bob_web_id}>", "Read Write Control"),
        ("acl:agentClass foaf:Agent", "Read"),
        owner=False,
    )
    assert (await server.bob.put("/bob/public/app.acl", rules, "text/turtle")).status == 201
    app = App(server, f"{BOBS}/app")
    page = await browser.get(app.request(redirect_uri=f"{BOBS}/app.html"))
    assert "An application of localhost:3000/bob<" in page.text
    assert "You will go on to <strong>localhost:3000/bob</strong>" in page.text
