"""The order of members, also of very many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath, encode_segment
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.web.pages.formats import name_sort_key
from podstead.web.pod_pages.files.members import Member, Members, Order, Sorting, in_order
from podstead.web.pod_pages.files.names import shown_name


def member(text: str, *, folder: bool = False, size: int = 1, changed: int = 0) -> Member:
    path = ResourcePath(f"/pod/{encode_segment(text.encode())}{'/' if folder else ''}")
    metadata = Metadata(
        path=path,
        kind=ResourceKind.CONTAINER if folder else ResourceKind.DOCUMENT,
        version=Version("0" * 16),
        content_type="text/plain",
        size_bytes=size,
        modified_ms=changed,
        created_ms=0,
    )
    name = shown_name(path)
    return Member(name, name_sort_key()(name), metadata)


def names(members: list[Member], sorting: str) -> list[str]:
    return [each.name for each in in_order(members, Sorting.of(sorting))]


def test_numbers_in_names_are_ordered_by_their_value() -> None:
    members = [member(name) for name in ("b10", "b9", "B1", "a", "b", "b9a", "10", "9")]
    assert names(members, "name") == ["9", "10", "a", "b", "B1", "b9", "b9a", "b10"]


def test_equal_members_are_in_the_order_of_their_names() -> None:
    members = [member("c", size=2), member("b", size=1), member("a", size=2)]
    assert names(members, "-size") == ["a", "c", "b"]
    assert names(members, "size") == ["b", "a", "c"]


@given(
    st.lists(st.text(min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})),
    st.sampled_from([*Order]),
    st.booleans(),
)
def test_sorting_loses_nothing_and_puts_folders_first(
    texts: list[str], order: Order, descending: bool
) -> None:
    members = [
        member(text.encode(errors="replace").decode(), folder=number % 3 == 0)
        for number, text in enumerate(texts)
    ]
    found = in_order(members, Sorting(order, descending))
    assert sorted(map(id, found)) == sorted(map(id, members))
    kinds = [each.is_container for each in found]
    assert kinds == sorted(kinds, reverse=True)


def test_a_click_on_the_same_column_turns_the_order_around() -> None:
    assert Sorting().by(Order.NAME) == Sorting(Order.NAME, descending=True)
    assert Sorting().by(Order.CHANGED) == Sorting(Order.CHANGED, descending=True)
    assert Sorting.of("-size").text == "-size"
    assert Sorting.of("<script>") == Sorting()


def test_ten_thousand_members_are_sorted_once_for_all_their_parts() -> None:
    container = member("folder", folder=True).metadata
    members = Members(container, [member(f"file {number}") for number in range(10_000)])
    first = members.sorted(Sorting())
    assert members.sorted(Sorting()) is first
    assert [each.name for each in first[:3]] == ["file 0", "file 1", "file 2"]
    assert len(members.matching("FILE 999", Sorting())) == 11
