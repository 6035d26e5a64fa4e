"""What is too large, and what arrives only in part (P-54)."""

from __future__ import annotations

import contextlib

import pytest

from podstead.app.process.serve import MAX_HEADER_BYTES
from podstead.core.identifiers import MAX_TARGET_BYTES
from tests.conformance.agents import Agent, create_agent
from tests.support.rdf import TURTLE
from tests.support.server import ServerProcess, server_fixture
from tests.support.wire import Wire, compose

MAX_BODY_BYTES = 100_000
MAX_RDF_BYTES = 10_000
QUOTA_BYTES = 150_000
OPTIONS = (
    *("--max-body-bytes", str(MAX_BODY_BYTES)),
    *("--max-rdf-bytes", str(MAX_RDF_BYTES)),
    *("--quota-bytes", str(QUOTA_BYTES)),
    *("--pod-creations-per-hour", "0"),
)
TEXT = "text/plain"


small = server_fixture(OPTIONS)
"""A server with limits that tests can reach."""


@pytest.fixture
def owner(small: ServerProcess) -> Agent:
    """The owner of a new pod on that server."""
    return create_agent(small)


def head(agent: Agent, method: str, target: str, content_length: int, **fields: str) -> bytes:
    """The header of a request of an agent."""
    return compose(
        method,
        target,
        {
            "Authorization": f"Bearer {agent.token}",
            "Content-Type": TEXT,
            **{name.replace("_", "-"): value for name, value in fields.items()},
        },
        host=f"localhost:{agent.server.port}",
        content_length=content_length,
    )


@pytest.mark.parametrize(
    ("content_type", "size_bytes", "status"),
    [
        (TEXT, MAX_BODY_BYTES, 201),
        (TEXT, MAX_BODY_BYTES + 1, 413),
        (TURTLE, MAX_RDF_BYTES, 201),
        (TURTLE, MAX_RDF_BYTES + 1, 413),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_p_54_a_body_may_be_as_large_as_the_limit(
    owner: Agent, method: str, content_type: str, size_bytes: int, status: int
) -> None:
    container = owner.create(f"{owner.pod}x/")
    target = container if method == "POST" else f"{container}x"
    body = b"#" * size_bytes
    answer = owner.request(method, target, body, {"Content-Type": content_type})
    assert answer.status == status
    assert len(owner.read(container).members) == (status == 201)


def test_p_54_a_body_without_length_is_measured_as_it_comes(owner: Agent) -> None:
    target = f"{owner.pod}x.txt"
    request = compose(
        "PUT",
        target,
        {
            "Authorization": f"Bearer {owner.token}",
            "Content-Type": TEXT,
            "Transfer-Encoding": "chunked",
        },
        host=f"localhost:{owner.server.port}",
    )
    with Wire(owner.server) as wire:
        wire.send_what_is_taken(request + b"%x\r\n" % (MAX_BODY_BYTES + 1))
        wire.send_what_is_taken(b"x" * (MAX_BODY_BYTES + 1) + b"\r\n0\r\n\r\n")
        assert wire.receive("PUT").status == 413
    assert owner.get(target).status == 404


def test_p_54_a_pod_holds_no_more_than_its_quota(owner: Agent) -> None:
    small = b"x" * (MAX_BODY_BYTES // 2)  # a large body takes room until its file is removed
    names = [f"{owner.pod}{name}" for name in "abcdef"]
    statuses = [owner.put(name, small, TEXT).status for name in names]
    stored = statuses.count(201)
    assert statuses == [201] * stored + [507] * (len(names) - stored)
    assert stored == QUOTA_BYTES // len(small) - 1  # the rest is what the pod came with
    refused = names[stored]
    assert owner.get(refused).status == 404
    assert owner.delete(names[0]).status == 204
    assert owner.put(refused, small, TEXT).status == 201


@pytest.mark.parametrize(("excess_bytes", "status"), [(0, 404), (1, 414)])
def test_p_54_a_target_may_be_as_long_as_the_limit(
    owner: Agent, excess_bytes: int, status: int
) -> None:
    target = owner.pod + "a" * (MAX_TARGET_BYTES - len(owner.pod) + excess_bytes)
    assert owner.get(target).status == status


@pytest.mark.parametrize("fields", [1, 20])
def test_p_54_headers_past_the_limit_are_refused(owner: Agent, fields: int) -> None:
    lines = [("X-Filler", "x" * (MAX_HEADER_BYTES // fields))] * fields
    assert owner.get("/", headers=lines).status == 431


def test_p_54_a_waiting_client_gets_100_continue(owner: Agent) -> None:
    target = f"{owner.pod}x.txt"
    with Wire(owner.server) as wire:
        wire.send(head(owner, "PUT", target, 5, Expect="100-continue"))
        assert wire.receive("PUT").status == 100
        wire.send(b"Hello")
        assert wire.receive("PUT").status == 201
    assert owner.get(target).body == b"Hello"


@pytest.mark.parametrize(
    ("name", "content_length", "status"),
    [("x.txt", MAX_BODY_BYTES + 1, 413), ("elsewhere", 5, 403)],
)
def test_p_54_a_waiting_client_gets_a_refusal_at_once(
    owner: Agent, name: str, content_length: int, status: int
) -> None:
    stranger = create_agent(owner.server)
    agent = stranger if status == 403 else owner
    target = owner.pod + name
    with Wire(owner.server) as wire:
        wire.send(head(agent, "PUT", target, content_length, Expect="100-continue"))
        assert wire.receive("PUT").status == status
    assert owner.get(target).status == 404


@pytest.mark.parametrize("sent_bytes", [0, 1, 79_999])
@pytest.mark.parametrize("before", [None, "before"])
def test_p_54_an_upload_that_is_cut_off_changes_nothing(
    owner: Agent, before: str | None, sent_bytes: int
) -> None:
    target = f"{owner.pod}x.txt"
    if before is not None:
        owner.create(target, before, TEXT)
    with Wire(owner.server) as wire:
        wire.send(head(owner, "PUT", target, 80_000))
        wire.send(b"x" * sent_bytes)
        wire.end_sending()
        with contextlib.suppress(ConnectionError):
            assert set(wire.receive_statuses()) <= {400}
    response = owner.get(target)
    assert response.status == (404 if before is None else 200)
    assert before is None or response.text == before
