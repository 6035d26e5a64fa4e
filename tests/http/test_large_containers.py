"""What a listing says, and how one is sent that is long: bounded, soon, and only while wanted."""

from __future__ import annotations

import asyncio
import re
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, cast

import pyoxigraph
import pytest
import rdflib

from podstead.app.adapters import engine
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.resources import content, reading
from podstead.storage.protocol import Snapshot
from podstead.storage.sqlite import SqliteStore
from podstead.web.application import Application
from podstead.web.asgi import Message, Receive, Scope, Send
from tests.storage.engine_suite.engine import commit, put, write
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer, Client
from tests.support.rdf import FORMATS, N_TRIPLES, TURTLE, said

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
STAT = rdflib.Namespace("http://www.w3.org/ns/posix/stat#")
MEDIA_TYPES = "http://www.w3.org/ns/iana/media-types/"
CONTAINER = "/alice/private/large/"
MEMBERS = 4_000
"""Several times what is listed whole, in every form."""

PAGES = MEMBERS // reading.PAGE_MEMBERS
_CONTAINS = re.compile(rb"\n<> ldp:contains <([^>]*)> \.\n")


@dataclass
class Reads:
    """What the server asked its store for."""

    pages: list[ResourcePath | None] = field(default_factory=list)
    members: int = 0
    metadata: int = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Counts what every server started later reads."""
    reads = Reads()

    class CountingStore(SqliteStore):
        async def read_metadata(self, paths: Any) -> Snapshot:  # noqa: ANN401 - paths
            snapshot = await super().read_metadata(paths)
            reads.metadata += len(snapshot)
            return snapshot

        async def list_members(
            self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
        ) -> Any:  # noqa: ANN401 - metadata of members
            members = await super().list_members(container, after=after, limit=limit)
            reads.pages.append(after)
            reads.members += len(members)
            return members

    monkeypatch.setattr(engine, "SqliteStore", CountingStore)
    return reads


async def furnish(settings: Settings, size: int, container: str = CONTAINER) -> None:
    """Put documents into a new container, beside the server that is running."""
    store = SqliteStore(settings.root)
    await store.open()
    await commit(store, write(put(container)))
    names = [container + name for name in names_of(size)]
    for first in range(0, size, 2500):
        await commit(store, write(*(put(name, b"x") for name in names[first : first + 2500])))
    await store.close()


def names_of(size: int) -> list[str]:
    return [f"m{number:06d}.ttl" for number in range(size)]


Watch = Callable[[Message], Awaitable[None]]


@dataclass
class Watched:
    """An application whose messages are looked at before the client has them; ``gone`` tells it
    that the client has left. Bodies are let through only if ``keep``."""

    application: Application
    watch: Watch
    keep: bool = True
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = False

        async def receiving() -> Message:
            nonlocal asked
            if asked:
                await self.gone.wait()
                return {"type": "http.disconnect"}
            asked = True
            return await receive()

        async def sending(message: Message) -> None:
            await self.watch(message)
            if self.keep or message["type"] != "http.response.body":
                await send(message)

        await self.application(scope, receiving, sending)


def watching(client: Client, watched: Watched) -> Client:
    return client.asking(cast("Application", watched))


def listed(turtle: bytes) -> list[str]:
    """The names of the members in Turtle as the server writes it, as often as they stand there."""
    return [name.decode() for name in _CONTAINS.findall(turtle)]


# --- what it says ------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", FORMATS)
async def test_a_listing_says_of_every_member_what_the_member_says_itself(
    server: Server, accept: str
) -> None:
    """C-23, C-24, C-25: read by rdflib, and compared with the headers of each member."""
    container = "/alice/private/c/"
    bodies = {
        "note.ttl": ("text/turtle; charset=utf-8", b"<> <#a> 1 ."),
        "data.jsonld": ("application/ld+json", b"{}"),
        "caf%C3%A9": ("text/plain;charset=utf-8", "café".encode()),
        "a:b,c;d": ("image/svg+xml", b"<svg/>"),
        "empty": ("Application/Octet-Stream", b""),
        "large.bin": ("application/x-large", b"x" * 200_000),
    }
    for name, (content_type, body) in bodies.items():
        sent = await server.alice.put(container + name, body, content_type)
        assert sent.status == 201
    assert (await server.alice.put(f"{container}sub/", None, TURTLE)).status == 201
    listing = said(await server.alice.get(container, accept=accept), BASE + container)

    def about(path: str, predicate: rdflib.URIRef) -> set[Any]:
        subject = rdflib.URIRef(BASE + path)
        return {o for s, p, o in listing if (s, p) == (subject, predicate)}

    for path, kinds in [
        *((container + name, {essence_class(kind)}) for name, (kind, _) in bodies.items()),
        (f"{container}sub/", {LDP.Container, LDP.BasicContainer}),
        (container, {LDP.Container, LDP.BasicContainer}),
    ]:
        head = await server.alice.head(path)
        modified = parsedate_to_datetime(head.header("last-modified") or "")
        assert about(path, rdflib.RDF.type) == kinds | {LDP.Resource}
        assert [o.toPython() for o in about(path, rdflib.DCTERMS.modified)] == [modified]
        assert about(path, STAT.mtime) == {rdflib.Literal(int(modified.timestamp()))}
    for name, (_, body) in bodies.items():
        assert about(container + name, STAT.size) == {rdflib.Literal(len(body))}
    contained = {str(o).removeprefix(BASE + container) for o in about(container, LDP.contains)}
    assert contained == {*bodies, "sub/"}
    others = {*(container + name for name in (*bodies, "sub/")), container}
    assert {s for s, _, _ in listing} == {rdflib.URIRef(BASE + path) for path in others}


def essence_class(content_type: str) -> rdflib.URIRef:
    essence = content_type.partition(";")[0].lower()
    return rdflib.URIRef(f"{MEDIA_TYPES}{essence}#Resource")


# --- HEAD --------------------------------------------------------------------------------------


async def test_head_of_ten_thousand_members_reads_as_much_as_of_none(
    reads: Reads, server: Server, settings: Settings
) -> None:
    """The body is not built; not a member is read for it."""
    empty = "/alice/private/empty/"
    await furnish(settings, 10_000)
    await furnish(settings, 0, empty)
    counted = {}
    for path in (empty, CONTAINER):
        for accept in FORMATS:
            before = reads.metadata
            head = await server.alice.head(path, accept=accept)
            assert (head.status, head.body) == (200, b"")
            assert head.header("etag")
            counted[path, accept] = reads.metadata - before
    assert reads.pages == []
    for accept in FORMATS:
        assert counted[CONTAINER, accept] == counted[empty, accept]


# --- sending while reading ---------------------------------------------------------------------


@pytest.mark.parametrize("accept", FORMATS)
async def test_a_long_listing_is_sent_while_it_is_read(
    reads: Reads, server: Server, settings: Settings, accept: str
) -> None:
    """C-29: the first byte does not wait for the last member, and pieces do not pile up."""
    await furnish(settings, MEMBERS)
    pages_at_start = -1
    ahead: list[int] = []

    async def watch(message: Message) -> None:
        nonlocal pages_at_start
        if message["type"] == "http.response.start":
            pages_at_start = len(reads.pages)
        elif message.get("body"):
            ahead.append(len(reads.pages) - len(ahead))

    client = watching(server.alice, Watched(server.application, watch))
    answer = await client.get(CONTAINER, accept=accept)
    assert (answer.status, answer.header("content-length")) == (200, None)
    assert 0 < pages_at_start <= len(reads.pages) // 2
    assert max(ahead) <= pages_at_start, "no more is read ahead than was before the start"
    assert reads.members == MEMBERS
    assert len(reads.pages) == len(set(reads.pages))
    contained = [o for o in oxigraph_objects(answer) if o.startswith(BASE + CONTAINER)]
    assert sorted(contained) == [f"{BASE}{CONTAINER}{name}" for name in names_of(MEMBERS)]


def oxigraph_objects(answer: Answer) -> list[str]:
    """What the container contains, read by a parser that takes long documents."""
    quads = pyoxigraph.parse(
        answer.body,
        format=pyoxigraph.RdfFormat.from_media_type(answer.header("content-type") or ""),
        base_iri=BASE + CONTAINER,
    )
    return [
        quad.object.value
        for quad in quads
        if quad.predicate.value == str(LDP.contains)
        if isinstance(quad.object, pyoxigraph.NamedNode)
    ]


async def test_twenty_thousand_members_take_the_memory_of_a_few_pages(
    start: Start, settings: Settings
) -> None:
    """C-29, and each of them is there once."""
    size = 20_000
    server = await start(rendering_cache_bytes=0)
    await furnish(settings, size)
    seen: list[str] = []
    sent_bytes = 0

    async def watch(message: Message) -> None:
        nonlocal sent_bytes
        piece = message.get("body", b"")
        sent_bytes += len(piece)
        seen.extend(listed(piece))

    client = watching(server.alice, Watched(server.application, watch, keep=False))
    tracemalloc.start()
    try:
        assert (await client.get(CONTAINER, accept=TURTLE)).status == 200
        kept_by_this_test, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == names_of(size)
    assert sent_bytes > 8 * reading.MAX_WHOLE_BYTES
    assert peak - kept_by_this_test < sent_bytes / 2


async def test_a_client_that_goes_away_stops_the_reading(
    reads: Reads, server: Server, settings: Settings
) -> None:
    """What was begun for it neither is kept nor keeps the next from being kept."""
    await furnish(settings, MEMBERS)

    async def leave(message: Message) -> None:
        if message.get("body"):
            watched.gone.set()
            await asyncio.sleep(0)  # the server hears of it

    watched = Watched(server.application, leave)
    await watching(server.alice, watched).get(CONTAINER)
    assert 0 < len(reads.pages) <= PAGES // 2
    assert listed((await server.alice.get(CONTAINER)).body) == names_of(MEMBERS)
    read = len(reads.pages)
    again = await server.alice.get(CONTAINER)
    assert (listed(again.body), len(reads.pages)) == (names_of(MEMBERS), read)


async def test_a_connection_that_breaks_stops_the_reading(
    reads: Reads, server: Server, settings: Settings
) -> None:
    await furnish(settings, MEMBERS)

    async def break_off(message: Message) -> None:
        if message.get("body"):
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await watching(server.alice, Watched(server.application, break_off)).get(CONTAINER)
    assert 0 < len(reads.pages) <= PAGES // 2


async def test_what_was_sent_is_kept_and_sent_again_in_pieces(
    reads: Reads, server: Server, settings: Settings
) -> None:
    """A slow reader holds no more of what is kept than of what is made."""
    await furnish(settings, MEMBERS)
    first = await server.alice.get(CONTAINER)
    read = len(reads.pages)
    again = await server.alice.get(CONTAINER)
    assert (again.body, len(reads.pages)) == (first.body, read)
    assert again.header("etag") == first.header("etag")
    assert again.header("content-length") == str(len(first.body))
    assert max(map(len, again.pieces)) <= reading.MAX_WHOLE_BYTES


async def test_only_one_long_listing_is_kept_while_it_is_sent(
    reads: Reads, server: Server, settings: Settings
) -> None:
    """However many slow readers there are, they hold one listing between them."""
    await furnish(settings, MEMBERS)
    inner: list[Answer] = []

    async def ask_another_form(message: Message) -> None:
        if message.get("body") and not inner:
            inner.append(await server.alice.get(CONTAINER, accept=N_TRIPLES))

    first = await watching(server.alice, Watched(server.application, ask_another_form)).get(
        CONTAINER
    )
    read = len(reads.pages)
    assert (await server.alice.get(CONTAINER)).body == first.body
    assert len(reads.pages) == read
    assert (await server.alice.get(CONTAINER, accept=N_TRIPLES)).body == inner[0].body
    assert len(reads.pages) > read


# --- while others write ------------------------------------------------------------------------


async def test_members_that_come_and_go_while_a_listing_is_sent_do_not_tear_it(
    reads: Reads, server: Server, settings: Settings
) -> None:
    """What ``resources.reading`` promises; and what was not of one state is not kept."""
    await furnish(settings, MEMBERS)
    names = names_of(MEMBERS)
    late = MEMBERS * 3 // 4
    gone = [names[0], names[late], names[-1]]
    new = ["a-first", f"{names[late]}x", "z-last"]
    changed = [names[1], names[-2]]
    done = False

    async def write_meanwhile(message: Message) -> None:
        nonlocal done
        if not message.get("body") or done:
            return
        done = True
        for name in gone:
            assert (await server.alice.delete(CONTAINER + name)).status == 204
        for name in new:
            made = await server.alice.put(CONTAINER + name, "x", "text/plain")
            assert made.status == 201
        for name in changed:
            put = await server.alice.put(CONTAINER + name, "<> <#longer> 1 .", TURTLE)
            assert put.status == 204

    watched = Watched(server.application, write_meanwhile)
    torn = await watching(server.alice, watched).get(CONTAINER)
    found = listed(torn.body)
    assert found == sorted(set(found)), "in order, and none twice"
    assert set(names) - set(gone) <= set(found) <= set(names) | set(new)
    assert names[-1] not in found, "the end was read after it had gone"
    now = await server.alice.get(CONTAINER, if_none_match=torn.header("etag") or "")
    assert now.status == 200
    assert set(listed(now.body)) == set(names) - set(gone) | set(new)


# --- other requests ----------------------------------------------------------------------------


async def test_a_container_with_many_own_triples_is_written_beside_other_requests(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to ``max-rdf-bytes`` of them: longer than others may be made to wait."""
    threads = noting_threads(monkeypatch, reading, "listing")
    for triples, elsewhere in ((10, False), (4000, True)):
        own = "".join(f'<#s{number}> <#p> "value {number}" .\n' for number in range(triples))
        assert (await server.alice.put("/alice/private/c/", own, TURTLE)).status in (201, 204)
        answer = await server.alice.get("/alice/private/c/", accept=N_TRIPLES)
        assert answer.body.count(b"#p>") == triples
        assert (threads.pop() != threading.get_ident()) is elsewhere


async def test_a_patch_that_asks_about_many_members_reads_them_beside_other_requests(
    reads: Reads, server: Server, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-37: page by page, and what is said of them is put together in another thread."""
    size = 10 * reading.PAGE_MEMBERS + 1
    await furnish(settings, size)
    threads = noting_threads(monkeypatch, content, "_stated")
    last = names_of(size)[-1]
    patch = (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#> .\n"
        f"[] a solid:InsertDeletePatch ; solid:where {{ ?c <{LDP.contains}> <{last}> }} ;"
        f" solid:inserts {{ ?c <#last> <{last}> }} ."
    )
    patched = await server.alice.request(
        "PATCH", CONTAINER, headers={"Content-Type": "text/n3"}, body=patch.encode()
    )
    assert patched.status == 204, patched.text
    assert len(reads.pages) == 11
    assert threads.pop() != threading.get_ident()
    own = await server.alice.get(CONTAINER, accept=N_TRIPLES)
    assert own.body.count(b"#last>") == 1


def noting_threads(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:  # noqa: ANN401
    """In which threads a function of a module is called."""
    threads: list[int] = []
    function = getattr(module, name)

    def noting(*values: Any, **named: Any) -> Any:  # noqa: ANN401 - as the function
        threads.append(threading.get_ident())
        return function(*values, **named)

    monkeypatch.setattr(module, name, noting)
    return threads
