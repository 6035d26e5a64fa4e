"""Limits and conditions on two nodes: what is changed by way of one, or ends, is in force at the
next request to the other, and what is open there ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime

import pytest

from podstead.features.access_limits.enforcement import client_key
from tests.support.client import Client
from tests.support.cluster import ClusterNode
from tests.support.commands import invoke
from tests.support.event_streams import Listener, subscribe
from tests.support.nodes import running_nodes
from tests.support.people import Account, Person, create_account

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
STREAM = "EventSourceChannel2023"
SOON_S = 20


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[ClusterNode]]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_nodes(folder, nodes=2, options=("--idp",)) as nodes:
        yield nodes


@pytest.fixture
def account(nodes: Sequence[ClusterNode]) -> Account:
    return create_account(nodes[0])


def limited(account: Account, *options: str) -> tuple[str, str]:
    """New client credentials with a limit: their id, and a token for them."""
    node = account.provider
    command = ["account", "credentials", account.name, "--folder", "private/", *options, "--json"]
    result = invoke(node.root, *command, **node.environment)
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    form = f"grant_type=client_credentials&client_id={made['id']}&client_secret={made['secret']}"
    answer = node.request("POST", "/idp/token", form, FORM)
    assert answer.status == 200, answer.text
    return made["id"], json.loads(answer.body)["access_token"]


def statuses(nodes: Sequence[ClusterNode], token: str, path: str) -> list[int]:
    return [node.get(path, {"Authorization": f"Bearer {token}"}).status for node in nodes]


def soon() -> tuple[float, str]:
    """A time in a few seconds, also as rules and commands take it."""
    at_s = int(time.time()) + SOON_S
    return at_s, datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def listening(nodes: Sequence[ClusterNode], token: str, topic: str) -> ExitStack:
    """Open streams on each node, which have ended when the context is left."""
    stack = ExitStack()
    for node in nodes:
        with Client(node, token=token) as client:
            made = subscribe(client, STREAM, topic)
        stream = stack.enter_context(closing(Listener(node, made["receiveFrom"])))
        assert stream.status == 200
        stack.callback(list, stream.lines())
    return stack


def test_a_changed_limit_is_in_force_on_the_other_node(
    nodes: Sequence[ClusterNode], account: Account
) -> None:
    client_id, token = limited(account, "--read")
    private = f"/{account.name}/private/"
    assert statuses(nodes, token, private) == [200, 200]
    assert statuses(nodes, token, f"/{account.name}/settings/") == [403, 403]
    person = Person(account)
    person.sign_in(person.open(f"{account.provider.base_url}/idp/login"))
    key = client_key(account.web_id, client_id)
    address = f"{account.provider.base_url}/.pages/apps/limits/{key}"
    for do, expected in (("pause", 403), ("resume", 200), ("pause", 403)):
        page = person.open(address)
        page = person.fill_in(page, page.path, do=do)
        assert page.status == 200
        for _ in range(3):
            assert statuses(nodes, token, private) == [expected, expected]


def test_after_the_end_of_a_limit_nothing_is_readable_on_any_node(
    nodes: Sequence[ClusterNode], account: Account
) -> None:
    at_s, until = soon()
    _, token = limited(account, "--read", "--until", until)
    private = f"/{account.name}/private/"
    assert statuses(nodes, token, private) == [200, 200]
    with listening(nodes, token, f"{account.pod_url}private/"):
        assert time.time() < at_s
    assert time.time() >= at_s
    assert statuses(nodes, token, private) == [403, 403]


def test_after_the_end_of_a_rule_nothing_is_readable_on_any_node(
    nodes: Sequence[ClusterNode], account: Account
) -> None:
    friend, document = create_account(nodes[0]), f"/{account.name}/private/note"
    with account.owner() as owner, friend.owner() as guest:
        token = guest.token or ""
        owner.put(document, "mine")
        at_s, until = soon()

        def share(condition: str) -> None:
            rules = (
                "@prefix acl: <http://www.w3.org/ns/auth/acl#>. "
                "@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>. "
                f"<#guest> a acl:Authorization; acl:agent <{friend.web_id}>; acl:accessTo "
                f"<{account.provider.base_url}{document}>; acl:mode acl:Read; "
                f"acl:condition {condition}."
            )
            assert owner.put(f"{document}.acl", rules, "text/turtle").status in {201, 204}

        date = f'"{until}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        share(f"[ a access:PeriodCondition; access:ends {date} ]")
        assert statuses(nodes, token, document) == [200, 200]
        with listening(nodes, token, f"{account.provider.base_url}{document}"):
            assert time.time() < at_s
        assert time.time() >= at_s
        assert statuses(nodes, token, document) == [403, 403]
        share("[ a acl:ClientCondition; acl:clientClass <http://xmlns.com/foaf/0.1/Agent> ]")
        assert statuses(nodes, token, document) == [200, 200]
        share("[ a acl:ClientCondition; acl:client <https://app.example/id> ]")
        assert statuses(nodes, token, document) == [403, 403]
