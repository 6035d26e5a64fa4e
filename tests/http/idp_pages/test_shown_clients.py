"""No application passes for somebody else on the page that asks for consent."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from podstead.idp.grants import ConnectedClient
from podstead.web.account.collections import shown_applications
from podstead.web.sign_in.authorization import place_of, places_of
from tests.support.application import BASE, Server, acl_turtle, password_of
from tests.support.browser import Browser
from tests.support.idp_pages import App, whole_account

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


@pytest.mark.parametrize(
    ("client_id", "hosts", "shown"),
    [
        ("0a1b2c", ("app.example",), ["app.example"]),
        ("0a1b2c", ("pods.example",), ["pods.example"]),
        ("0a1b2c", ("org.example.app:",), ["org.example.app:"]),
        ("https://app.example/id", ("app.example",), ["app.example"]),
        ("https://id.example/id", ("app.example",), ["id.example", "app.example"]),
        ("https://evil.example/id", ("pods.example",), ["evil.example", "pods.example"]),
        ("https://pods.example/bob/app", ("pods.example",), ["pods.example/bob"]),
        ("https://pods.example/bob/app", ("app.example",), ["pods.example/bob", "app.example"]),
        ("https://pods.example/bob/app", (), ["pods.example/bob"]),
        ("https://pods.example/app", ("pods.example",), ["pods.example/app"]),
        ("https://app.example/id", ("\u0430pp.example",), ["app.example", "xn--pp-6kc.example"]),
    ],
)
def test_the_places_of_a_connected_application_are_named_in_the_same_way(
    client_id: str, hosts: tuple[str, ...], shown: list[str]
) -> None:
    connection = ConnectedClient("id", client_id, None, hosts, (), since_s=1, last_used_s=None)
    assert list(places_of(connection, base_url="https://pods.example")) == shown


PODS = "https://pods.example"


def connection(number: int, *redirect_uris: str, name: str | None = None) -> ConnectedClient:
    hosts = tuple(urlsplit(each).netloc for each in redirect_uris)
    return ConnectedClient(
        f"i{number}", f"c{number}", name, hosts, (), number, number, redirect_uris
    )


def test_registrations_are_together_where_they_are_at_one_place_and_nowhere_else() -> None:
    listed = [
        connection(1, "https://app.example/a", name="A"),
        connection(2, "https://app.example/b"),
        connection(3, "https://app.example:8443/a", name="A"),
        connection(4, "https://pods.example/bob/app"),
        connection(5, "https://pods.example/carol/app"),
        connection(6, "https://app.example/a", "https://evil.example/"),
        connection(7),
        connection(8),
    ]
    shown = shown_applications(listed, base_url=PODS)
    assert [each.connection_ids for each in shown] == [
        ["i1", "i2"],
        ["i3"],
        ["i4"],
        ["i5"],
        ["i6"],
        ["i7"],
        ["i8"],
    ]
    assert [each.name for each in shown[:4]] == ["A", "A", "pods.example/bob", "pods.example/carol"]
    assert len({each.application_id for each in shown}) == len(shown)


async def test_an_application_in_a_pod_does_not_pass_for_the_server(
    server: Server, browser: Browser
) -> None:
    """A-51, A-86: Bob's document is on the provider's host, and so is where the code would go. On
    the account page it is Bob's still."""
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
    assert "An application from localhost:3000/bob<" in page.text
    assert "You will continue to <strong>localhost:3000/bob</strong>" in page.text
    page = await browser.send(page, page.path, username="alice", password=password_of("alice"))
    await browser.send(page, f"{page.path}/confirm")  # the test server is on this device
    account = await whole_account(browser)
    assert '<p class="quiet">localhost:3000/bob · Since' in account.text
