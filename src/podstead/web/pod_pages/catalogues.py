"""Compiles the catalogues of translations for :mod:`gettext`: PO files, in the part of the format
that ``make texts`` writes, to the binary MO format.

https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import loads
from struct import pack
from typing import Final

_FIELD: Final = re.compile(
    r'^(msgid|msgid_plural|msgstr|msgstr\[\d\])((?:\s*"(?:[^"\\\n]|\\.)*"[ \t]*$)+)', re.MULTILINE
)
_QUOTED: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_MO_MAGIC: Final = 0x950412DE
_MO_HEADER_BYTES: Final = 28


def compiled_catalogues(content: str) -> bytes:
    """PO files, one after the other, as one MO file."""
    messages = dict(_messages(content))
    texts = [text.encode() + b"\0" for text in (*messages.keys(), *messages.values())]
    second = _MO_HEADER_BYTES + 8 * len(messages)
    position = second + 8 * len(messages)
    numbers = [_MO_MAGIC, 0, len(messages), _MO_HEADER_BYTES, second, 0, 0]
    for text in texts:
        numbers += len(text) - 1, position
        position += len(text)
    return pack(f"<{len(numbers)}I", *numbers) + b"".join(texts)


def _messages(content: str) -> Iterator[tuple[str, str]]:
    """The translated messages as MO files have them: a NUL separates the plural forms. The
    translation of the empty text is the header."""
    text: str | None = None
    forms: list[str] = []
    for name, quoted in [*_FIELD.findall(content), ("msgid", "")]:
        if name == "msgid_plural":
            text = f"{text}\0{_unquoted(quoted)}"
        elif name != "msgid":
            forms.append(_unquoted(quoted))
        else:
            if text is not None and all(forms):
                yield text, "\0".join(forms)
            text, forms = _unquoted(quoted), []


def _unquoted(quoted: str) -> str:
    text = "".join(_QUOTED.findall(quoted))
    return loads(f'"{text}"') if "\\" in text else text
