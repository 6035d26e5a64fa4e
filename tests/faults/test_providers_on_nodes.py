"""Three identity providers on one database are one provider, from the first moment on."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest

from tests.support.cluster import ClusterNode
from tests.support.commands import invoke
from tests.support.nodes import running_nodes
from tests.support.server import Answer, ServerProcess
from tests.support.signing import Signer, proof_claims, token_hash

PASSWORD = "a few words in a row"
JSON = {"Content-Type": "application/json"}
AT_ONCE = 6
_names = itertools.count()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[ClusterNode]]:
    options = ("--idp", "--registration", "invited", "--invalid-credentials-per-minute", "0")
    folder = tmp_path_factory.mktemp("providers")
    with running_nodes(folder, options=options) as nodes:
        yield nodes


def operator(node: ServerProcess, *arguments: str, typed: str = "") -> str:
    ended = invoke(node.root, *arguments, typed=typed, **node.environment)
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


@pytest.fixture
def name(nodes: Sequence[ClusterNode]) -> str:
    """The name of a new account."""
    name = f"person{next(_names)}"
    operator(
        *(nodes[0], "account", "create", name, "--email", f"{name}@example.org"),
        typed=f"{PASSWORD}\n",
    )
    return name


def token_from(node: ServerProcess, name: str, proof: str | None = None) -> str:
    """An access token, bound to the key of the proof if there is one."""
    sent = json.dumps({"username": name, "password": PASSWORD})
    fields = JSON if proof is None else {**JSON, "DPoP": proof}
    answer = node.request("POST", "/idp/credentials", sent, fields)
    assert answer.status == 200, answer.text
    return str(json.loads(answer.body)["access_token"])


def at_once(
    nodes: Sequence[ClusterNode], ask: Callable[[ClusterNode, int], Answer]
) -> Sequence[Answer]:
    """The answers to requests that are sent to all nodes at the same time."""
    asked = itertools.islice(itertools.cycle(nodes), AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(ask, asked, range(AT_ONCE)))


def statuses(answers: Sequence[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


def register(node: ServerProcess, name: str, code: str) -> Answer:
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD, "invitation": code}
    while True:
        answer = node.request("POST", "/.pods", json.dumps(sent), JSON)
        # One client has only a share of the places where passwords are hashed.
        if answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
            return answer


def test_nodes_that_start_together_have_one_set_of_keys(
    nodes: Sequence[ClusterNode], name: str
) -> None:
    configuration = json.loads(nodes[0].get("/.well-known/openid-configuration").body)
    place = configuration["jwks_uri"].removeprefix(nodes[0].base_url)
    [keys] = {node.get(place).body for node in nodes}
    assert json.loads(keys)["keys"]
    for issuing in nodes:
        token = token_from(issuing, name)
        for asked in nodes:
            answer = asked.get(f"/{name}/private/", {"Authorization": f"Bearer {token}"})
            assert answer.status == 200, answer.text


def test_of_many_concurrent_uses_of_a_proof_one_is_valid_on_any_node(
    nodes: Sequence[ClusterNode], name: str
) -> None:
    """A-104."""
    key, base, now_s = Signer.new("ES256"), nodes[0].base_url, int(time.time())
    issuing = key.proof(proof_claims("POST", f"{base}/idp/credentials", now_s))
    token = token_from(nodes[0], name, issuing)
    target = f"/{name}/private/"
    claims = proof_claims("GET", base + target, now_s) | {"ath": token_hash(token)}
    fields = {"Authorization": f"DPoP {token}", "DPoP": key.proof(claims)}
    answers = at_once(nodes, lambda node, _: node.get(target, fields))
    assert statuses(answers) == {200: 1, 401: AT_ONCE - 1}


def test_nodes_give_no_more_uses_of_an_invitation_than_there_are(
    nodes: Sequence[ClusterNode],
) -> None:
    code = json.loads(operator(nodes[0], "invite", "create", "--uses", "2", "--json"))["code"]
    found = at_once(nodes, lambda node, number: register(node, f"guest{number}", code))
    assert statuses(found) == {201: 2, 403: AT_ONCE - 2}


def test_of_concurrent_registrations_of_one_name_one_succeeds(
    nodes: Sequence[ClusterNode],
) -> None:
    code = json.loads(operator(nodes[0], "invite", "create", "--uses", str(AT_ONCE), "--json"))[
        "code"
    ]
    found = at_once(nodes, lambda node, _: register(node, "twin", code))
    assert statuses(found) == {201: 1, 409: AT_ONCE - 1}
