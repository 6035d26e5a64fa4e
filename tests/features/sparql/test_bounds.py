"""What a query may take, and that it takes nothing from others."""

from __future__ import annotations

import asyncio
import csv
import socket
from functools import partial

import pytest

from podstead.app.adapters.rdf_processes import ProcessorBudgets
from podstead.core.errors import Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.features.sparql import worker
from podstead.features.sparql.evaluation import StoredDocument
from podstead.features.sparql.processes import QueryProcesses, WarmProcess
from podstead.rdf.sparql_query import QueryForm, SparqlQuery
from podstead.storage.records import Version
from tests.support.application import Server, Start
from tests.support.asgi import Answer, Client
from tests.support.rdf import TURTLE

ROOT = "/alice/c/"
PATTERNS = [f"?s{number} ?p{number} ?o{number}" for number in range(8)]
ENDLESS = f"SELECT (COUNT(*) AS ?n) {{ {' . '.join(PATTERNS)} }}"
LARGE = f"SELECT * {{ {' . '.join(PATTERNS)} }} ORDER BY ?s0 ?o7"
MILLION = f"SELECT ?o0 ?o1 ?o2 {{ {' . '.join(PATTERNS[:3])} }}"
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
STATEMENTS = 100


async def query(client: Client, text: str) -> Answer:
    headers = {"Content-Type": "application/sparql-query", "Accept": "text/csv"}
    return await client.request("QUERY", ROOT, headers=headers, body=text.encode())


async def filled(start: Start, monkeypatch: pytest.MonkeyPatch, **limits: int) -> Server:
    monkeypatch.setattr(worker, "QueryProcesses", partial(QueryProcesses, **limits))
    server = await start()
    said = "\n".join(f"<#s> <http://example.org/p> {number} ." for number in range(STATEMENTS))
    assert (await server.alice.put(f"{ROOT}doc", said, TURTLE)).status == 201
    await server.put_acl(ROOT, ("acl:agentClass foaf:Agent", "+Read"))
    return server


async def assert_answers(client: Client) -> None:
    answer = await query(client, COUNT)
    assert (answer.status, answer.text.split()) == (200, ["n", str(STATEMENTS)]), answer.text


async def test_a_query_that_does_not_end_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await filled(start, monkeypatch, processor_s=1)
    answer = await query(server.alice, ENDLESS)
    assert (answer.status, "processor time" in answer.text) == (422, True), answer.text
    await assert_answers(server.alice)


async def test_a_query_that_takes_too_much_memory_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await filled(start, monkeypatch, processor_s=120, memory_mib=400)
    answer = await query(server.alice, LARGE)
    assert (answer.status, "memory" in answer.text) == (422, True), answer.text
    await assert_answers(server.alice)


async def test_a_result_has_a_bound(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await filled(start, monkeypatch, result_mib=0)
    answer = await query(server.alice, MILLION)
    assert (answer.status, "LIMIT" in answer.text) == (422, True), answer.text


async def test_a_million_rows_are_streamed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await filled(start, monkeypatch)
    answer = await query(server.alice, MILLION)
    assert answer.status == 200
    assert sum(1 for _ in csv.reader(answer.text.splitlines())) == 1 + STATEMENTS**3


async def test_others_are_answered_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless queries take the share of their requester; those that wait for it do not get more."""
    server = await filled(start, monkeypatch, processor_s=600)
    endless = [asyncio.create_task(query(server.bob, ENDLESS)) for _ in range(5)]
    try:
        await assert_answers(server.alice)
        await assert_answers(server.public)
        assert not any(each.done() for each in endless)
    finally:
        for each in endless:
            each.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
    await assert_answers(server.bob)


async def test_a_requester_who_has_used_up_the_processor_time_waits(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await filled(start, monkeypatch)
    monkeypatch.setattr(ProcessorBudgets, "wait_s", lambda _, key: 7.5 if key else 0)
    answer = await query(server.alice, COUNT)
    assert (answer.status, answer.header("retry-after")) == (429, "8")


async def test_the_process_cannot_connect() -> None:
    """The refusal of SERVICE is not all that keeps queries from other servers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        text = f"SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }}"
        asked = SparqlQuery(text, "http://example.org/", QueryForm.SELECT)
        pool = QueryProcesses()
        with pytest.raises(Unprocessable, match="no result"):
            await pool.answer(Nothing(), asked, "text/csv", requester="a", pod="/p/")
        await pool.close()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_what_cannot_be_read_has_no_statements() -> None:
    class Some(Nothing):
        async def fill(self, process: WarmProcess) -> None:
            for name, type_, content in (
                ("bad", TURTLE, b"<a"),
                ("unknown", "application/ld+json", b'{"@context": "http://example.org/c", "a": 1}'),
                ("good", "application/ld+json", b'{"@id": "http://e/a", "http://e/b": 1}'),
            ):
                document = StoredDocument(f"http://e/{name}", type_, content)
                await process.put({ResourcePath(f"/{name}"): (Version("1"), document)})

    asked = SparqlQuery(COUNT, "http://example.org/", QueryForm.SELECT)
    pool = QueryProcesses()
    pieces = await pool.answer(Some(), asked, "text/csv", requester="a", pod="/p/")
    assert b"".join([piece async for piece in pieces]).split() == [b"n", b"1"]
    await pool.close()


class Nothing:
    """No documents."""

    async def look(self) -> tuple[str, str]:
        return "view", "asker"

    async def fill(self, process: WarmProcess) -> None:
        """There are none."""
