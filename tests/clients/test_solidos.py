"""What SolidOS does by rdflib.js; its listings: test_rdflib.py."""

from __future__ import annotations

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import Agent, ClientProcess

ACL = "http://www.w3.org/ns/auth/acl#"


@pytest.fixture(scope="module")
def solidos(start_client: StartClient) -> ClientProcess:
    return start_client("solidos.mjs")


def reads(home: Home, *agents: Agent | None) -> list[int]:
    """The statuses that each of some agents gets for the document ``it``."""
    return [
        home.pod.server.get(
            home.path + "it", {"Authorization": f"Bearer {agent.token}"} if agent else {}
        ).status
        for agent in agents
    ]


def test_a_profile_is_read_at_the_webid(solidos: ClientProcess, home: Home) -> None:
    """With what SolidOS looks up next; the preferences file is there as well."""
    root = home.pod.server.base_url + home.pod.root
    assert solidos.run("readProfile", home.agent).value == {
        "isPerson": True,
        "name": home.pod.name,
        "storage": root,
        "inbox": root + "inbox/",
        "publicTypeIndex": root + "settings/publicTypeIndex.ttl",
        "privateTypeIndex": root + "settings/privateTypeIndex.ttl",
    }


def test_a_document_is_registered_in_the_type_index(solidos: ClientProcess, home: Home) -> None:
    """And everybody finds it there."""
    url = home.url + "bookmarks"
    kind = "http://www.w3.org/2002/01/bookmark#Bookmark"
    index = solidos.run("registerInTypeIndex", home.agent, url=url, kind=kind).value
    answer = home.pod.server.get(index.removeprefix(home.pod.server.base_url))
    assert answer.status == 200
    assert url in answer.text
    assert kind in answer.text


def test_a_whole_acl_is_put_and_put_again(solidos: ClientProcess, home: Home, other: Agent) -> None:
    """For an agent, then for everybody who signs in, then for all."""
    url = home.put("it", "<> a <#it>.")
    assert reads(home, None, other) == [401, 403]
    shared = solidos.run("share", home.agent, url=url, how="agent", whom=other.web_id)
    assert shared.value == {"acl": url + ".acl", "missing": True}
    assert reads(home, None, other) == [401, 200]
    nobody = "https://nobody.example/#me"
    again = solidos.run("share", home.agent, url=url, how="agent", whom=nobody)
    assert again.value == {"acl": url + ".acl", "missing": False}
    assert reads(home, None, other) == [401, 403]
    assert [sent.status for sent in again.sent("PUT")] == [204]


@pytest.mark.parametrize(
    ("whom", "expected"),
    [
        (f"{ACL}AuthenticatedAgent", [401, 200, 200]),
        ("http://xmlns.com/foaf/0.1/Agent", [200, 200, 200]),
    ],
)
def test_classes_of_agents_get_access(
    solidos: ClientProcess, home: Home, other: Agent, whom: str, expected: list[int]
) -> None:
    """Everybody who signs in, and everybody."""
    url = home.put("it", "<> a <#it>.")
    solidos.run("share", home.agent, url=url, how="agentClass", whom=whom)
    assert reads(home, None, other, home.agent) == expected


def test_a_group_is_made_shared_with_and_left(
    solidos: ClientProcess, home: Home, other: Agent
) -> None:
    """``vcard:Group`` in a document of the same pod; leaving it is felt at once."""
    url = home.put("it", "<> a <#it>.")
    group = home.url + "team"
    solidos.run("makeGroup", home.agent, url=group, members=[other.web_id])
    solidos.run("share", home.agent, url=url, how="agentGroup", whom=f"{group}#this")
    assert reads(home, None, other, home.agent) == [401, 200, 200]
    solidos.run("removeMember", home.agent, url=group, member=other.web_id)
    assert reads(home, None, other, home.agent) == [401, 403, 200]
