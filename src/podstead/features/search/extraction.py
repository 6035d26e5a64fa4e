"""Draws the text out of documents, in ``python -I -m podstead.features.search.extraction``.

Texts, Markdown, source code, JSON and linked data (its literals), HTML and XML (without tags and
scripts), PDF, the office formats of Microsoft and of OpenDocument, and mail with its attachments.
See :mod:`podstead.app.adapters.guarded_processes`. Short texts and short linked data, which only
parsers of our own and the RDF library read, need no process.

Everything is bounded: the text, what archives expand to, the pages of a PDF file and the depth of
messages in messages. XML with declarations of entities is refused. What is encrypted has no text.
"""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from html.parser import HTMLParser
from itertools import islice
from typing import TYPE_CHECKING, Final, cast
from xml.parsers import expat

import msgspec

from podstead.app.adapters.guarded_child import carry_out_task
from podstead.core.errors import PodsteadError
from podstead.core.media_types import JSON, RDF_TYPES, parse_media_type
from podstead.features.search.analysis import index_text, terms
from podstead.web.files.text import decode_text
from podstead.web.pages.kinds import kind_of

if TYPE_CHECKING:  # what reads archives, messages and PDF files is loaded with the first of them
    from email.message import Message

    import pypdf

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
"""A larger document is found by its name only."""
MAX_TEXT_CHARACTERS: Final = 400_000
"""How much of a text is indexed: some two hundred pages."""
MAX_SHOWN_CHARACTERS: Final = 100_000
"""How much of it is stored, for excerpts."""
MAX_EXPANDED_BYTES: Final = 64 * 1024 * 1024
"""What is read of all files of an archive together."""
MAX_PDF_PAGES: Final = 1_000
PDF_PROCESSOR_S: Final = 10
"""After how much processor time no further page of a PDF file is begun."""
MAX_DEPTH: Final = 3
"""How deep documents are within documents, such as files attached to messages."""
MAX_PARTS: Final = 100
_MAX_XML_DEPTH: Final = 10_000
_NICENESS: Final = 10

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_PDF: Final = "application/pdf"
_MESSAGE: Final = "message/rfc822"
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT: Final = "application/vnd.oasis.opendocument."
_NAMELESS: Final = frozenset({"application/octet-stream", "application/zip", "text/plain"})
_ENDINGS: Final = {
    "docx": _OFFICE + "wordprocessingml.document",
    "eml": _MESSAGE,
    "htm": "text/html",
    "html": "text/html",
    "json": JSON,
    "odp": _OPEN_DOCUMENT + "presentation",
    "ods": _OPEN_DOCUMENT + "spreadsheet",
    "odt": _OPEN_DOCUMENT + "text",
    "pdf": _PDF,
    "pptx": _OFFICE + "presentationml.presentation",
    "xlsx": _OFFICE + "spreadsheetml.sheet",
    "xml": "application/xml",
}
_UNREADABLE: Final = frozenset({"text/rtf"})
_ENCRYPTED: Final = re.compile(r"\s*-----BEGIN (?:PGP MESSAGE|AGE ENCRYPTED FILE|PKCS7)-----")


_UNSTORABLE: Final = re.compile("[\0-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Characters that are no text: PostgreSQL stores no NUL, and UTF-8 has no half characters."""


class Extracted(msgspec.Struct, frozen=True):
    """What the index stores of a document: its terms, as :func:`~.analysis.index_text` writes them,
    the beginning of its text, and its languages, as tags with commas between them."""

    terms: str
    text: str
    language: str | None = None


class Text(msgspec.Struct, frozen=True):
    """The text of a document and its languages, if they are known."""

    text: str
    language: str | None = None


class NoText(Exception):
    """The document is broken, encrypted or of a kind that has no text."""


def media_type_of(content_type: str, name: str) -> str:
    """The media type without parameters; by the ending of the name if it says nothing."""
    essence = parse_media_type(content_type).essence
    if essence in _NAMELESS:
        return _ENDINGS.get(name.rpartition(".")[2].lower(), essence)
    return essence


def has_text(media_type: str, name: str) -> bool:
    """Whether text can be drawn out of a document of this type, by :func:`media_type_of`."""
    if media_type in _UNREADABLE:
        return False
    return (
        media_type in _READERS or media_type.endswith("+xml") or kind_of(media_type, name).is_text
    )


def needs_no_process(media_type: str) -> bool:
    """Whether a short document of this type, which has text, is read by nothing that takes more
    than a time in proportion to its length."""
    return media_type in RDF_TYPES or not (
        media_type in _READERS or media_type.endswith(("xml", "json"))
    )


def extract(content_type: str, name: str, content: bytes) -> Extracted:
    """Draw the text out of a document, and analyse it. Raises NoText."""
    found = read(content_type, name, content)
    text = _UNSTORABLE.sub(" ", found.text[:MAX_TEXT_CHARACTERS]).strip()
    return Extracted(
        index_text(terms(text, found.language)), text[:MAX_SHOWN_CHARACTERS], found.language
    )


def read(content_type: str, name: str, content: bytes, *, depth: int = 0) -> Text:
    """The text of a document. Raises NoText."""
    media_type = media_type_of(content_type, name)
    if not has_text(media_type, name) or depth > MAX_DEPTH:
        raise NoText
    charset = parse_media_type(content_type).parameter("charset")
    try:
        if media_type == _MESSAGE:
            return _read_message(content, depth)
        if media_type in _READERS:
            return _READERS[media_type](content, charset)
        if media_type.endswith("+xml"):
            return _read_xml(content, charset)
        if media_type.endswith("+json"):
            return _read_json(content, charset)
        return _read_plain(content, charset)
    except (MemoryError, NoText):
        raise
    except Exception as error:  # parsers raise whatever content makes them raise
        raise NoText from error


# --- texts -------------------------------------------------------------------------------------


def _decoded(content: bytes, charset: str | None) -> str:
    decoded = decode_text(content, charset, max_bytes=MAX_BODY_BYTES)
    if decoded is None or _ENCRYPTED.match(decoded.text):
        raise NoText
    return decoded.text


def _read_plain(content: bytes, charset: str | None) -> Text:
    return Text(_decoded(content, charset))


def _read_json(content: bytes, charset: str | None) -> Text:
    """The names and strings of a JSON document; the text as it is if it is broken."""
    text = _decoded(content, charset)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Text(text)
    lines: list[str] = []
    left = [value]
    while left:
        match left.pop():
            case dict() as members:
                for name, member in reversed(members.items()):
                    left += [member, name]
            case list() as items:
                left += reversed(items)
            case bool() | None:
                pass
            case item:
                lines.append(str(item))
    return Text("\n".join(lines))


def _rdf_reader(media_type: str) -> Callable[[bytes, str | None], Text]:
    return lambda content, charset: _read_rdf(content, charset, media_type)


def _read_rdf(content: bytes, charset: str | None, media_type: str) -> Text:
    """The literals of a document; its text if it cannot be parsed."""
    from podstead.app.adapters.bundled_contexts import bundled_contexts
    from podstead.rdf.codecs import parse
    from podstead.rdf.graph import Literal

    base_iri = "https://document.invalid/"
    try:
        dataset = parse(content, media_type, base_iri=base_iri, contexts=bundled_contexts()).dataset
    except PodsteadError:
        return _read_plain(content, charset)
    texts: dict[str, None] = {}
    languages: Counter[str] = Counter()
    for graph in (dataset.default, *dataset.named.values()):
        for _, _, value in graph:
            if isinstance(value, Literal):
                texts[value.value] = None
                if value.language:
                    languages[value.language.lower()] += 1
    tags = [tag for tag, _ in languages.most_common()]
    return Text("\n".join(texts), ", ".join(tags) or None)


class _HtmlReader(HTMLParser):
    """Collects what a browser shows of a page, and its title."""

    _HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe"})
    _INLINE = frozenset(
        {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "ins"}
        | {"kbd", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "u", "var"}
        | {"wbr"}
    )

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language: str | None = None
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "html":
            self.language = self.language or named.get("lang") or named.get("xml:lang")
        if tag in self._HIDDEN:
            self._hidden.append(tag)
        elif not self._hidden:
            self.texts.append("" if tag in self._INLINE else "\n")
            if alternative := named.get("alt"):
                self.texts.append(f" {alternative} ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        elif not self._hidden and tag not in self._INLINE:
            self.texts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def _read_html(content: bytes, charset: str | None) -> Text:
    if charset is None and (
        named := re.search(rb"<meta[^>]{0,200}charset=.?([\w-]+)", content[:2048])
    ):
        charset = named[1].decode("ascii", "replace")
    reader = _HtmlReader()
    reader.feed(_decoded(content, charset))
    reader.close()
    return Text(_tidy("".join(reader.texts)), reader.language)


_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" ?\n[ \n]*")


def _tidy(text: str) -> str:
    """A text with single spaces, and without empty lines."""
    return _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()


# --- XML ---------------------------------------------------------------------------------------


class _Xml:
    """Reads the character data of XML documents without entities of their own."""

    def __init__(
        self,
        shown: Callable[[str], bool] = lambda _: True,
        lines: frozenset[str] | None = None,
    ) -> None:
        """``shown`` tells by the local name of an element whether text within it is read, and
        ``lines`` are the elements that end a line; all, if it is ``None``."""
        self.texts: list[str] = []
        self.attributes: dict[str, str] = {}
        self._shown = shown
        self._lines = lines
        self._depth = 0
        self._shown_depth = 0
        self._hidden_depth = 0
        self._characters = 0
        self._is_number = False

    def read(self, chunks: Iterable[bytes], encoding: str | None = None) -> None:
        """Read one document, up to a bounded length of text. Raises NoText and ExpatError."""
        parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.EntityDeclHandler = _refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        self._depth = self._shown_depth = self._hidden_depth = 0
        for chunk in chunks:
            parser.Parse(chunk, False)
            if self._characters > MAX_TEXT_CHARACTERS:
                return
        parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_XML_DEPTH:
            raise NoText
        local = name.rpartition(":")[2]
        if local == "c":  # the cell of a table, which may have the number of a text
            self._is_number = attributes.get("t") in {"b", "e", "s"}
        if not self._hidden_depth and local in {"script", "style"}:
            self._hidden_depth = self._depth
        if not self._shown_depth and self._shown(local) and not (local == "v" and self._is_number):
            self._shown_depth = self._depth
        if local in {"tab", "br", "s", "cr", "line-break"}:
            self.texts.append(" ")
        for key, value in attributes.items():
            self.attributes.setdefault(f"{local} {key.rpartition(':')[2]}", value)

    def _end(self, name: str) -> None:
        if self._depth == self._shown_depth:
            self._shown_depth = 0
        if self._depth == self._hidden_depth:
            self._hidden_depth = 0
        self._depth -= 1
        if self._lines is None or name.rpartition(":")[2] in self._lines:
            self.texts.append("\n")

    def _data(self, data: str) -> None:
        if self._shown_depth and not self._hidden_depth:
            self._characters += len(data)
            self.texts.append(data)

    @property
    def text(self) -> str:
        return _tidy("".join(self.texts))


def _refuse(*_: object) -> None:
    raise NoText


def _read_xml(content: bytes, charset: str | None) -> Text:
    reader = _Xml()
    reader.read([content], charset)
    languages = (value for key, value in reader.attributes.items() if key.endswith(" lang"))
    return Text(reader.text, next(languages, None))


# --- office documents --------------------------------------------------------------------------


class _Archive:
    """The files of an archive, of which a bounded number of bytes can be read."""

    def __init__(self, content: bytes) -> None:
        import zipfile

        self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._left_bytes = MAX_EXPANDED_BYTES

    def names(self, pattern: str) -> list[str]:
        """The names that match, those with lower numbers first."""
        found = (re.fullmatch(pattern, name) for name in self._zip.namelist())
        numbered = [(int(match[1] or 0), match[0]) for match in found if match]
        return [name for _, name in sorted(set(numbered))]

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file. Raises NoText if all that was read of the archive is too much."""
        with self._zip.open(name) as file:
            while chunk := file.read(64 * 1024):
                self._left_bytes -= len(chunk)
                if self._left_bytes < 0:
                    raise NoText
                yield chunk


def _office_reader(*patterns: str) -> Callable[[bytes, str | None], Text]:
    return lambda content, _charset: _read_office(content, patterns)


def _read_office(content: bytes, patterns: Iterable[str]) -> Text:
    """A document of Office Open XML (ECMA-376): the ``t`` elements of the files that matter."""
    archive = _Archive(content)
    found = _described(archive, r"docProps/core()\.xml")
    languages = [_attributes(archive, r"word/styles()\.xml").get("lang val")]
    for pattern in patterns:
        for name in archive.names(pattern):
            reader = _Xml({"t", "v"}.__contains__, frozenset({"p", "si", "c"}))
            reader.read(archive.chunks(name))
            found.append(reader.text)
            languages.append(reader.attributes.get("rPr lang"))
    return Text(_joined(found), next(filter(None, languages), None))


def _read_open_document(content: bytes, _charset: str | None) -> Text:
    """A document of OpenDocument (ISO/IEC 26300): its body."""
    archive = _Archive(content)
    if any("encryption-data" in key for key in _attributes(archive, r"META-INF/manifest()\.xml")):
        raise NoText
    found = _described(archive, r"meta()\.xml")
    body = _Xml("body".__eq__, frozenset({"p", "h"}))
    for name in archive.names(r"content()\.xml"):
        body.read(archive.chunks(name))
    styles = _attributes(archive, r"styles()\.xml")
    language = styles.get("text-properties language")
    return Text(_joined([*found, body.text]), None if language in {"none", "zxx"} else language)


def _attributes(archive: _Archive, pattern: str) -> Mapping[str, str]:
    reader = _Xml(lambda _: False)
    for name in archive.names(pattern):
        reader.read(archive.chunks(name))
    return reader.attributes


def _described(archive: _Archive, pattern: str) -> list[str]:
    """Title, subject, keywords and description."""
    reader = _Xml({"title", "subject", "keywords", "keyword", "description"}.__contains__)
    for name in archive.names(pattern):
        reader.read(archive.chunks(name))
    return [reader.text]


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)


# --- PDF ---------------------------------------------------------------------------------------


def _read_pdf(content: bytes, _charset: str | None) -> Text:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        raise NoText
    found = [] if reader.metadata is None else [str(reader.metadata.title or "")]
    characters = 0
    end_s = time.process_time() + PDF_PROCESSOR_S
    for number in range(min(len(reader.pages), MAX_PDF_PAGES)):
        found.append(_page_text(reader, number))
        characters += len(found[-1])
        if characters > MAX_TEXT_CHARACTERS or time.process_time() > end_s:
            break
    language = str(reader.root_object.get("/Lang") or "")
    return Text(_joined(map(_tidy, found)), language or None)


def _page_text(reader: pypdf.PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the other pages may have text
        return ""


# --- mail --------------------------------------------------------------------------------------


def _read_message(content: bytes, depth: int) -> Text:
    from email import message_from_bytes, policy

    message = message_from_bytes(content, policy=policy.default)
    found = [_header(message, name) for name in ("Subject", "From", "To", "Cc")]
    for part in islice(_leaves(message), MAX_PARTS):
        name = part.get_filename() or ""
        if name:
            found.append(name)
        if part.get_content_type() == _MESSAGE:
            inner = cast("list[Message]", part.get_payload())[0].as_bytes()
        else:
            decoded = part.get_payload(decode=True)
            inner = decoded if isinstance(decoded, bytes) else b""
        with suppress(NoText, PodsteadError):
            found.append(
                read(str(part["Content-Type"] or "text/plain"), name, inner, depth=depth + 1).text
            )
        if sum(map(len, found)) > MAX_TEXT_CHARACTERS:
            break
    return Text(_joined(found), _header(message, "Content-Language") or None)


def _header(message: Message, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except Exception:  # noqa: BLE001 - some malformed headers make the library raise anything
        return ""


def _leaves(part: Message) -> Iterator[Message]:
    """What has no parts, and of alternatives the first, which is the plainest (RFC 2046)."""
    if not part.is_multipart() or part.get_content_type() == _MESSAGE:
        yield part
        return
    parts = cast("list[Message]", part.get_payload())
    if part.get_content_type() == "multipart/alternative":
        parts = parts[:1]
    for each in parts:
        yield from _leaves(each)


_READERS: Final[Mapping[str, Callable[[bytes, str | None], Text]]] = {
    **{media_type: _rdf_reader(media_type) for media_type in RDF_TYPES},
    **dict.fromkeys(_HTML, _read_html),
    JSON: _read_json,
    "application/xml": _read_xml,
    "text/xml": _read_xml,
    _PDF: _read_pdf,
    _MESSAGE: lambda content, _charset: _read_message(content, 0),
    **dict.fromkeys(
        (_OPEN_DOCUMENT + kind for kind in ("text", "spreadsheet", "presentation")),
        _read_open_document,
    ),
    _OFFICE + "wordprocessingml.document": _office_reader(
        r"word/document(\d*)\.xml",
        r"word/(?:foot|end)notes()\.xml",
        r"word/comments()\.xml",
        r"word/header(\d+)\.xml",
        r"word/footer(\d+)\.xml",
    ),
    _OFFICE + "spreadsheetml.sheet": _office_reader(
        r"xl/sharedStrings()\.xml", r"xl/worksheets/sheet(\d+)\.xml"
    ),
    _OFFICE + "presentationml.presentation": _office_reader(
        r"ppt/slides/slide(\d+)\.xml", r"ppt/notesSlides/notesSlide(\d+)\.xml"
    ),
}


def _work(_task: str, arguments: Mapping[str, str], content: bytes) -> bytes:
    os.nice(_NICENESS)
    try:
        return msgspec.json.encode(extract(arguments["content_type"], arguments["name"], content))
    except NoText:
        return b""


if __name__ == "__main__":
    carry_out_task(_work)
