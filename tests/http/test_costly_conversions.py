"""Large documents in other formats: converted in turn, elsewhere, once, and never for a HEAD."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podstead.app.adapters.rdf_processes import RdfProcesses
from podstead.rdf import codecs, tasks
from podstead.rdf.graph import Graph
from podstead.rdf.tasks import Task
from podstead.resources import content
from podstead.resources.documents import Documents
from podstead.resources.reading import RenderingCache
from podstead.storage.records import Metadata
from tests.support.application import BASE, Server
from tests.support.rdf import JSON_LD, N_TRIPLES, RDF_XML, TURTLE, said, triples

PATH = "/alice/public/large.ttl"
LARGE = "".join(f"<#{number}> <#p> <#{number + 1}>, 'text {number}' .\n" for number in range(4000))

SCOPED = {"@id": "http://x.example/s", "@context": {"u": "http://x.example/u"}}
ENDLESS = json.dumps({"@context": {f"t{n}": SCOPED for n in range(9000)}, "t1": {"u": 1}})
"""What the parser needs half a minute for."""


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The media types of the conversions that were made."""
    made: list[str] = []
    convert = Documents.convert

    async def noting(self: Documents, metadata: Metadata, media_type: str, **named: Any) -> bytes:  # noqa: ANN401
        made.append(media_type)
        return await convert(self, metadata, media_type, **named)

    monkeypatch.setattr(Documents, "convert", noting)
    return made


async def test_a_large_document_is_converted_in_another_process(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.alice.put(PATH, LARGE, TURTLE)
    for name in ("parse", "serialize"):
        monkeypatch.setattr(codecs, name, None)
        monkeypatch.setattr(f"podstead.resources.documents.{name}", None)
    answer = await server.public.get(PATH, accept=N_TRIPLES)
    monkeypatch.undo()
    assert answer.status == 200
    assert said(answer, BASE + PATH) == triples(LARGE, TURTLE, BASE + PATH)


@pytest.mark.parametrize("content", [LARGE, "<#a> <#p> 1 ."], ids=["large", "small"])
async def test_a_head_converts_nothing(
    server: Server, conversions: list[str], content: str
) -> None:
    await server.alice.put(PATH, content, TURTLE)
    for accept in (JSON_LD, N_TRIPLES, RDF_XML):
        head = await server.public.head(PATH, accept=accept)
        assert (head.status, head.body) == (200, b"")
        assert head.header("content-length") is None
        assert conversions == []
        got = await server.public.get(PATH, accept=accept)
        assert got.header("etag") == head.header("etag")
        assert got.header("content-type") == head.header("content-type")
        known = await server.public.head(PATH, accept=f"{accept}, text/plain;q=0.1")
        assert known.header("content-length") == str(len(got.body))
        assert conversions == [accept]
        conversions.clear()


async def test_requests_at_once_for_one_format_are_one_conversion(
    server: Server, conversions: list[str]
) -> None:
    await server.alice.put(PATH, LARGE, TURTLE)
    answers = await asyncio.gather(
        *(server.public.get(PATH, accept=N_TRIPLES, **{"X-Number": str(n)}) for n in range(12))
    )
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert conversions == [N_TRIPLES]


async def test_what_is_too_large_to_be_cached_is_not_made_twice_in_a_row(
    server: Server, conversions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = RenderingCache.put

    def put_as_if_large(self: RenderingCache, *given: Any) -> None:  # noqa: ANN401
        self.largest_bytes = 1000
        put(self, *given)

    monkeypatch.setattr(RenderingCache, "put", put_as_if_large)
    await server.alice.put(PATH, LARGE, TURTLE)
    for number in range(3):
        answer = await server.public.get(PATH, accept=N_TRIPLES, **{"X-Number": str(number)})
        assert answer.status == 200
    assert conversions == [N_TRIPLES]


async def test_one_that_leaves_does_not_end_the_conversion_for_others(server: Server) -> None:
    await server.alice.put(PATH, LARGE, TURTLE)
    leaving = asyncio.create_task(server.public.get(PATH, accept=N_TRIPLES))
    staying = asyncio.create_task(server.public.get(PATH, accept=N_TRIPLES, X="1"))
    for _ in range(50):
        await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).status == 200


async def test_a_context_that_takes_the_parser_long_is_refused(server: Server) -> None:
    answer = await server.alice.put("/alice/public/a.jsonld", ENDLESS, JSON_LD)
    assert answer.status == 400
    assert "contexts" in answer.text


async def test_one_that_is_stored_is_sent_as_it_is_and_converted_within_limits(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored before there was this limit. Whoever asks for it in Turtle learns that it is
    not available, and everybody else is answered meanwhile."""
    path = "/alice/public/a.jsonld"

    async def stored_without_reading(self: object, *_: object, **__: object) -> codecs.Document:
        return codecs.parse(b"", TURTLE, base_iri=BASE)

    monkeypatch.setattr(Documents, "parse", stored_without_reading)
    assert (await server.alice.put(path, ENDLESS, JSON_LD)).status == 201
    monkeypatch.undo()
    short = _with_less_time(RdfProcesses.in_process)
    monkeypatch.setattr(RdfProcesses, "in_process", short)
    asking = asyncio.create_task(server.public.get(path, accept=TURTLE))
    for _ in range(20):
        assert (await server.public.get(path)).text == ENDLESS
    assert not asking.done()
    answer = await asking
    assert answer.status == 406
    assert JSON_LD in answer.text


def _with_less_time(
    in_process: Callable[..., Awaitable[bytes]],
) -> Callable[..., Awaitable[bytes]]:
    async def short(self: RdfProcesses, task: Task, **named: Any) -> bytes:  # noqa: ANN401
        self._command = (self._command[0], "1", *self._command[2:])
        return await in_process(self, task, **named)

    return short


async def test_a_large_document_is_taken_apart_for_a_patch_beside_other_requests(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process for the conditions receives and returns is written, read and compared in
    threads."""
    threads: list[int] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: object) -> Any:  # noqa: ANN401
            threads.append(threading.get_ident())
            return function(*arguments)

        return noted

    await server.alice.put(PATH, LARGE, TURTLE)
    monkeypatch.setattr(tasks, "written_in_lines", noting(codecs.written_in_lines))
    monkeypatch.setattr(content, "read_lines", noting(codecs.read_lines))
    monkeypatch.setattr(Graph, "__eq__", noting(Graph.__eq__))
    patch = "INSERT { ?a <#q> 2 } WHERE { ?a <#p> <#2> }"
    kind = {"Content-Type": "application/sparql-update"}
    answer = await server.alice.request("PATCH", PATH, headers=kind, body=patch.encode())
    assert answer.status == 204
    assert len(threads) > 2
    assert threading.get_ident() not in threads
