"""Decodes bytes as text for display and editing, within a limit."""

import codecs
from dataclasses import dataclass
from typing import Final

MAX_TEXT_BYTES: Final = 512 * 1024
"""How much of a text is shown: more than anyone reads in a browser."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENCODINGS: Final = frozenset(
    {
        *("ascii", "big5", "cp1250", "cp1251", "cp1252", "euc_jp", "euc_kr", "gb18030", "gb2312"),
        *("gbk", "iso8859-1", "iso8859-15", "iso8859-2", "koi8-r", "shift_jis"),
        *("utf-16", "utf-16-be", "utf-16-le", "utf-8"),
    }
)
"""What a ``charset`` may name. Python knows codecs that are no encodings of text, and slow ones."""

_LAST_RESORT: Final = "cp1252"
"""The encoding that browsers assume where none is stated (WHATWG Encoding)."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Text as it is shown. ``truncated`` means that the document is longer.

    ``exact`` means that encoding the text again gives the same bytes, so that it may be edited.
    """

    text: str
    encoding: str
    truncated: bool = False
    exact: bool = True


def decode_text(
    content: bytes, charset: str | None = None, *, max_bytes: int = MAX_TEXT_BYTES
) -> DecodedText | None:
    """Decode text for display; ``None`` if it is not text.

    A byte order mark takes precedence, then ``charset``, then UTF-8 if it fits, then the encoding
    that browsers assume. Bytes that are invalid in the encoding become U+FFFD.
    """
    truncated = len(content) > max_bytes
    content = content[:max_bytes]
    mark, encoding = _encoding(content, charset, truncated=truncated)
    if mark == b"" and not encoding.startswith("utf-16") and b"\0" in content:
        return None
    body = content[len(mark) :]
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    # A character that the limit cut in two is left out instead of being shown as damaged.
    text = decoder.decode(body, final=not truncated)
    exact = not truncated and mark == b"" and encoding == "utf-8" and "\ufffd" not in text
    return DecodedText(text, encoding, truncated, exact)


def _encoding(content: bytes, charset: str | None, *, truncated: bool) -> tuple[bytes, str]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding
    stated = _known(charset)
    if stated is not None:
        return b"", stated
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(content, final=not truncated)
    except UnicodeDecodeError:
        return b"", _LAST_RESORT
    return b"", "utf-8"


def _known(charset: str | None) -> str | None:
    if charset is None or len(charset) > 40:
        return None
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name == "utf-16":  # without a byte order mark (WHATWG Encoding)
        return "utf-16-le"
    return name if name in _ENCODINGS else None
