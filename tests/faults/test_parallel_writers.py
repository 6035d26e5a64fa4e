"""Of concurrent writers, the right number succeeds, whichever workers or nodes they reach (P-26).

All requests of a round are sent before the first answer is read, over connections that are known
to be served by different processes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.support.client import Client, Pod, create_pod
from tests.support.cluster import NODES
from tests.support.nodes import running_nodes
from tests.support.server import Answer, ServerProcess, run_command, running_server
from tests.support.waiting import wait_until
from tests.support.workers import clients_of

ROUNDS = 15
ROUNDS_OF_NODES = 4
"""Fewer, because each round costs the database more time."""
CLIENTS_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class Parallel:
    """A pod, and its owner on connections to every worker of the server, workers taking turns."""

    servers: Sequence[ServerProcess]
    """One with several workers, or nodes with one each."""
    workers: int
    pod: Pod
    clients: Sequence[Client]

    @property
    def server(self) -> ServerProcess:
        return self.servers[0]

    @property
    def rounds(self) -> int:
        return ROUNDS if len(self.servers) == 1 else ROUNDS_OF_NODES

    @property
    def one_of_each(self) -> Sequence[Client]:
        """One connection to each worker."""
        return self.clients[: self.workers]

    @contextlib.contextmanager
    def strangers(self) -> Iterator[Sequence[Client]]:
        """Connections without a credential, one to each worker."""
        with clients_of(self.servers, self.workers) as clients:
            yield clients

    def receive(self) -> list[Answer]:
        """The answers to one request on each connection."""
        return [client.receive() for client in self.clients]


@pytest.fixture(scope="module", params=["2 workers", "3 workers", f"{NODES} nodes"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[ServerProcess]]:
    folder = tmp_path_factory.mktemp("parallel")
    number, unit = request.param.split()
    if unit == "nodes":
        with running_nodes(folder) as nodes:
            yield nodes
        return
    options = ("--workers", number)
    with running_server(ServerProcess(root=folder / "root", options=options)) as server:
        yield [server]


@pytest.fixture
def parallel(servers: Sequence[ServerProcess]) -> Iterator[Parallel]:
    workers = int(servers[0].options[1]) * len(servers)
    pod = create_pod(servers[0])
    with clients_of(servers, workers, each=CLIENTS_PER_WORKER, token=pod.token) as clients:
        yield Parallel(servers, workers, pod, clients)


def statuses(answers: Sequence[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


def text(body: str, **headers: str) -> tuple[str, dict[str, str]]:
    """A body and the headers it is sent with."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return body, {"Content-Type": "text/plain", **fields}


def test_of_many_that_create_only_if_nothing_is_there_one_does(parallel: Parallel) -> None:
    """P-26, P-21: `If-None-Match: *`."""
    for round_ in range(parallel.rounds):
        target = f"{parallel.pod.root}notes/{round_}/new.txt"
        for number, client in enumerate(parallel.clients):
            client.send("PUT", target, *text(str(number), If_None_Match="*"))
        answers = parallel.receive()
        assert statuses(answers) == {201: 1, 412: len(parallel.clients) - 1}
        winner = [answer.status for answer in answers].index(201)
        for client in parallel.one_of_each:
            stored = client.get(target)
            assert stored.text == str(winner)
            assert stored.headers["etag"] == answers[winner].headers["etag"]


def test_of_many_that_replace_the_same_state_one_does(parallel: Parallel) -> None:
    """P-26, P-22: `If-Match`."""
    target = f"{parallel.pod.root}counter.txt"
    etag = parallel.clients[0].put(target, "start").headers["etag"]
    for _ in range(parallel.rounds):
        for number, client in enumerate(parallel.clients):
            client.send("PUT", target, *text(str(number), If_Match=etag))
        answers = parallel.receive()
        assert statuses(answers) == {204: 1, 412: len(parallel.clients) - 1}
        winner = [answer.status for answer in answers].index(204)
        etag = answers[winner].headers["etag"]
        for client in parallel.one_of_each:
            stored = client.get(target)
            assert (stored.text, stored.headers["etag"]) == (str(winner), etag)


def test_of_many_that_delete_the_same_state_one_does(parallel: Parallel) -> None:
    target = f"{parallel.pod.root}doomed.txt"
    for _ in range(parallel.rounds):
        etag = parallel.clients[0].put(target, "here").headers["etag"]
        for client in parallel.clients:
            client.send("DELETE", target, headers={"If-Match": etag})
        assert statuses(parallel.receive())[204] == 1
        for client in parallel.one_of_each:
            assert client.get(target).status == 404


def test_patches_of_one_document_are_all_applied(parallel: Parallel) -> None:
    """P-26: also those that no one has seen the others of."""
    target = f"{parallel.pod.root}patched.ttl"
    parallel.clients[0].put(target, "", "text/turtle")
    values: set[str] = set()
    for round_ in range(parallel.rounds):
        for number, client in enumerate(parallel.clients):
            value = f'"{round_}-{number}"'
            values.add(value)
            client.send("PATCH", target, *n3_patch(inserts=f"<#it> <#has> {value}."))
        for number, answer in enumerate(parallel.receive()):
            patch = n3_patch(inserts=f'<#it> <#has> "{round_}-{number}".')
            assert_applied(parallel.clients[number], target, patch, answer)
        for client in parallel.one_of_each:
            triples = client.get(target, Accept="application/n-triples").text
            assert set(re.findall(r'"[^"]*"', triples)) == values


def assert_applied(
    client: Client, target: str, patch: tuple[str, dict[str, str]], answer: Answer
) -> None:
    """A patch is applied, at the latest when it is sent again: on a machine that is very busy, a
    node may be too busy for it and say so."""

    def is_applied() -> bool:
        nonlocal answer
        if answer.status == 503:
            assert "retry-after" in answer.headers, answer.text
            answer = client.request("PATCH", target, *patch)
        return answer.status != 503

    wait_until(is_applied, "a node takes the patch")
    assert answer.status == 204, answer.text


def test_of_many_that_patch_the_same_statement_away_one_does(parallel: Parallel) -> None:
    """X-20: what a patch deletes must be there when it is committed."""
    target = f"{parallel.pod.root}token.ttl"
    parallel.clients[0].put(target, '<#token> <#held-by> "start".', "text/turtle")
    holder = "start"
    for round_ in range(parallel.rounds):
        for number, client in enumerate(parallel.clients):
            patch = n3_patch(
                deletes=f'<#token> <#held-by> "{holder}".',
                inserts=f'<#token> <#held-by> "{round_}-{number}".',
            )
            client.send("PATCH", target, *patch)
        answers = parallel.receive()
        assert statuses(answers) == {204: 1, 409: len(parallel.clients) - 1}
        holder = f"{round_}-{[answer.status for answer in answers].index(204)}"
        for client in parallel.one_of_each:
            triples = client.get(target, Accept="application/n-triples").text
            assert re.findall(r'"([^"]*)"', triples) == [holder]


def n3_patch(*, inserts: str, deletes: str = "") -> tuple[str, dict[str, str]]:
    """A patch and the headers it is sent with."""
    return (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
        f"_:patch a solid:InsertDeletePatch; solid:inserts {{ {inserts} }}"
        + (f"; solid:deletes {{ {deletes} }}." if deletes else "."),
        {"Content-Type": "text/n3"},
    )


def test_replacements_without_a_condition_all_succeed_and_one_stays_whole(
    parallel: Parallel,
) -> None:
    target = f"{parallel.pod.root}contended.txt"
    bodies = [str(number) * (number + 1) * 20_000 for number in range(len(parallel.clients))]
    assert len(bodies[0]) < 64 * 1024 < len(bodies[-1])  # in the database, and in files
    for _ in range(parallel.rounds):
        for client, body in zip(parallel.clients, bodies, strict=True):
            client.send("PUT", target, *text(body))
        answers = parallel.receive()
        assert set(statuses(answers)) <= {201, 204}
        last = {client.get(target).text for client in parallel.one_of_each}
        assert len(last) == 1
        [winner] = [index for index, body in enumerate(bodies) if body in last]
        assert answers[winner].headers["etag"] == parallel.clients[0].head(target).headers["etag"]


def test_posts_with_one_slug_make_resources_of_their_own(parallel: Parallel) -> None:
    """C-4, C-5: a taken name is never overwritten."""
    container = f"{parallel.pod.root}inbox/"
    made: dict[str, str] = {}
    for round_ in range(parallel.rounds):
        for number, client in enumerate(parallel.clients):
            body = f"{round_}-{number}"
            client.send("POST", container, *text(body, Slug="message"))
        for number, answer in enumerate(parallel.receive()):
            assert answer.status == 201
            path = answer.headers["location"].removeprefix(parallel.server.base_url)
            assert path not in made
            made[path] = f"{round_}-{number}"
    for client in parallel.one_of_each:
        assert client.members(container) == set(made)
    for path, body in made.items():
        assert parallel.clients[0].get(path).text == body


def test_a_container_is_never_deleted_from_under_a_member(parallel: Parallel) -> None:
    """C-18, C-23: a member and its container exist together or not at all."""
    for round_ in range(2 * parallel.rounds):
        container = f"{parallel.pod.root}room{round_}/"
        parallel.clients[0].put(container, "", "text/turtle")
        put: set[str] = set()
        # Who is asked first takes turns, so both orders occur.
        for number, client in enumerate(parallel.clients):
            if (number + round_) % 2:
                put.add(f"{container}{number}.txt")
                client.send("PUT", f"{container}{number}.txt", *text(str(number)))
            else:
                client.send("DELETE", container)
        for answer in parallel.receive():
            assert answer.status in {201, 204, 404, 409}, answer.text
        for client in parallel.one_of_each:
            # Each PUT was answered 201 at a moment after which no DELETE could succeed.
            assert client.members(container) == put


@pytest.mark.parametrize(
    ("first", "second"),
    [("twin", "twin/"), ("document", "document/below/member"), ("deep/a", "deep/a/")],
)
def test_of_a_document_and_a_container_at_one_url_one_comes_to_be(
    parallel: Parallel, first: str, second: str
) -> None:
    """P-47, P-49."""
    for round_ in range(parallel.rounds):
        place = f"{parallel.pod.root}{round_}/"
        # There already: else whoever makes it first is the only one to go on.
        parallel.clients[0].put(place, "", "text/turtle")
        targets = [place + first, place + second]
        for number, client in enumerate(parallel.clients):
            client.send("PUT", targets[number % 2], "", {"Content-Type": "text/turtle"})
        answers = parallel.receive()
        for client in parallel.one_of_each:
            exists = [client.get(target).status == 200 for target in targets]
            assert exists.count(True) == 1
            for number, answer in enumerate(answers):
                allowed = {201, 204} if exists[number % 2] else {409}
                assert answer.status in allowed, answer.text
        assert statuses(answers)[201] == 1


def test_listings_of_all_workers_are_what_was_acknowledged(parallel: Parallel) -> None:
    container = f"{parallel.pod.root}busy/"
    parallel.clients[0].put(container, "", "text/turtle")
    members: set[str] = set()
    for round_ in range(parallel.rounds):
        doomed = sorted(members)[: len(parallel.clients) // 2]
        for number, client in enumerate(parallel.clients):
            if number < len(doomed):
                client.send("DELETE", doomed[number])
            else:
                client.send("PUT", f"{container}{round_}-{number}", *text("x"))
        for number, answer in enumerate(parallel.receive()):
            if number < len(doomed):
                assert answer.status == 204
                members.remove(doomed[number])
            else:
                assert answer.status == 201
                members.add(f"{container}{round_}-{number}")
        for client in parallel.one_of_each:
            assert client.members(container) == members


def test_what_one_worker_stored_every_worker_gives_at_once(parallel: Parallel) -> None:
    """Kept answers and renderings of a worker never outlive a commit of another one."""
    target = f"{parallel.pod.root}shared.ttl"
    as_json = {"Accept": "application/ld+json"}
    for round_ in range(parallel.rounds * len(parallel.clients)):
        writer = parallel.clients[round_ % len(parallel.clients)]
        etag = writer.put(target, f'<#it> <#is> "{round_}".', "text/turtle").headers["etag"]
        for client in parallel.one_of_each:
            stored = client.get(target)
            assert (stored.text, stored.headers["etag"]) == (f'<#it> <#is> "{round_}".', etag)
            assert f'"{round_}"' in client.request("GET", target, headers=as_json).text


def test_new_access_rules_hold_for_the_next_request_at_every_worker(parallel: Parallel) -> None:
    """W-11: given and taken away, for the resource itself and for what lies below."""
    container = f"{parallel.pod.root}changing/"
    member = f"{container}member.txt"
    parallel.clients[0].put(member, "text")
    with parallel.strangers() as strangers:
        for round_ in range(parallel.rounds):
            opened = round_ % 2 == 0
            acl = parallel.pod.acl(container, public=("Read",) if opened else ())
            owner = parallel.clients[round_ % len(parallel.clients)]
            assert owner.put(f"{container}.acl", acl, "text/turtle").status in {201, 204}
            for stranger in strangers:
                for target in (container, member):
                    assert stranger.get(target).status == (200 if opened else 401)


def test_deleted_access_rules_are_gone_at_every_worker(parallel: Parallel) -> None:
    """W-3: without its own ACL a resource has its container's rules."""
    target = f"{parallel.pod.root}document.txt"
    acl = parallel.pod.acl(target, public=("Read",))
    parallel.clients[0].put(target, "text")
    with parallel.strangers() as strangers:
        for owner in parallel.clients:
            assert owner.put(f"{target}.acl", acl, "text/turtle").status == 201
            assert {stranger.get(target).status for stranger in strangers} == {200}
            assert owner.delete(f"{target}.acl").status == 204
            assert {stranger.get(target).status for stranger in strangers} == {401}


def test_a_revoked_token_is_refused_by_every_worker_at_its_next_request(
    parallel: Parallel,
) -> None:
    """A-33: revoked by the operator's command while the server runs; others stay valid."""
    root = str(parallel.server.root)
    target = f"{parallel.pod.root}private/"
    engine = parallel.server.environment
    create = run_command("token", "create", parallel.pod.name, "--root", root, environment=engine)
    kept = create.stdout.strip()
    for client in parallel.clients:
        assert client.get(target).status == 200
    revoke = ("token", "revoke", token_id(parallel.pod.token), "--root", root)
    command = run_command(*revoke, environment=engine)
    assert (command.returncode, command.stderr) == (0, "")
    for client in parallel.clients:
        assert client.get(target).status == 401
        # A bad credential is refused on public resources too.
        assert client.get(parallel.pod.root).status == 401
        client.token = kept
        assert client.get(target).status == 200


def token_id(token: str) -> str:
    payload = token.partition(".")[0]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims["jti"])


def test_of_many_pods_with_one_name_one_comes_to_be(parallel: Parallel) -> None:
    """A-90, A-91: names compare case-insensitively."""
    for round_ in range(parallel.rounds):
        name = f"{parallel.pod.name}-Twin-{round_}"
        spellings = [name, name.lower(), name.upper()]
        for number, client in enumerate(parallel.clients):
            body = json.dumps({"name": spellings[number % 3]})
            client.send("POST", "/.pods", body, {"Content-Type": "application/json"})
        answers = parallel.receive()
        assert statuses(answers) == {201: 1, 409: len(parallel.clients) - 1}
        [created] = [json.loads(answer.body) for answer in answers if answer.status == 201]
        for client in parallel.one_of_each:
            assert client.get(f"/{created['name']}/").status == 200
