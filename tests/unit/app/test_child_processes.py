"""Costly work on RDF: who waits for whom, what ends it, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

import pytest

from podstead.app.adapters import rdf_processes
from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.adapters.rdf_processes import (
    BUDGET_S,
    MAX_PROCESSES,
    WINDOW_S,
    ProcessorBudgets,
    RdfProcesses,
)
from podstead.core.errors import Overloaded, RateLimited
from podstead.core.media_types import JSON_LD, N_QUADS, TRIG, TURTLE
from podstead.core.request_context import note_agent, set_requester
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.errors import MalformedRdf, PatchInapplicable, PatchTooCostly, UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.limits import RdfLimits
from podstead.rdf.patch_parsers import parse_n3_patch, parse_sparql_update
from podstead.rdf.patching import Patch, apply
from podstead.rdf.tasks import Conversion, Evaluation
from podstead.resources.costly_work import WorkTooCostly
from tests.support.process_memory import children_of_this_process
from tests.support.rdf_oracle import BASE
from tests.support.waiting import wait_until

DOCUMENT = b"@prefix e: <http://example.org/> .\n<#a> e:p 'x', _:n . _:n e:q 1 .\n"

SCOPED = {"@id": "http://x.example/s", "@context": {"u": "http://x.example/u"}}
ENDLESS = json.dumps(
    {"@context": {f"t{number}": SCOPED for number in range(9000)}, "t1": {"u": 1}}
).encode()
"""The parser copies the terms for each definition: about thirty seconds."""


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def conversion(
    content: bytes = DOCUMENT, content_type: str = TURTLE, media_type: str = JSON_LD
) -> Conversion:
    limits = RdfLimits(max_context_work=10**12)
    return Conversion(content, content_type, media_type, BASE, BASE, {}, limits)


@pytest.fixture
def budgets() -> ProcessorBudgets:
    return ProcessorBudgets(now_s=Clock())


@pytest.fixture
async def processes(budgets: ProcessorBudgets) -> AsyncIterator[RdfProcesses]:
    set_requester("203.0.113.1")
    processes = make(budgets=budgets)
    yield processes
    await processes.close()


make = partial(RdfProcesses, base_url="http://localhost:3000", bundled=bundled_contexts())


async def converted_for(
    processes: RdfProcesses, requester: str, task: Conversion, pod: str = ""
) -> bytes:
    set_requester(requester)
    return await processes.in_process(task, pod=pod)


@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD, N_QUADS, TRIG])
async def test_a_conversion_there_is_one_here(processes: RdfProcesses, media_type: str) -> None:
    here = serialize(parse(DOCUMENT, TURTLE, base_iri=BASE), media_type, base_iri=BASE)
    assert await processes.in_process(conversion(media_type=media_type), pod="") == here


async def test_contexts_come_with_the_task_or_with_the_server(processes: RdfProcesses) -> None:
    content = b'{"@context": "https://www.w3.org/ns/activitystreams", "type": "Note", "id": "#a"}'
    made = await processes.in_process(conversion(content, JSON_LD, TURTLE), pod="")
    assert b"activitystreams#" in made
    content = content.replace(b"w3.org/ns/activitystreams", b"contexts.example/x")
    with pytest.raises(UnknownContext) as raised:
        await processes.in_process(conversion(content, JSON_LD, TURTLE), pod="")
    assert raised.value.url == "https://www.contexts.example/x"
    task = Conversion(
        content,
        JSON_LD,
        TURTLE,
        BASE,
        BASE,
        {raised.value.url: {"type": "@type", "id": "@id", "Note": "http://x.example/Note"}},
        RdfLimits(),
    )
    assert b"Note" in await processes.in_process(task, pod="")


async def test_an_error_there_is_the_same_here(processes: RdfProcesses) -> None:
    with pytest.raises(MalformedRdf) as here:
        parse(b"<a> <b>\n<", TURTLE, base_iri=BASE)
    with pytest.raises(MalformedRdf) as there:
        await processes.in_process(conversion(b"<a> <b>\n<"), pod="")
    assert str(there.value) == str(here.value)
    assert (there.value.line, there.value.reason) == (here.value.line, here.value.reason)


def sparql(text: str) -> Patch:
    return parse_sparql_update(text.encode(), base_iri=BASE, limits=RdfLimits())


N3 = """@prefix solid: <http://www.w3.org/ns/solid/terms#>. <#x> a solid:InsertDeletePatch;
solid:where {?a <#p> 2}; solid:deletes {?a <#p> 2}; solid:inserts {?a <#q> _:new}."""


@pytest.mark.parametrize(
    "patch",
    [
        sparql("DELETE {?a <#p> ?b} INSERT {?a <#q> ?b, _:n} WHERE {?a <#p> ?b . ?a <#r> ?c}"),
        sparql("PREFIX e: <http://e.example/> INSERT {?a e:q 'x'@en} WHERE {?a <#p> ?b}"),
        parse_n3_patch(N3.encode(), base_iri=BASE, limits=RdfLimits()),
    ],
)
async def test_a_patch_there_is_one_here(processes: RdfProcesses, patch: Patch) -> None:
    content = b"<#a> <#p> 1, _:n0; <#r> <#s>, 'x\\ny'@de . <#b> <#p> 2 . _:n0 <#r> 'z' ."
    graph, other = (parse(text, TURTLE, base_iri=BASE).graph for text in (content, b"_:n1 a 1 ."))
    task = Evaluation.of(patch, graph, other_graphs=(other,), managed=EMPTY_GRAPH)
    made = Evaluation.carry_out(task, {})
    assert await processes.in_process(task, pod="") == made
    assert set(parsed(made)) == set(apply(patch, graph, other_graphs=(other,)))


def parsed(lines: bytes) -> Graph:
    return parse(lines, "application/n-triples", base_iri=BASE).graph


async def test_a_patch_that_does_not_apply_or_takes_too_many_steps(processes: RdfProcesses) -> None:
    text = "".join(f"<#{number}> <#p> {number} .\n" for number in range(200))
    graph = parse(text.encode(), TURTLE, base_iri=BASE).graph
    patch = parse_n3_patch(N3.replace("<#p> 2", "<#none> 2").encode(), base_iri=BASE, limits=LIMITS)
    with pytest.raises(PatchInapplicable, match="do not hold"):
        await processes.in_process(Evaluation.of(patch, graph, managed=EMPTY_GRAPH), pod="")
    costly = sparql("DELETE {?a <#p> ?b} WHERE {?a <#p> ?b. ?c <#p> ?d. ?e <#p> ?f}")
    with pytest.raises(PatchTooCostly):
        await processes.in_process(Evaluation.of(costly, graph, managed=EMPTY_GRAPH), pod="")


LIMITS = RdfLimits()


async def test_what_takes_too_long_is_ended_and_counts(budgets: ProcessorBudgets) -> None:
    set_requester("203.0.113.1")
    processes = make(budgets=budgets, processor_s=1)
    for _ in range(int(BUDGET_S) + 2):
        budgets.spend("203.0.113.1", 1)
    budgets.spend("203.0.113.1", -2.5)
    with pytest.raises(WorkTooCostly):
        await processes.in_process(conversion(ENDLESS, JSON_LD, TURTLE), pod="")
    assert budgets.wait_s("203.0.113.1") > 0
    assert not processes._idle
    assert await converted_for(processes, "203.0.113.2", conversion())
    await processes.close()


async def test_what_takes_too_much_memory_is_ended(budgets: ProcessorBudgets) -> None:
    set_requester("203.0.113.1")
    processes = make(budgets=budgets, memory_mib=160)
    large = "".join(f"<#{number}> <#p> <#o{number}> .\n" for number in range(90_000)).encode()
    with pytest.raises(WorkTooCostly):
        await processes.in_process(conversion(large), pod="")
    assert await processes.in_process(conversion(), pod="")
    await processes.close()


async def test_others_are_answered_while_one_requester_has_all_it_may(
    processes: RdfProcesses,
) -> None:
    """None of the stranger's is done when everybody else's is."""
    endless = conversion(ENDLESS, JSON_LD, TURTLE)
    strangers = [
        asyncio.create_task(converted_for(processes, "stranger", endless, "/alice/"))
        for _ in range(12)
    ]
    await asyncio.sleep(0)
    for other in ("owner", "203.0.113.7"):
        for pod in ("/alice/", "/bob/"):
            assert await converted_for(processes, other, conversion(), pod)
    assert not any(each.done() for each in strangers)
    for each in strangers:
        each.cancel()
    await asyncio.gather(*strangers, return_exceptions=True)


async def test_a_request_that_is_cancelled_ends_its_process(processes: RdfProcesses) -> None:
    before = children_of_this_process()
    endless = asyncio.create_task(
        processes.in_process(conversion(ENDLESS, JSON_LD, TURTLE), pod="")
    )
    await asyncio.to_thread(
        wait_until, lambda: bool(children_of_this_process() - before), "its process"
    )
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)
    await asyncio.to_thread(wait_until, lambda: not children_of_this_process() - before, "its end")


async def test_too_many_at_once_are_refused(processes: RdfProcesses) -> None:
    endless = conversion(ENDLESS, JSON_LD, TURTLE)
    waiting = [asyncio.create_task(processes.in_process(endless, pod="")) for _ in range(40)]
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert all(isinstance(each.exception(), Overloaded) for each in done)
    assert len(pending) == 32
    for each in pending:
        each.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


async def test_a_used_up_budget_is_told_with_the_time_to_wait(
    processes: RdfProcesses, budgets: ProcessorBudgets
) -> None:
    budgets.spend("203.0.113.1", 2 * BUDGET_S)
    for ask in (
        processes.in_process(conversion(), pod=""),
        processes.in_thread(lambda: None, pod=""),
    ):
        with pytest.raises(RateLimited) as raised:
            await ask
        assert raised.value.retry_after_s == WINDOW_S
    assert await converted_for(processes, "203.0.113.2", conversion())


async def test_people_of_this_server_have_budgets_of_their_own_and_others_those_of_their_networks(
    processes: RdfProcesses, budgets: ProcessorBudgets
) -> None:
    budgets.spend("203.0.113.1", 2 * BUDGET_S)
    note_agent("http://localhost:3000/alice/#me")
    assert await processes.in_process(conversion(), pod="")
    note_agent("https://elsewhere.example/#me")
    with pytest.raises(RateLimited):
        await processes.in_process(conversion(), pod="")


async def test_the_work_of_the_server_itself_has_no_budget(
    processes: RdfProcesses, budgets: ProcessorBudgets
) -> None:
    budgets.spend("", 2 * BUDGET_S)
    assert await converted_for(processes, "", conversion())


async def test_threads_count_as_well(processes: RdfProcesses, budgets: ProcessorBudgets) -> None:
    budgets.spend("203.0.113.1", BUDGET_S)
    assert await processes.in_thread(lambda: sum(range(100_000)), pod="") == 4999950000
    assert budgets.wait_s("203.0.113.1") > 0


async def test_memory_is_given_back_after_a_thread_and_when_its_result_is_dropped(
    processes: RdfProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(
        rdf_processes, "_trim", lambda _kept: loop.call_soon_threadsafe(given_back.release)
    )
    monkeypatch.setattr(rdf_processes, "_GIVE_BACK_AFTER_S", 0)
    assert await processes.in_thread(lambda: 1, pod="") == 1
    await given_back.acquire()
    await given_back.acquire()


async def test_a_process_is_used_again(processes: RdfProcesses) -> None:
    before = children_of_this_process()
    assert await processes.in_process(conversion(), pod="")
    (first,) = children_of_this_process() - before
    assert await processes.in_process(conversion(), pod="")
    assert children_of_this_process() - before == {first}


async def test_the_memory_of_the_server_does_not_count_as_that_of_the_process(
    processes: RdfProcesses,
) -> None:
    before = children_of_this_process()
    memory_of_the_server = bytearray(b"x") * (300 * 1024 * 1024)
    assert await processes.in_process(conversion(), pod="")
    del memory_of_the_server
    assert len(children_of_this_process() - before) == 1


async def test_a_process_ends_when_it_has_been_idle(budgets: ProcessorBudgets) -> None:
    set_requester("203.0.113.1")
    before = children_of_this_process()
    processes = make(budgets=budgets, idle_s=0.01)
    assert await processes.in_process(conversion(), pod="")
    await asyncio.to_thread(wait_until, lambda: not children_of_this_process() - before, "its end")
    await processes.close()


async def test_where_no_process_starts_a_thread_does_the_work(budgets: ProcessorBudgets) -> None:
    """As when the package has been replaced by another version."""
    set_requester("203.0.113.1")
    processes = make(budgets=budgets, module="podstead.app.adapters.no_such_module")
    assert await processes.in_process(conversion(), pod="")
    with pytest.raises(MalformedRdf):
        await processes.in_process(conversion(b"<"), pod="")


def test_there_are_few_processes() -> None:
    """Their number times their memory is what they can take at most (docs/explanation)."""
    assert MAX_PROCESSES == 4


# --- How much processor time a requester may use, and when it may use more ---------------------


def test_whoever_has_used_up_its_budget_waits_and_nobody_else() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == 0, "it may use up all of it"
    budgets.spend("a", BUDGET_S / 2)
    assert budgets.wait_s("a") == WINDOW_S / 2
    assert budgets.wait_s("b") == 0
    clock.now_s += WINDOW_S / 2
    assert budgets.wait_s("a") == 0
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == WINDOW_S


def test_a_budget_is_full_again_after_a_pause() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    budgets.spend("a", BUDGET_S)
    clock.now_s += WINDOW_S
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == 0


def test_those_who_pause_take_no_memory() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    for number in range(25_000):
        budgets.spend(str(number), 0.001)
        clock.now_s += 0.01
    assert len(budgets._used) <= 10_000
