"""Renders Markdown as safe HTML.

Only this module uses the libraries that render and sanitise it. It runs in a process of its own
(``rendering.py``), because rendering can take long on hostile input. Markdown is read without its
raw HTML, and the result is also sanitised against an allowlist, so that a flaw in one of them alone
puts no script on a page.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from podstead.core.identifiers import ResourcePath
from podstead.features.previews.source import highlight
from podstead.web.pages.links import Links

_MAX_NESTING: Final = 20

_TAGS: Final = frozenset(
    {
        *("h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "pre", "code", "span"),
        *("em", "strong", "s", "a", "img", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
)
_ATTRIBUTES: Final[Mapping[str, set[str]]] = MappingProxyType(
    {
        "a": {"href", "title"},
        "img": {"src", "alt", "title", "loading"},
        "ol": {"start"},
        "span": {"class"},
        "code": {"class"},
        "pre": {"tabindex"},
        "td": {"class"},
        "th": {"class", "scope"},
    }
)
_ALIGNMENTS: Final = MappingProxyType(
    {"text-align:left": "start", "text-align:center": "center", "text-align:right": "end"}
)


def markdown(text: str, *, base_url: str, document: str) -> str:
    """Markdown (CommonMark with tables and strikethrough) as safe HTML.

    Links and pictures are resolved against the document. Pictures of other servers become links,
    since loading them would reveal to those servers who reads the document. Headings are moved one
    level down, because the page has its own first heading.
    """
    links = Links(base_url, ResourcePath(document))
    parser = MarkdownIt(
        "commonmark",
        {"html": False, "maxNesting": _MAX_NESTING, "highlight": _fenced},
    ).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    for token in tokens:
        _lower_heading(token)
        _class_instead_of_style(token)
        if token.children:
            token.children = _with_resolved_links(token.children, links)
    html = parser.renderer.render(tokens, parser.options, {})
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow ugc",
        strip_comments=True,
        set_tag_attribute_values={"pre": {"tabindex": "0"}, "img": {"loading": "lazy"}},
    )


def _fenced(content: str, language: str, _: str) -> str:
    return highlight(content, language.lower())


def _lower_heading(token: Token) -> None:
    if token.type in {"heading_open", "heading_close"}:
        token.tag = f"h{min(6, int(token.tag[1]) + 1)}"


def _class_instead_of_style(token: Token) -> None:
    """Alignment as a class: inline styles are forbidden by the pages' policy."""
    if token.type in {"td_open", "th_open"}:
        style = token.attrs.pop("style", None)
        if style is not None:
            token.attrs["class"] = f"align-{_ALIGNMENTS.get(str(style), 'start')}"


def _with_resolved_links(tokens: Sequence[Token], links: Links) -> list[Token]:
    resolved: list[Token] = []
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            kept = _resolve_link(token, links)
            open_links.append(kept)
            if not kept:
                continue
        elif token.type == "link_close":
            if open_links and not open_links.pop():
                continue
        elif token.type == "image":
            resolved.extend(_picture(token, links, in_link=any(open_links)))
            continue
        resolved.append(token)
    return resolved


def _resolve_link(token: Token, links: Links) -> bool:
    reference = str(token.attrs.get("href", ""))
    iri = links.resolve(reference)
    link = None if iri is None else links.of(iri)
    if link is None:
        return False
    token.attrs["href"] = link.href
    return True


def _picture(token: Token, links: Links, *, in_link: bool) -> list[Token]:
    iri = links.resolve(str(token.attrs.get("src", "")))
    source = None if iri is None else links.picture(iri)
    if source is not None:
        token.attrs["src"] = source
        return [token]
    text = Token("text", "", 0, content=token.content or (iri or ""))
    link = None if iri is None or in_link else links.of(iri)
    if link is None:
        return [text]
    opening = Token("link_open", "a", 1, attrs={"href": link.href})
    return [opening, text, Token("link_close", "a", -1)]
