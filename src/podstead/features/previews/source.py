"""Highlights source code as safe HTML. Only this module uses the library for that.

It runs in a process of its own (``rendering.py``): lexers are made of regular expressions, some of
which take exponential time on malicious input.
"""

from html import escape
from typing import Final

from pygments import lex
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from podstead.web.pages.kinds import LANGUAGES

MAX_SOURCE_CHARACTERS: Final = 256 * 1024
CLASS_PREFIX: Final = "hl-"


def highlight(text: str, language: str) -> str:
    """Source code as lines of HTML, with the token types as classes.

    Each line is balanced HTML by itself. Unknown languages are not highlighted.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if language not in LANGUAGES or len(text) > MAX_SOURCE_CHARACTERS:
        return escape(text)
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    formatter = HtmlFormatter(nowrap=True, classprefix=CLASS_PREFIX)
    lines: list[str] = []
    formatter.format(lex(text, lexer), _Collector(lines))
    html = "".join(lines)
    return html if text.endswith("\n") else html.removesuffix("\n")


class _Collector:
    """A file that the formatter writes to."""

    def __init__(self, parts: list[str]) -> None:
        self.write = parts.append
