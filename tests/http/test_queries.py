"""The QUERY method on containers (RFC 10008), which features answer."""

from __future__ import annotations

import pytest

import podstead.app.services
from podstead.app.services import Services
from podstead.core.identity import Identity
from podstead.features import Feature, WorkerFeature
from podstead.web.request import Request
from podstead.web.response import Response, json_content_response
from tests.support.application import Server, Start
from tests.support.asgi import Answer, Client

TYPE = "application/example-query"
ROOT, CONTAINER, DOC = "/alice/", "/alice/private/c/", "/alice/private/doc"


class Echo(Feature):
    """Answers with what was asked, and by whom."""

    def in_worker(self, services: Services) -> WorkerFeature:  # noqa: ARG002
        offered = WorkerFeature()
        offered.queries = {TYPE: _echo, "application/x-www-form-urlencoded": _echo}
        return offered


async def _echo(request: Request, agent: Identity | None) -> Response:
    content = (await request.body.read(limit_bytes=100)).decode()
    asked = {"path": request.path, "content": content, "agent": agent and agent.iri}
    return json_content_response(asked)


@pytest.fixture
async def queried(start: Start, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(podstead.app.services, "features", lambda: (Echo(),))
    server = await start()
    assert (await server.alice.put(CONTAINER, None, "text/turtle")).status == 201
    assert (await server.alice.put(DOC, "text", "text/plain")).status == 201
    return server


async def query(
    client: Client, path: str, content: str = "all", content_type: str | None = TYPE, **more: str
) -> Answer:
    fields = dict(more) if content_type is None else {"Content-Type": content_type, **more}
    return await client.request("QUERY", path, headers=fields, body=content.encode())


async def test_a_feature_answers_queries_to_containers(queried: Server) -> None:
    for path in (ROOT, CONTAINER):
        answer = await query(queried.alice, path, content_type=f"{TYPE}; charset=utf-8")
        assert answer.status == 200, answer.text
        assert answer.json() == {"path": path, "content": "all", "agent": queried.alice_web_id}


async def test_whoever_may_not_read_a_container_may_not_query_it(queried: Server) -> None:
    await queried.put_acl(CONTAINER, ("acl:agentClass acl:AuthenticatedAgent", "Append Write"))
    for path in (CONTAINER, "/alice/private/missing/", DOC, f"{CONTAINER}.acl", "/nobody/"):
        for client, status in ((queried.public, 401), (queried.bob, 403)):
            asked = await query(client, path)
            assert (asked.status, (await client.get(path)).status) == (status, status)
            assert asked.header("wac-allow") is not None
    assert (await query(queried.alice, "/alice/private/missing/")).status == 404


async def test_queries_to_other_resources_are_not_supported(queried: Server) -> None:
    for path in (DOC, "/alice/.acl"):
        answer = await query(queried.alice, path)
        allowed = (answer.header("allow") or "").split(", ")
        assert (answer.status, "QUERY" in allowed, "GET" in allowed) == (405, False, True)
        assert (await queried.alice.request("OPTIONS", path)).header("accept-query") is None
    assert (await query(queried.alice, "/.pods")).status == 405


async def test_the_content_of_a_query_has_a_type_that_is_known(queried: Server) -> None:
    assert (await query(queried.alice, CONTAINER, content_type=None)).status == 400
    answer = await query(queried.alice, CONTAINER, content_type="text/plain")
    assert answer.status == 415
    assert answer.header("accept-query") == f"{TYPE}, application/x-www-form-urlencoded"
    assert (await query(queried.alice, CONTAINER, "x" * 101)).status == 413


async def test_conditions_and_ranges_of_the_container_do_not_apply(queried: Server) -> None:
    tag = (await queried.alice.get(CONTAINER)).header("etag") or ""
    for more in ({"If-None-Match": tag}, {"If-Match": '"x"'}, {"Range": "bytes=0-1"}):
        answer = await query(queried.alice, CONTAINER, **more, Accept="image/png")
        assert answer.status == 200, answer.text


async def test_containers_say_which_queries_they_take(queried: Server) -> None:
    for client in (queried.alice, queried.public):
        answer = await client.request("OPTIONS", CONTAINER)
        assert "QUERY" in (answer.header("allow") or "").split(", ")
        assert answer.header("accept-query") == f"{TYPE}, application/x-www-form-urlencoded"
    for method in ("GET", "HEAD"):
        answer = await queried.alice.request(method, CONTAINER, headers={"Origin": "https://a.b"})
        assert "QUERY" in (answer.header("allow") or "").split(", ")
        assert answer.header("accept-query") is not None
        assert "Accept-Query" in (answer.header("access-control-expose-headers") or "")
    refused = await queried.alice.request("DELETE", ROOT)
    assert (refused.status, "QUERY" in (refused.header("allow") or "")) == (405, True)
    fields = {"Origin": "https://a.b", "Access-Control-Request-Method": "QUERY"}
    preflight = await queried.public.request("OPTIONS", CONTAINER, headers=fields)
    assert "QUERY" in (preflight.header("access-control-allow-methods") or "").split(", ")


async def test_without_a_feature_the_method_is_unknown(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podstead.app.services, "features", lambda: ())
    server = await start()
    assert (await query(server.alice, ROOT)).status == 501
    answer = await server.alice.request("OPTIONS", ROOT)
    assert "QUERY" not in (answer.header("allow") or "")
    assert answer.header("accept-query") is None
