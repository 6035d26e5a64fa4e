from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.previews.kinds import Kind, kind_of, language_of
from podstead.previews.text import MAX_COLUMNS, MAX_ROWS, decode_text, read_table


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (b"caf\xc3\xa9", None, "café"),
        (b"caf\xe9", None, "café"),
        (b"caf\xe9", "iso-8859-1", "café"),
        (b"\xef\xbb\xbfx", None, "x"),
        ("žluť".encode("utf-16"), None, "žluť"),
        ("žluť".encode("cp1250"), "windows-1250", "žluť"),
        (b"x", "rot13", "x"),
        (b"x", "unicode_escape", "x"),
        (b"x", "a" * 1000, "x"),
    ],
)
def test_text_is_shown_in_the_encoding_that_it_has(
    content: bytes, charset: str | None, text: str
) -> None:
    decoded = decode_text(content, charset)
    assert decoded is not None
    assert decoded.text == text


def test_binary_content_is_not_text() -> None:
    assert decode_text(b"\x7fELF\x00\x01") is None


def test_the_limit_does_not_cut_a_character_in_two() -> None:
    decoded = decode_text("aé".encode(), max_bytes=2)
    assert decoded is not None
    assert (decoded.text, decoded.truncated, decoded.exact) == ("a", True, False)


@given(st.binary(max_size=300), st.sampled_from([None, "utf-8", "shift_jis", "utf-16", "gb18030"]))
def test_text_that_may_be_edited_is_the_same_when_it_is_encoded_again(
    content: bytes, charset: str | None
) -> None:
    decoded = decode_text(content, charset)
    if decoded is not None and decoded.exact:
        assert decoded.text.encode() == content


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = "".join(delimiter.join(("name", '"a, b; c|d"', "1")) + "\n" for _ in range(3))
    table = read_table(text)
    assert table.delimiter == delimiter
    assert table.head == ("name", "a, b; c|d", "1")


def test_a_spreadsheet_may_name_the_delimiter() -> None:
    assert read_table("sep=;\na;b\n1,5;2\n").rows == (("1,5", "2"),)


def test_formulas_stay_text() -> None:
    assert read_table("a,b\n=HYPERLINK(1),@x\n").rows == (("=HYPERLINK(1)", "@x"),)


def test_tables_are_bounded() -> None:
    table = read_table("\n".join(",".join("x" * 200) for _ in range(MAX_ROWS + 100)))
    assert len(table.rows) == MAX_ROWS
    assert len(table.head) == MAX_COLUMNS
    assert table.more_rows
    assert table.more_columns


@pytest.mark.parametrize("text", ['"' * 100_000, '"a' * 50_000, "," * 100_000, '"\n' * 50_000, ""])
def test_malformed_tables_are_shown_as_well_as_they_can_be(text: str) -> None:
    read_table(text)


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=4), min_size=1, max_size=6))
def test_what_the_standard_library_writes_is_read(rows: list[list[str]]) -> None:
    rows = [[cell.replace("\r", "").replace("\0", "") for cell in row] for row in rows]
    lines: list[str] = []

    class Written:
        write = staticmethod(lines.append)

    csv.writer(Written(), quoting=csv.QUOTE_ALL).writerows(rows)
    table = read_table("".join(lines), delimiter=",")
    width = max(map(len, rows))
    wide = [tuple(row + [""] * (width - len(row))) for row in rows]
    # Python's splitlines knows more ends of lines than CSV; inside quotes they are data.
    assert [table.head, *table.rows] == wide


@pytest.mark.parametrize(
    ("essence", "name", "kind"),
    [
        ("text/turtle", "a", Kind.LINKED_DATA),
        ("application/ld+json", "a", Kind.LINKED_DATA),
        ("application/json", "a", Kind.SOURCE),
        ("image/png", "a", Kind.IMAGE),
        ("image/svg+xml", "a", Kind.IMAGE),
        ("text/html", "a", Kind.SOURCE),
        ("text/plain", "a.py", Kind.SOURCE),
        ("text/plain", "a.md", Kind.MARKDOWN),
        ("text/plain", "a", Kind.TEXT),
        ("application/octet-stream", "a.csv", Kind.TABLE),
        ("application/octet-stream", "a.exe", Kind.OTHER),
        ("video/mp4", "a.py", Kind.VIDEO),
        ("application/x-unknown+xml", "a", Kind.SOURCE),
        ("application/vnd.ms-excel", "a.csv", Kind.OTHER),
    ],
)
def test_the_media_type_decides_before_the_name(essence: str, name: str, kind: Kind) -> None:
    assert kind_of(essence, name) is kind


def test_languages() -> None:
    assert language_of("text/plain", "x.rs") == "rust"
    assert language_of("text/turtle", "x.py") == "turtle"
    assert language_of("application/geo+json", "x") == "json"
    assert language_of("text/plain", "x") is None
