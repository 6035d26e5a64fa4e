"""Markdown that was made to do harm, and Markdown that was not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.previews.markdown import markdown
from podstead.previews.source import highlight

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
