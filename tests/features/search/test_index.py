"""The index of both engines against a scan of the same texts with the same analysis."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.root import prepared_root
from podstead.app.operator.data_root import opened_records
from podstead.core.errors import DiskFull, StorageError
from podstead.core.identifiers import ResourcePath, encode_segment
from podstead.features.search.analysis import index_text, parse_question, terms
from podstead.features.search.fts5 import Fts5Index
from podstead.features.search.index import Index, IndexedDocument, IndexQuery, IndexStep, Position
from podstead.features.search.worker import index_of
from podstead.storage.disk_space import DiskSpace
from podstead.wac.modes import any_member
from tests.features.search.plain_search import matches
from tests.support.postgresql import new_database
from tests.support.usual_roots import usual_settings

RULES = [any_member(ResourcePath("/alice/")), any_member(ResourcePath("/alice/b/"))]
WORDS = [
    "house",
    "houses",
    "Häuser",
    "été",
    "a",
    "snake_case",
    "don't",
    "東京都",
    "ทดสอบ",
    "x1",
    "-",
    '"',
]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
names = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)
documents = st.dictionaries(
    st.tuples(st.sampled_from(["/alice/", "/alice/b/"]), names),
    st.tuples(texts, st.sampled_from([None, "en", "de"]), st.sampled_from(RULES)),
    max_size=6,
)
questions = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(WORDS).map(lambda word: f"-{word}"),
        st.sampled_from(WORDS).map(lambda word: f"{word[:2]}*"),
        st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(
            lambda pair: f'"{pair[0]} {pair[1]}"'
        ),
    ),
    max_size=3,
).map(" ".join)
Texts = Mapping[tuple[str, str], tuple[str, str | None, ResourcePath]]


def document_of(
    place: tuple[str, str], said: tuple[str, str | None, ResourcePath]
) -> IndexedDocument:
    (folder, name), (text, language, rule) = place, said
    return IndexedDocument(
        path=ResourcePath(folder + encode_segment(name.encode())),
        rule=rule,
        version="1",
        media_type="text/plain",
        names=index_text(terms(name)),
        terms=index_text(terms(text, language)),
        text=text,
        language=language,
    )


async def compare(index: Index, before: Texts, after: Texts, asked: Sequence[str]) -> None:
    """What is found is what a scan finds, after all documents were replaced by others."""
    old = [document_of(*each) for each in before.items()]
    new = [document_of(*each) for each in after.items()]
    await index.begin(Position(0, "", ""))
    languages = {"en", "de"}
    await index.apply(
        IndexStep(Position(1, "1"), languages=languages, puts={each.path: each for each in old})
    )
    await index.apply(
        IndexStep(
            Position(2, "2"),
            languages=languages,
            puts={each.path: each for each in new},
            drops={each.path for each in old} - {each.path for each in new},
        )
    )
    assert await index.position() == Position(2, "2")
    assert await index.size() == len(new)
    for text in asked:
        question = parse_question(text, await index.languages())
        for below in map(ResourcePath, ("/alice/", "/alice/b/", "/bob/")):
            for rules in (None, RULES[:1], []):
                found = await index.candidates(IndexQuery(question, [below], rules, 100))
                assert {each.path for each in found} == {
                    each.path
                    for each in new
                    if each.path.startswith(below)
                    and (rules is None or each.rule in rules)
                    and matches(question, each.names, each.terms)
                }, text


@asynccontextmanager
async def opened_index(root: Path, database: str | None) -> AsyncIterator[Index]:
    changed = usual_settings(root).with_values(database=database)
    async with opened_records(changed) as records:
        index = index_of(changed, records, DiskSpace(changed.root))
        try:
            yield index
        finally:
            await index.close()


@settings(max_examples=60)
@given(before=documents, after=documents, asked=st.lists(questions, min_size=1, max_size=4))
def test_fts5_finds_what_a_scan_finds(before: Texts, after: Texts, asked: Sequence[str]) -> None:
    async def run() -> None:
        index = Fts5Index(Path(folder) / "search.db", DiskSpace(Path(folder)))
        try:
            await compare(index, before, after, asked)
        finally:
            await index.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run())


def test_postgresql_finds_what_a_scan_finds(tmp_path: Path) -> None:
    @settings(max_examples=15)
    @given(before=documents, after=documents, asked=st.lists(questions, min_size=1, max_size=4))
    def check(before: Texts, after: Texts, asked: Sequence[str]) -> None:
        async def run() -> None:
            async with opened_index(tmp_path, database) as index:
                await compare(index, before, after, asked)

        asyncio.run(run())

    with (
        new_database() as database,
        prepared_root(usual_settings(tmp_path).with_values(database=database)),
    ):
        check()


async def found_by_rule(index: Index) -> Mapping[ResourcePath, Sequence[object]]:
    """All that an index has, except for authors, who are only known of what the log had."""
    question, root = parse_question("", ()), ResourcePath("/")
    found = {}
    for rule in await index.rules(root, limit=1000):
        candidates = await index.candidates(IndexQuery(question, [root], [rule], 1000))
        terms = await index.terms((each.path for each in candidates), max_characters=10**6)
        if candidates:
            found[rule] = sorted(
                (each.path, each.version, each.media_type, terms[each.path]) for each in candidates
            )
    return found


@pytest.mark.parametrize("change", ["garbage", "removed", "older"])
async def test_an_index_that_cannot_be_used_is_built_anew(tmp_path: Path, change: str) -> None:
    database = tmp_path / "search.db"
    index = Fts5Index(database, DiskSpace(database.parent))
    await index.begin(Position(0, "", ""))
    await index.apply(IndexStep(Position(1, "1")))
    await index.close()
    if change == "garbage":
        database.write_bytes(b"x" * 8192)
        (tmp_path / "search.db-wal").unlink(missing_ok=True)
    elif change == "removed":
        database.unlink()
    else:
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version = 999")
    index = Fts5Index(database, DiskSpace(database.parent))
    for _ in range(2):  # what is damaged is removed when it is found
        try:
            assert await index.position() is None
            break
        except StorageError:
            assert change == "garbage"
    await index.begin(Position(5, "5", ""))
    assert await index.position() == Position(5, "5", "")
    await index.close()


async def test_the_index_leaves_a_disk_that_is_nearly_full_alone(tmp_path: Path) -> None:
    database = tmp_path / "search.db"
    index = Fts5Index(database, DiskSpace(tmp_path, min_free_bytes=0))
    await index.begin(Position(1, "1"))
    await index.close()
    full = Fts5Index(database, DiskSpace(tmp_path, min_free_bytes=2**60))
    with pytest.raises(DiskFull):
        await full.apply(IndexStep(Position(2, "2")))
    with pytest.raises(DiskFull):
        await full.begin(Position(3, "3"))
    assert await full.position() == Position(1, "1")
    await full.forget()
    assert await full.position() is None
    await full.close()
