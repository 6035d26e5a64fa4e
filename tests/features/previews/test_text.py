"""Markdown that was made to do harm, and Markdown that was not."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.features.previews.markdown import markdown
from podstead.features.previews.source import highlight
from podstead.features.previews.tables import MAX_COLUMNS, MAX_ROWS, read_table
from podstead.web.files.text import decode_text
from podstead.web.pages.kinds import Kind, kind_of, language_of

BASE = "https://pod.example"
DOCUMENT = "/alice/notes/readme.md"


def rendered(text: str) -> str:
    return markdown(text, base_url=BASE, document=DOCUMENT)


class Elements(HTMLParser):
    """All elements and their attributes, as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def check_harmless(html: str) -> None:
    for tag, attributes in Elements(html).seen:
        assert tag not in {"script", "style", "iframe", "object", "form", "input", "svg", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in {"href", "src"}:
                assert value is not None
                assert re.match(r"(?:https?://|mailto:|tel:|/\.pages/|#)", value), value


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#x09;script:alert(1))",
        "[x](vbscript:msgbox)",
        "![x](data:image/svg+xml;base64,PHN2Zy8+)",
        "[x](data:text/html,<script>alert(1)</script>)",
        '[x](https://x.example/"onmouseover="alert(1))',
        '![x](p.png "\\" onerror=alert(1) \\"")',
        "<https://x.example/?<script>>",
        "<img src=x onerror=alert(1)>",
        "```<script>alert(1)</script>\nx\n```",
        '```" onclick="alert(1)\nx\n```',
        "[x]: javascript:alert(1)\n\n[x]",
        "[a][b]\n\n[b]: <javascript:alert(1)>",
        "[x](//evil.example/a)",
        "| a |\n|---|\n| <svg/onload=alert(1)> |",
    ],
)
def test_no_markdown_puts_a_script_on_the_page(text: str) -> None:
    check_harmless(rendered(text))


@given(st.text(alphabet=st.sampled_from("[]()<>!`*_~|\\\n \"'=:&#;javscript/on.#-"), max_size=200))
def test_no_text_becomes_anything_but_the_allowed_elements(text: str) -> None:
    check_harmless(rendered(text))


def test_relative_links_lead_to_the_pages_of_the_pod() -> None:
    html = rendered("[a](other.md) [b](../photos/) [c](/bob/x.txt#part) [d](#here)")
    links = [attributes["href"] for tag, attributes in Elements(html).seen if tag == "a"]
    assert links == [
        "/.pages/files/alice/notes/other.md",
        "/.pages/files/alice/photos/",
        "/.pages/files/bob/x.txt#part",
        "/.pages/files/alice/notes/readme.md#here",
    ]


def test_links_cannot_reach_the_actions_of_the_pages() -> None:
    assert "/.pages/delete" not in rendered("[x](/.pages/delete/alice/) ![x](/.pages/sign-out)")


def test_links_away_do_not_tell_where_they_were_clicked() -> None:
    elements = Elements(rendered("<https://elsewhere.example/x>")).seen
    links = [attributes for tag, attributes in elements if tag == "a"]
    assert links[0]["href"] == "https://elsewhere.example/x"
    assert {"noopener", "noreferrer"} <= set((links[0]["rel"] or "").split())


def test_pictures_of_the_pod_are_shown_and_those_of_others_become_links() -> None:
    elements = Elements(rendered("![a](p.png) ![b](https://elsewhere.example/p.png)")).seen
    assert [a["src"] for tag, a in elements if tag == "img"] == ["/.pages/raw/alice/notes/p.png"]
    assert [a["href"] for tag, a in elements if tag == "a"] == ["https://elsewhere.example/p.png"]


def test_headings_fit_below_the_heading_of_the_page() -> None:
    assert "<h2>One</h2>" in rendered("# One")
    assert "<h6>Six</h6>" in rendered("###### Six")


def test_tables_align_by_class_because_inline_styles_are_forbidden() -> None:
    html = rendered("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert '<td class="align-center">1</td>' in html
    assert '<td class="align-end">2</td>' in html
    assert "style" not in html


def test_code_is_highlighted_with_classes() -> None:
    html = rendered("```python\nimport os\n```")
    assert 'class="hl-' in html
    assert "style=" not in html


def test_nested_input_ends() -> None:
    check_harmless(rendered("> " * 5_000 + "x"))
    check_harmless(rendered("[" * 5_000))
    check_harmless(rendered("*a_" * 3_000))


def test_source_is_escaped_in_every_line() -> None:
    html = highlight('x = "<script>alert(1)</script>"\n# & <b>\n', "python")
    assert "<script" not in html
    assert "<b>" not in html
    for line in html.splitlines():
        assert line.count("<span") == line.count("</span")


def test_unknown_languages_and_long_texts_are_not_highlighted() -> None:
    assert highlight("<b>", "no-such-lexer") == "&lt;b&gt;"
    assert highlight("<" * 300_000, "html") == "&lt;" * 300_000


@pytest.mark.parametrize("text", ["", "x", "\n\nx\n", "a\r\nb\rc\n", "  x  \n\n\n"])
def test_highlighting_keeps_every_line(text: str) -> None:
    plain = re.sub(r"<[^>]+>", "", highlight(text, "turtle"))
    assert plain == text.replace("\r\n", "\n").replace("\r", "\n")


# --- text_and_tables ---------------------------------------------------------------------------


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
        ("application/vnd.ms-excel", "a.csv", Kind.SPREADSHEET),
    ],
)
def test_the_media_type_decides_before_the_name(essence: str, name: str, kind: Kind) -> None:
    assert kind_of(essence, name) is kind


def test_languages() -> None:
    assert language_of("text/plain", "x.rs") == "rust"
    assert language_of("text/turtle", "x.py") == "turtle"
    assert language_of("application/geo+json", "x") == "json"
    assert language_of("text/plain", "x") is None
