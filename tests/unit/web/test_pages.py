"""The pages for people: self-contained, usable everywhere, and escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from podstead.core.errors import BadRequest, NotFound
from podstead.web.errors import STATUSES
from podstead.web.pages.rendering import error_page
from podstead.web.pages.templates import PAGE_POLICY, asset_url, load_assets

STYLE = load_assets()["base.css"].decode()
PAGES = {
    f"error {status}": error_page(status=status, reason=reason, error=NotFound()).decode()
    for status, reason in STATUSES.values()
}
VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})
LOADING = frozenset(
    {"script", "img", "iframe", "object", "embed", "video", "audio", "source", "base",
     "form", "input", "button"}
)  # fmt: skip


def page_about(message: str, status: int = 400) -> str:
    return error_page(status=status, reason="R", error=BadRequest(message)).decode()


class Outline(HTMLParser):
    """What a page is made of; knows when elements are not closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_has_what_browsers_and_readers_need(page: str) -> None:
    assert page.startswith("<!doctype html>")
    outline = Outline(page)
    assert outline.open == []
    assert outline.attributes("html") == [{"lang": "en"}]
    assert re.search(r"<title>\s*\S[^<]*</title>", page)
    meta = outline.attributes("meta")
    assert {"charset": "utf-8"} in meta
    named = {attributes["name"]: attributes["content"] for attributes in meta[1:]}
    assert named["viewport"] == "width=device-width, initial-scale=1"
    assert named["color-scheme"] == "light dark"
    assert len(outline.attributes("h1")) == len(outline.attributes("main")) == 1
    assert "prefers-color-scheme: dark" in STYLE


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_loads_its_style_alone_and_runs_nothing(page: str) -> None:
    """A-192: it fits the policy that it is sent with."""
    outline = Outline(page)
    assert not {tag for tag, _ in outline.elements} & LOADING
    for link in outline.attributes("link"):
        assert link["rel"] == "stylesheet"
        assert link["href"] in {asset_url("base.css"), asset_url("pods.css")}
    for tag, attributes in outline.elements:
        assert not {"src", "style", "srcset"} & set(attributes)
        assert tag in {"a", "link"} or "href" not in attributes
        assert tag != "a" or (attributes["href"] or "")[:1] in {"/", "#"}
        assert not [name for name in attributes if name.startswith("on")]
    assert "<style" not in page
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    policy = PAGE_POLICY[1].decode()
    assert policy.split("; ")[0] == "default-src 'none'"
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;<b>", "</p>"]
)
def test_values_in_a_page_are_escaped(hostile: str) -> None:
    expected = len(Outline(page_about("x")).elements)
    for page in (page_about(hostile), page_about(f"{hostile}.")):
        outline = Outline(page)
        assert len(outline.elements) == expected
        assert hostile in outline.text


def test_a_refusal_does_not_say_that_something_is_there() -> None:
    """W-60, W-64: the words are the same for what exists and for what does not."""
    for status in (401, 403):
        text = Outline(page_about("Denied", status)).text
        assert "is here" not in text
        assert "is not public" not in text


@pytest.mark.parametrize(("message", "shown"), [("No end", "No end."), ("An end.", "An end.")])
def test_a_message_ends_as_a_sentence(message: str, shown: str) -> None:
    text = Outline(page_about(message)).text
    assert shown in text
    assert f"{shown}." not in text


def test_a_long_word_does_not_make_a_page_wider_than_its_window() -> None:
    """Messages name URLs; on a telephone they ran out of the page."""
    (paragraph,) = re.findall(r"^p \{([^}]*)\}", STYLE, re.MULTILINE)
    assert "overflow-wrap: anywhere" in paragraph
    (block,) = re.findall(r"^pre \{([^}]*)\}", STYLE, re.MULTILINE)
    assert "overflow-x: auto" in block
