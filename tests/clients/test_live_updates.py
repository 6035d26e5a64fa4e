"""Applications receive changes over solid-0.1: rdflib.js, and programs with `ws` (L-1 to L-9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client import Pod
from tests.support.client_process import ClientProcess
from tests.support.server import ServerProcess, running_server

pytestmark = pytest.mark.feature("legacy_notifications")

CHANGES = 5


@pytest.fixture(scope="module", params=[(), ("--sockets-port", "0")], ids=["http", "sockets-port"])
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ServerProcess]:
    """One for each listener that may serve the sockets."""
    root = tmp_path_factory.mktemp("clients") / "root"
    with running_server(ServerProcess(root=root, options=request.param)) as server:
        yield server


@pytest.fixture(scope="module")
def client(start_client: StartClient) -> ClientProcess:
    return start_client("live-updates.mjs")


@pytest.fixture
def public_document(home: Home, pod: Pod) -> str:
    """A document that everybody may read: rdflib.js opens its socket without a credential."""
    with pod.owner() as owner:
        path = f"{pod.root}public/{home.path.strip('/').rpartition('/')[2]}.ttl"
        assert owner.put(path, "<#it> a <#thing>.", "text/turtle").status == 201
    return f"{pod.server.base_url}{path}"


def test_an_application_is_not_made_to_reload_by_its_own_changes(
    client: ClientProcess, home: Home, public_document: str
) -> None:
    """L-7: rdflib counts each of its changes, one without effect too, and each line."""
    report = client.run("changesOfItsOwn", home.agent, url=public_document, count=CHANGES)
    assert report.value == {
        "notes": [str(number) for number in range(CHANGES)],
        "reloads": 0,
        "heard": [
            "protocol solid-0.1",
            f"ack {public_document}",
            *[f"pub {public_document}"] * (CHANGES + 1),
        ],
    }
    assert [sent.status for sent in report.sent("PATCH")] == [204] * (CHANGES + 1)
    assert len(report.sent("GET")) == 1


def test_an_application_shows_what_somebody_else_changed(
    client: ClientProcess, home: Home, public_document: str
) -> None:
    """L-5."""
    report = client.run("changesOfOthers", home.agent, url=public_document)
    assert report.value == {"before": 0, "notes": ["mine", "theirs"]}
    assert len(report.sent("GET")) == 2


def test_a_program_is_notified_of_a_document_and_its_container(
    client: ClientProcess, home: Home
) -> None:
    """L-1 to L-6."""
    url = f"{home.url}new.ttl"
    report = client.run(
        "watches", home.agent, url=url, container=home.url, token=home.pod.token
    ).value
    assert (report["protocol"], report["pong"], report["closed"]) == ("solid-0.1", "alive?", 1000)
    assert report["heard"][:3] == ["protocol solid-0.1", f"ack {url}", f"ack {home.url}"]
    assert Counter(report["heard"][3:]) == {f"pub {url}": 3, f"pub {home.url}": 3}


def test_a_program_without_credentials_cannot_watch_private_resources(
    client: ClientProcess, home: Home
) -> None:
    """L-10."""
    url = home.put("private.ttl", "<> a <#x>.")
    report = client.run("watches", home.agent, url=url, container=home.url, token=None).value
    assert report["heard"] == [
        "protocol solid-0.1",
        f"err {url} forbidden",
        f"err {home.url} forbidden",
    ]


def test_a_program_that_authenticates_in_lines_can_watch_private_resources(
    client: ClientProcess, home: Home
) -> None:
    """A page cannot set header fields on a WebSocket. It need not wait for the answer."""
    url = home.put("private.ttl", "<> a <#x>.")
    report = client.run("writesAtOnce", home.agent, url=url, token=home.pod.token).value
    assert report == ["protocol solid-0.1", f"ack {url}", f"pub {url}"]
