"""nostr-tools, the library of Nostr applications on the web, signing requests (NIP-98)."""

from __future__ import annotations

import itertools

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import ClientProcess
from tests.support.rdf import TURTLE

pytestmark = pytest.mark.feature("nostr")

_numbers = itertools.count()


@pytest.fixture(scope="module")
def client(start_client: StartClient) -> ClientProcess:
    return start_client("nostr-tools.mjs")


def key_let_in(client: ClientProcess, home: Home) -> str:
    """The name of a new key of the client's that may use the container."""
    name = f"key-{next(_numbers)}"
    public = client.run("makeKey", name=name).value
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"[] a acl:Authorization; acl:agent <{home.pod.web_id}>, <did:nostr:{public}>;\n"
        "acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
    )
    assert home.owner.put(home.path + ".acl", rules, TURTLE).status == 201
    return name


def test_an_object_is_signed_stored_and_read(client: ClientProcess, home: Home) -> None:
    """The library's own examples sign the method in lower case."""
    name = key_let_in(client, home)
    note = {"text": "Grüße \U0001f511", "n": 1.5, "inner": {"b": None, "a": [True]}}
    url = home.url + "note"
    assert client.run("send", name=name, url=url, method="put", payload=note).value["status"] == 201
    stored = home.get("note")
    read = client.run("send", name=name, url=url, method="get").value
    assert read == {"status": 200, "text": stored.text}
    assert stored.headers["content-type"] == "application/json"
    posted = client.run("send", name=name, url=home.url, method="post", payload=note).value
    assert posted["status"] == 201
    assert len(home.members()) == 2
    assert client.run("send", name=name, url=url, method="delete").value["status"] == 204


def test_another_object_than_the_signed_one_is_not_stored(
    client: ClientProcess, home: Home
) -> None:
    name = key_let_in(client, home)
    sent = client.run(
        "send",
        name=name,
        url=home.url + "note",
        method="put",
        payload={"a": 1},
        sentPayload={"a": 2},
    ).value
    assert sent["status"] == 401
    assert home.members() == set()


def test_a_key_that_no_rule_names_is_refused(client: ClientProcess, home: Home) -> None:
    home.put("note", "x", "text/plain")
    client.run("makeKey", name="stranger")
    read = client.run("send", name="stranger", url=home.url + "note", method="get").value
    assert read["status"] == 403


def test_the_url_is_signed_as_a_program_writes_it(client: ClientProcess, home: Home) -> None:
    """A-144: what `fetch` makes of it is the same URL."""
    name = key_let_in(client, home)
    for written in ("a b", "é", "a%20c", "q?x=a b&y='é'#part"):
        sent = client.run("send", name=name, url=home.url + written, method="put", payload={})
        assert sent.value["status"] == 201, written
    assert home.members() == {"a%20b", "%C3%A9", "a%20c", "q"}


def test_a_token_is_for_one_request(client: ClientProcess, home: Home) -> None:
    name = key_let_in(client, home)
    home.put("note", "x", "text/plain")
    url = home.url + "note"
    assert client.run("sendTwice", name=name, url=url).value == [200, 401]
    for signed in (f"{url}?", f"{url}#x", url):
        asked = client.run("sendElsewhere", name=name, signedUrl=signed, url=url)
        assert asked.value == 200
    for signed in (f"{url}/", home.url, f"{url}?a", home.pod.server.base_url):
        asked = client.run("sendElsewhere", name=name, signedUrl=signed, url=url)
        assert asked.value == 401
