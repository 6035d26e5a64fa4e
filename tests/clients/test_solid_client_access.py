"""@inrupt/solid-client reads and writes access rules."""

from __future__ import annotations

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client import Client
from tests.support.client_process import Agent, ClientFailed, ClientProcess
from tests.support.server import ServerProcess

NOTHING = {"read": False, "append": False, "write": False, "control": False}
READ = NOTHING | {"read": True}
APPEND = NOTHING | {"append": True}
ALL = dict.fromkeys(NOTHING, True)


@pytest.fixture(scope="module")
def access(start_client: StartClient) -> ClientProcess:
    return start_client("solid-client-access.mjs")


def status(server: ServerProcess, agent: Agent | None, method: str, target: str) -> int:
    """What the server answers to an agent, asked by another client."""
    with Client(server, token=agent.token if agent else None) as client:
        return client.request(method, target).status


def private_acl(home: Home) -> str:
    """The ACL that a new container in ``private/`` inherits."""
    return f"{home.pod.server.base_url}{home.pod.root}private/.acl"


@pytest.mark.parametrize(
    ("behaviour", "content_type"),
    [
        ("readDatasetWithAcl", "text/turtle"),
        ("readFileWithAcl", "image/png"),
        ("readInfoWithAcl", "text/plain"),
    ],
)
def test_a_resource_without_rules_has_those_of_a_container_above(
    access: ClientProcess, home: Home, behaviour: str, content_type: str
) -> None:
    """Its own ACL is a 404, then the library looks upwards by HEAD."""
    url = home.put("it", "", content_type)
    report = access.run(behaviour, home.agent, url=url)
    assert report.value["own"] is None
    assert report.value["fallback"] == private_acl(home)
    assert report.value["public"] == NOTHING
    assert report.value["agents"] == {home.agent.web_id: ALL}
    statuses = {sent.url: sent.status for sent in report.sent("GET")}
    assert statuses[url + ".acl"] == statuses[home.url + ".acl"] == 404
    assert [sent.url for sent in report.sent("HEAD")][-2:] == [
        home.url,
        private_acl(home).removesuffix(".acl"),
    ]


def test_rules_of_its_own_are_found_with_a_resource(access: ClientProcess, home: Home) -> None:
    url = home.put("it", "<> a <#it>.")
    home.put("it.acl", home.pod.acl(home.path + "it", public=["Read"]))
    report = access.run("readInfoWithAcl", home.agent, url=url)
    assert report.value == {
        "hasAccessibleAcl": True,
        "own": url + ".acl",
        "fallback": None,
        "public": READ,
        "agents": {home.agent.web_id: ALL},
    }


def test_the_way_up_to_the_server_root_ends_without_an_error(
    access: ClientProcess, home: Home, other: Agent
) -> None:
    """To who may read no rules, the search goes on up to the origin's root."""
    root = home.pod.server.base_url + home.pod.root
    report = access.run("readInfoWithAcl", other, url=root + "public/")
    assert report.value["own"] is None
    assert report.value["fallback"] is None
    assert {sent.url: sent.status for sent in report.sent("GET")} == {
        root + "public/.acl": 403,
        root + ".acl": 403,
    }
    assert [(sent.url, sent.status) for sent in report.sent("HEAD")] == [
        (root + "public/", 200),
        (root, 200),
        (home.pod.server.base_url + "/", 200),
    ]


def test_the_way_up_ends_at_a_container_that_may_not_be_read(
    access: ClientProcess, home: Home, other: Agent
) -> None:
    """The library gives up on the 403, although the resource itself was read."""
    url = home.put("it", "<> a <#it>.")
    home.put("it.acl", home.pod.acl(home.path + "it", public=["Read"]))
    with pytest.raises(ClientFailed) as failed:
        access.run("readDatasetWithAcl", other, url=url)
    assert failed.value.status == 403
    assert [sent.status for sent in failed.value.requests] == [200, 403, 403]


def test_the_library_keeps_the_rule_by_which_strangers_read_the_profile(
    access: ClientProcess, home: Home, other: Agent
) -> None:
    """It is about a fragment of the root, so the root itself is not public to the library."""
    server, root = home.pod.server, home.pod.root
    url = server.base_url + root
    report = access.run("readInfoWithAcl", home.agent, url=url)
    assert report.value["public"] == NOTHING
    report = access.run(
        "letPublicAndAgent",
        home.agent,
        url=url,
        agent=other.web_id,
        publicModes=NOTHING,
        agentModes=READ,
    )
    assert report.value["agent"]["read"]
    with Client(server) as stranger, Client(server, token=other.token) as friend:
        profile = stranger.get(root)
        assert (profile.status, "contains" in profile.text) == (200, False)
        assert "contains" in friend.get(root).text
    access.run(
        "letPublicAndAgent",
        home.agent,
        url=url,
        agent=other.web_id,
        publicModes=NOTHING,
        agentModes=NOTHING,
    )
    with Client(server, token=other.token) as friend:
        assert "contains" not in friend.get(root).text


def test_rules_that_the_library_saves_hold_at_once(
    access: ClientProcess, home: Home, other: Agent
) -> None:
    """Made from those that held before, by a PATCH that creates the ACL."""
    url = home.put("it", "<> a <#it>.")
    target, server = home.path + "it", home.pod.server
    assert status(server, None, "GET", target) == 401
    report = access.run(
        "letPublicAndAgent",
        home.agent,
        url=url,
        agent=other.web_id,
        publicModes=READ,
        agentModes=READ | APPEND,
    )
    assert report.value["public"] == READ
    assert report.value["agent"]["append"]
    [patch] = report.sent("PATCH")
    assert (patch.url, patch.status) == (url + ".acl", 201)
    assert status(server, None, "GET", target) == 200
    assert status(server, other, "DELETE", target) == 403
    assert status(server, home.agent, "GET", target + ".acl") == 200
    described = server.get(target).headers["wac-allow"]
    assert 'public="read"' in described


def test_saved_rules_can_be_narrowed_again(access: ClientProcess, home: Home, other: Agent) -> None:
    """The second time the ACL that the first time made is changed."""
    url = home.put("it", "<> a <#it>.")
    for modes, expected in ((READ, 200), (NOTHING, 403)):
        access.run(
            "letPublicAndAgent",
            home.agent,
            url=url,
            agent=other.web_id,
            publicModes=NOTHING,
            agentModes=modes,
        )
        assert status(home.pod.server, other, "GET", home.path + "it") == expected
    assert status(home.pod.server, home.agent, "DELETE", home.path + "it") == 204


def test_rules_for_what_a_container_holds_do_not_open_the_container(
    access: ClientProcess, home: Home
) -> None:
    """``acl:default`` as the library writes it."""
    home.put("it", "<> a <#it>.")
    access.run("letPublicReadMembers", home.agent, url=home.url)
    assert status(home.pod.server, None, "GET", home.path + "it") == 200
    assert status(home.pod.server, None, "GET", home.path) == 401
    assert status(home.pod.server, home.agent, "GET", home.path) == 200


def test_a_group_gets_access(access: ClientProcess, home: Home, other: Agent) -> None:
    """``acl:agentGroup`` with the members that a document of the pod lists."""
    url = home.put("it", "<> a <#it>.")
    group = home.put(
        "team",
        f"@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. "
        f"<#all> a vcard:Group; vcard:hasMember <{other.web_id}>.",
    )
    assert status(home.pod.server, other, "GET", home.path + "it") == 403
    report = access.run("letGroup", home.agent, url=url, group=f"{group}#all", modes=READ)
    assert report.value == READ
    assert status(home.pod.server, other, "GET", home.path + "it") == 200
    assert status(home.pod.server, other, "DELETE", home.path + "it") == 403
    assert status(home.pod.server, None, "GET", home.path + "it") == 401


def test_rules_are_deleted_and_those_above_hold_again(access: ClientProcess, home: Home) -> None:
    url = home.put("it", "<> a <#it>.")
    home.put("it.acl", home.pod.acl(home.path + "it", public=["Read"]))
    assert status(home.pod.server, None, "GET", home.path + "it") == 200
    report = access.run("removeAcl", home.agent, url=url)
    assert report.value["own"] is None
    assert report.value["fallback"] == private_acl(home)
    assert status(home.pod.server, None, "GET", home.path + "it") == 401


def test_the_universal_interface_grants_an_agent_access(
    access: ClientProcess, home: Home, other: Agent
) -> None:
    """Which first asks for an ACR, the other kind of access control, and finds none."""
    url = home.put("it", "<> a <#it>.")
    modes = {"read": True, "append": True}
    report = access.run("universallyLet", home.agent, url=url, agent=other.web_id, modes=modes)
    granted = {
        "read": True,
        "append": True,
        "write": False,
        "controlRead": False,
        "controlWrite": False,
    }
    assert report.value["set"] == report.value["got"] == granted
    assert report.value["all"] == {
        other.web_id: granted,
        home.agent.web_id: dict.fromkeys(granted, True),
    }
    assert status(home.pod.server, other, "GET", home.path + "it") == 200
    assert status(home.pod.server, other, "DELETE", home.path + "it") == 403


def test_the_universal_interface_grants_and_revokes_public_access(
    access: ClientProcess, home: Home
) -> None:
    url = home.put("it", "<> a <#it>.")
    for read, expected in ((True, 200), (False, 401)):
        report = access.run("universallyLetPublic", home.agent, url=url, modes={"read": read})
        assert report.value["set"]["read"] == report.value["got"]["read"] == read
        assert status(home.pod.server, None, "GET", home.path + "it") == expected


def test_the_library_finds_the_acl_of_a_resource(access: ClientProcess, home: Home) -> None:
    url = home.put("it", "<> a <#it>.")
    home.put("it.acl", home.pod.acl(home.path + "it"))
    assert access.run("findAcl", home.agent, url=url).value == url + ".acl"
