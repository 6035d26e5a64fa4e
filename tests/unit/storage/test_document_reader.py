"""What stored documents say, read once for each version, against a dict of their contents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BodyTooLarge, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.document_reader import (
    MAX_ATTEMPTS,
    ChangingTooFast,
    DocumentReader,
    Superseded,
)
from podstead.storage.records import Metadata, ResourceKind, Version

pytestmark = pytest.mark.anyio

CARD, OTHER = ResourcePath("/card"), ResourcePath("/other")
MAX_BYTES = 100


class Documents:
    """Documents in memory, each of which may be replaced just before it is opened."""

    def __init__(self) -> None:
        self.contents: dict[ResourcePath, str] = {}
        self.versions: dict[ResourcePath, int] = {}
        self.replacements: list[str] = []
        self.interpreted: list[tuple[str, str]] = []
        self.opened = 0
        self.trouble: Exception | None = None

    def put(self, path: ResourcePath, content: str) -> None:
        self.contents[path] = content
        self.versions[path] = self.versions.get(path, 0) + 1

    def metadata(self, path: ResourcePath) -> Metadata | None:
        if path not in self.contents:
            return None
        return Metadata(
            path=path,
            kind=ResourceKind.DOCUMENT,
            version=Version(f"{self.versions[path]:016x}"),
            content_type="text/plain",
            size_bytes=len(self.contents[path]),
            modified_ms=0,
            created_ms=0,
        )

    async def read_metadata(
        self, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, Metadata | None]:
        return {path: self.metadata(path) for path in paths}

    async def open_body(self, metadata: Metadata) -> ContentBody | None:
        self.opened += 1
        if self.replacements:
            self.put(metadata.path, self.replacements.pop(0))
        current = self.metadata(metadata.path)
        if current is None or current.version != metadata.version:
            return None
        return ContentBody(self.contents[metadata.path].encode())

    async def interpret(self, name: str, metadata: Metadata, content: bytes) -> str:
        self.interpreted.append((name, metadata.version))
        if self.trouble is not None:
            raise self.trouble
        return f"{name} says {content.decode()}"


@pytest.fixture
def documents() -> Documents:
    documents = Documents()
    documents.put(CARD, "one")
    return documents


def reader_of(documents: Documents, *, max_weight: int = 1000) -> DocumentReader[str]:
    return DocumentReader(
        documents,
        documents.interpret,
        kind="cards",
        weigh=lambda _, result: len(result),
        max_weight=max_weight,
        max_bytes=MAX_BYTES,
    )


async def test_a_version_is_read_once(documents: Documents) -> None:
    reader = reader_of(documents)
    assert [await reader.current(CARD, CARD) for _ in range(3)] == ["/card says one"] * 3
    assert (documents.opened, len(documents.interpreted)) == (1, 1)


@given(
    st.lists(
        st.tuples(st.sampled_from([CARD, OTHER]), st.one_of(st.none(), st.sampled_from("abc"))),
        max_size=20,
    )
)
async def test_a_document_says_what_was_written_last(
    steps: list[tuple[ResourcePath, str | None]],
) -> None:
    """Writes, deletions and reads in any order; the cache is too small for all of them."""
    documents = Documents()
    reader = reader_of(documents, max_weight=25)
    for path, content in steps:
        if content is None:
            documents.contents.pop(path, None)
        else:
            documents.put(path, content)
        for each in (CARD, OTHER):
            stored = documents.contents.get(each)
            expected = None if stored is None else f"{each} says {stored}"
            assert await reader.current(each, each) == expected


async def test_what_depends_on_the_name_is_not_mixed_up(documents: Documents) -> None:
    """Two WebIDs may be described in one document."""
    reader = reader_of(documents)
    names = ["/card#me", "/card#you"]
    assert [await reader.current(name, CARD) for name in names * 2] == [
        "/card#me says one",
        "/card#you says one",
    ] * 2


async def test_trouble_is_not_remembered(documents: Documents) -> None:
    """Trouble may pass, while the version stays the same."""
    reader = reader_of(documents)
    documents.trouble = StorageError("The disk cannot be read")
    with pytest.raises(StorageError):
        await reader.current(CARD, CARD)
    documents.trouble = None
    assert await reader.current(CARD, CARD) == "/card says one"


async def test_a_replaced_document_is_read_at_its_new_version(documents: Documents) -> None:
    documents.replacements = ["two", "three"]
    assert await reader_of(documents).current(CARD, CARD) == "/card says three"
    assert len(documents.interpreted) == 1


async def test_a_document_that_is_replaced_every_time_is_not_read_for_ever(
    documents: Documents,
) -> None:
    documents.replacements = ["again"] * (MAX_ATTEMPTS + 1)
    with pytest.raises(ChangingTooFast, match="The cards are changing too fast to be read"):
        await reader_of(documents).current(CARD, CARD)
    assert (documents.opened, documents.interpreted) == (MAX_ATTEMPTS, [])


async def test_a_large_document_is_not_opened(documents: Documents) -> None:
    reader = reader_of(documents)
    documents.put(CARD, "x" * MAX_BYTES)
    assert await reader.current(CARD, CARD) is not None
    documents.put(CARD, "x" * (MAX_BYTES + 1))
    with pytest.raises(BodyTooLarge):
        await reader.current(CARD, CARD)
    assert documents.opened == 1


async def test_several_documents_are_read_at_one_moment(documents: Documents) -> None:
    """All of them again, if one was replaced: together they must never say what neither moment
    said."""
    documents.put(OTHER, "one")
    reader = reader_of(documents)
    seen: list[tuple[str, ...]] = []

    async def read(snapshot: Mapping[ResourcePath, Metadata | None]) -> list[str]:
        found = [metadata for metadata in snapshot.values() if metadata is not None]
        seen.append(tuple(each.version for each in found))
        if len(seen) == 1:
            documents.put(CARD, "two")
            documents.put(OTHER, "two")
        return [await reader.read(each.path, each) for each in found]

    assert await reader.retry([CARD, OTHER], read) == ["/card says two", "/other says two"]
    assert len(seen) == 2


async def test_another_source_shares_the_cache_and_nothing_else(documents: Documents) -> None:
    """Such as one of an earlier moment, in which a deleted document is back."""
    earlier = Documents()
    earlier.put(CARD, "one")
    earlier.put(OTHER, "gone by now")
    reader = reader_of(documents)
    assert await reader.current(CARD, CARD) == "/card says one"
    over = reader.over(earlier)
    assert await over.current(CARD, CARD) == "/card says one"
    assert await over.current(OTHER, OTHER) == "/other says gone by now"
    assert (documents.opened, earlier.opened) == (1, 1)
    assert await reader.current(OTHER, OTHER) is None


async def test_a_superseded_version_is_not_taken_for_an_absent_document(
    documents: Documents,
) -> None:
    metadata = documents.metadata(CARD)
    assert metadata is not None
    documents.put(CARD, "two")
    with pytest.raises(Superseded):
        await reader_of(documents).read(CARD, metadata)
