"""Reads the catalogues of translations: PO files, in the part of gettext's format that
``make texts`` writes.

https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from sys import intern
from typing import Final, NamedTuple

_FIELD: Final = re.compile(
    r'^(msgid|msgid_plural|msgstr|msgstr\[\d\])((?:\s*"(?:[^"\\\n]|\\.)*"[ \t]*$)+)', re.MULTILINE
)
_QUOTED: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


class Message(NamedTuple):
    """A text and its translations: one, or one for each plural form."""

    text: str
    translations: tuple[str, ...]
    is_plural: bool


def read_catalogue(content: str) -> Iterator[Message]:
    """The messages of a PO file. The translation of the empty text is the header."""
    text: str | None = None
    translations: list[str] = []
    is_plural = False
    for name, quoted in _FIELD.findall(content):
        if name == "msgid":
            if text is not None:
                yield Message(text, tuple(translations), is_plural)
            # The same texts are in the catalogues of all languages.
            text, translations, is_plural = intern(_unquoted(quoted)), [], False
        elif name == "msgid_plural":
            is_plural = True
        else:
            translations.append(_unquoted(quoted))
    if text is not None:
        yield Message(text, tuple(translations), is_plural)


def _unquoted(quoted: str) -> str:
    text = "".join(_QUOTED.findall(quoted))
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), text)
