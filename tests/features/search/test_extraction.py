"""What text comes out of documents, and that no document can do more than have none.

The files in ``samples`` were written by other programs: python-docx, python-pptx, openpyxl, odfpy,
ReportLab, and Chromium, which printed a page.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.features.search import analysis, extraction
from podstead.features.search.analysis import parse_question
from podstead.features.search.extraction import Extracted, NoText, Text, extract, has_text, read
from podstead.features.search.extractor import MAX_BYTES_WITHOUT_PROCESS, Extractor
from podstead.storage.records import Metadata, ResourceKind, Version
from tests.features.search.plain_search import matches
from tests.features.search.searched import Searched

SAMPLES = Path(__file__).parent / "samples"
SAMPLE_NAMES = sorted(file.name for file in SAMPLES.iterdir())
repeatable = settings(derandomize=True)
OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = OFFICE + "wordprocessingml.document"
XLSX = OFFICE + "spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
PDF = "application/pdf"


def text_of(content: bytes | str, content_type: str, name: str = "x") -> str:
    return read(
        content_type, name, content if isinstance(content, bytes) else content.encode()
    ).text


def zipped(**files: str | bytes) -> bytes:
    """A zip file; two underscores in a name stand for a slash, and it ends with ``.xml``."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return written.getvalue()


def docx(body: str | bytes) -> bytes:
    return zipped(word__document=body)


# --- what comes out ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "language", "lines"),
    [
        ("chromium.pdf", "de", ["Gedruckt", "Die Häuser von Zürich", "zweite Seite"]),
        ("reportlab.pdf", "en", ["A printed title", "The houses of Zürich", "page two"]),
        ("word.docx", "en-US", ["Quarterly report", "drafted by hand", "Überschrift",
            "The houses of Zürich", "cell one", "東京", "in the header"]),
        ("sheet.xlsx", None, ["Invoices", "Rechnung", "4711", "naïve", "3.5", "東京"]),
        ("slides.pptx", None, ["Talk", "generated using python-pptx",
            *(line for n in range(1, 12) for line in (f"slide{n}", "body text")),
            "remember the notes"]),
        ("text.odt", "de", ["Offener Titel", "Überschrift", "die Häuser am See"]),
        ("sheet.ods", None, ["eins", "zwei"]),
        ("slides.odp", None, ["erste Folie"]),
    ],
)  # fmt: skip
def test_files_that_other_programs_wrote(name: str, language: str | None, lines: list[str]) -> None:
    content = (SAMPLES / name).read_bytes()
    found = read("application/octet-stream", name, content)
    if name == "sheet.xlsx":  # texts stand in a file of their own, before the numbers
        assert sorted(found.text.splitlines()) == sorted(lines)
    else:
        assert found.text.splitlines() == lines
    assert found.language == language


@pytest.mark.parametrize(
    ("content", "content_type", "name", "expected"),
    [
        ("# Title\n*text*", "text/markdown", "a.md", Text("# Title\n*text*")),
        ("def f(): pass", "text/plain", "a.py", Text("def f(): pass")),
        ("a;b", "text/csv; charset=utf-8", "a.csv", Text("a;b")),
        ("Grüße".encode("iso8859-1"), "text/plain; charset=iso-8859-1", "a", Text("Grüße")),
        ("Grüße".encode("utf-16"), "text/plain", "a.txt", Text("Grüße")),
        ('{"b": ["ä", 1, true, null], "a": {}}', "application/json", "x", Text("b\nä\n1\na")),
        (r'{"a": "\u00e4"}', "application/geo+json", "x", Text("a\nä")),
        ("{broken", "application/json", "x", Text("{broken")),
        ('<#a> <#b> "x"@de, "y"@DE, "z"@en, 5 .', "text/turtle", "x", Text("x\ny\nz\n5", "de, en")),
        ('<#a> <#b> "x" ; broken', "text/turtle", "x", Text('<#a> <#b> "x" ; broken')),
        ('{"@id": "#a", "http://p.example/b": "ä"}', "application/ld+json", "x", Text("ä")),
        ('{"@context": "https://no.example/", "b": "ä"}', "application/ld+json", "x",
            Text('{"@context": "https://no.example/", "b": "ä"}')),
        ('<g xml:lang="de"><a>one</a><a>two<script>x</script></a></g>', "application/xml", "x",
            Text("one\ntwo", "de")),
        ("<svg><title>A &amp; B</title><!-- no --></svg>", "image/svg+xml", "x", Text("A & B")),
        ('<?xml version="1.0" encoding="iso-8859-1"?><a>ä</a>'.encode("latin-1"), "text/xml", "x",
            Text("ä")),
    ],
)  # fmt: skip
def test_texts(content: str | bytes, content_type: str, name: str, expected: Text) -> None:
    content = content if isinstance(content, bytes) else content.encode()
    assert read(content_type, name, content) == expected


def test_html_is_what_a_browser_shows() -> None:
    page = """<!DOCTYPE html><html lang="nl"><head><title>T &amp; U</title><style>no{}</style>
        <script>var no = "<p>no"</script></head><body><p>one<b>two</b> <i>three</i><p>four<br>five
        <img alt="six"><template>no</template><svg><text>no</text></svg><!-- no -->seven"""
    found = read("text/html", "x", page.encode())
    assert found == Text("T & U\nonetwo three\nfour\nfive\nsix seven", "nl")
    latin = "<meta charset='iso-8859-1'><p>ä".encode("latin-1")
    assert text_of(latin, "text/html") == "ä"


def test_a_message_has_the_text_of_its_parts_and_attachments() -> None:
    inner = EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("deep inside")
    message = EmailMessage()
    message["Subject"] = "Grüße aus Zürich"
    message["From"] = "Anna <anna@a.example>"
    message.set_content("Die Häuser")
    message.add_alternative("<p>Only in HTML</p>", subtype="html")
    sheet = (SAMPLES / "sheet.ods").read_bytes()
    message.add_attachment(sheet, maintype="application", subtype="zip", filename="my.ods")
    message.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename="b.x")
    message.add_attachment(inner)
    message["Content-Language"] = "de"
    found = read("message/rfc822", "x", bytes(message))
    assert found.language == "de"
    assert found.text.split("\n") == [
        "Grüße aus Zürich", "Anna <anna@a.example>", "Die Häuser", "", "my.ods", "eins", "zwei",
        "b.x", "inner", "deep inside", "",
    ]  # fmt: skip


def test_a_message_of_html_only_has_its_text() -> None:
    message = EmailMessage()
    message.set_content("<p>Only in HTML</p>", subtype="html")
    assert "Only in HTML" in text_of(bytes(message), "message/rfc822")


def test_the_index_stores_terms_and_the_beginning_of_the_text() -> None:
    made = extract("text/turtle", "x", '<#a> <#b> "die Häuser"@de .'.encode())
    assert made == Extracted("die hauser ·de·die ·de·haus", "die Häuser", "de")
    long = "word " * extraction.MAX_TEXT_CHARACTERS
    made = extract("text/plain", "x", long.encode())
    assert len(made.text) == extraction.MAX_SHOWN_CHARACTERS
    assert made.terms.count(" ") == extraction.MAX_TEXT_CHARACTERS // 5 - 1


def test_what_databases_cannot_store_is_replaced() -> None:
    made = extract("application/json", "x", rb'"a\u0000b\ud800c\td"')
    assert made.text == "a b c\td"
    assert made.terms == "a b c d"


@pytest.mark.parametrize(
    ("content_type", "name"),
    [
        ("image/png", "x.png"),
        ("application/zip", "x.zip"),
        ("application/octet-stream", "x"),
        ("video/mp4", "x.txt"),
        ("application/pgp-encrypted", "x"),
        ("text/rtf", "x.rtf"),
    ],
)
def test_other_documents_have_no_text(content_type: str, name: str) -> None:
    assert not has_text(extraction.media_type_of(content_type, name), name)
    with pytest.raises(NoText):
        read(content_type, name, b"text")


async def test_files_that_other_programs_wrote_are_found(searched: Searched) -> None:
    alice = searched.server.alice
    for name in SAMPLE_NAMES:
        content_type = extraction.media_type_of("application/octet-stream", name)
        answer = await alice.put(f"/alice/{name}", (SAMPLES / name).read_bytes(), content_type)
        assert answer.status == 201
    card = '<#a> <http://p.example/b> "Zwei Häuser in Zürich"@de .'
    assert (await alice.put("/alice/card", card, "text/turtle")).status == 201
    await searched.catch_up()
    expected = {"/alice/chromium.pdf", "/alice/card", "/alice/text.odt"}
    assert set(await searched.paths(alice, "haus")) == expected
    assert set(await searched.paths(alice, "hausern -zurich")) == {"/alice/text.odt"}
    assert await searched.paths(alice, '"a printed title" house') == ["/alice/reportlab.pdf"]
    assert set(await searched.paths(alice, "東")) == {"/alice/sheet.xlsx", "/alice/word.docx"}
    assert await searched.paths(searched.server.bob, "haus") == []


# --- what is made to do harm -------------------------------------------------------------------


def encrypted_pdf() -> bytes:
    writer = pypdf.PdfWriter(io.BytesIO((SAMPLES / "reportlab.pdf").read_bytes()))
    writer.encrypt("secret", algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def pdf(*objects: bytes, trailer: bytes = b"/Root 1 0 R") -> bytes:
    """A PDF file with these objects, from number 1."""
    written, offsets = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    count = len(objects) + 1
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, rows)
    end = b"trailer\n<</Size %d %s>>\nstartxref\n%d\n%%%%EOF" % (count, trailer, len(written))
    return written + table + end


CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGE = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<<>>>>"


def stream(content: bytes, more: bytes = b"") -> bytes:
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(content), more, content)


def pdf_bomb() -> bytes:
    packed = zlib.compress(bytes(200_000_000), 9)
    twice = zlib.compress(packed, 9)
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    filters = b"/Filter[/FlateDecode/FlateDecode]"
    return pdf(CATALOG, pages, PAGE, stream(twice, filters))


BILLION = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'>{}]>".format(
    "".join(f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(8))
)


def zip_with_encrypted_file() -> bytes:
    content = bytearray(docx("<w><t>x</t></w>"))
    for marker, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(marker) + place] |= 1
    return bytes(content)


POISONED = {
    "an encrypted PDF file": (PDF, encrypted_pdf),
    "a PDF file of one byte": (PDF, lambda: b"%"),
    "a PDF file whose pages hold themselves": (
        PDF,
        lambda: pdf(CATALOG, b"<</Type/Pages/Kids[2 0 R]/Count 1>>"),
    ),
    "a PDF file whose table of references refers to itself": (
        PDF,
        lambda: pdf(CATALOG, b"<</Type/Pages/Kids[]/Count 9>>", trailer=b"/Root 1 0 R/Prev 60"),
    ),
    "a PDF file whose page expands to 200 MB": (PDF, pdf_bomb),
    "XML that expands to a billion characters": (
        "application/xml",
        f"{BILLION}<a>&i;</a>".encode,
    ),
    "a document that expands to a billion characters": (
        DOCX,
        lambda: docx(f"{BILLION}<w><t>&i;</t></w>"),
    ),
    "XML that reads a file": (
        "application/xml",
        lambda: b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    ),
    "deep XML": ("application/xml", lambda: b"<a>" * 1_000_000),
    "a deep document": (ODT, lambda: zipped(content="<body>" + "<p>" * 1_000_000)),
    "a document that expands to 100 MB": (DOCX, lambda: docx(b"<w>" + bytes(100_000_000))),
    "a document of blanks": (DOCX, lambda: docx(b"<w>" + b" " * 100_000_000)),
    "an encrypted file of a document": (DOCX, zip_with_encrypted_file),
    "an encrypted document": (
        ODT,
        lambda: zipped(
            **{"META-INF__manifest": '<m><encryption-data checksum="x"/></m>'},
            content="<body><p>junk</p></body>",
        ),
    ),
    "half a document": (DOCX, lambda: docx("<w><t>x</t></w>" * 10)[:-30]),
    "an office document that is none": (XLSX, lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 100),
    "an encrypted text": ("text/plain", lambda: b"-----BEGIN PGP MESSAGE-----\n\nhQEMA"),
    "bytes": ("text/plain", lambda: b"\0\1\2"),
}


@pytest.mark.parametrize("name", POISONED)
async def test_no_document_can_do_more_than_have_no_text(name: str) -> None:
    content_type, made = POISONED[name]
    found = await drawn_out(made(), content_type)
    assert found is None or found.text == ""


def test_deep_documents_are_read_as_far_as_they_can_be() -> None:
    deep = "[" * 200_000
    assert text_of(deep, "application/json") == deep
    assert text_of("<b>" * 100_000 + "x", "text/html") == "x"
    assert text_of("<svg>" * 100_000 + "x", "text/html") == ""
    message = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(5_000)
    )
    with pytest.raises(NoText):
        read("message/rfc822", "x", message)


def test_messages_within_messages_are_read_to_a_depth() -> None:
    message = EmailMessage()
    message.set_content("level 0")
    for level in range(1, 10):
        outer = EmailMessage()
        outer.set_content(f"level {level}")
        outer.add_attachment(message)
        message = outer
    found = text_of(bytes(message), "message/rfc822")
    assert [level for level in range(10) if f"level {level}" in found] == [7, 8, 9]


def test_a_broken_page_hides_no_other() -> None:
    pages = b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2>>"
    font = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    good = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 6 0 R" + font + b">>"
    broken = stream(b"no zlib", b"/Filter/FlateDecode")
    content = pdf(CATALOG, pages, PAGE, broken, good, stream(b"BT /F 9 Tf (second) Tj ET"))
    assert text_of(content, PDF).strip() == "second"


def test_a_text_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "MAX_TEXT_CHARACTERS", 1_000)
    body = "<w>" + "<p><t>word</t></p>" * 100_000  # the end, which is broken, is never reached
    assert 1_000 < len(text_of(docx(body), DOCX)) < 100_000
    monkeypatch.setattr(extraction, "PDF_PROCESSOR_S", -1)
    assert text_of((SAMPLES / "reportlab.pdf").read_bytes(), PDF).endswith("Zürich")


@repeatable
@given(st.sampled_from(SAMPLE_NAMES), st.randoms(use_true_random=False), st.integers(1, 20))
def test_damaged_files_have_text_or_none(name: str, random: object, count: int) -> None:
    choose = random.randrange  # type: ignore[attr-defined]
    content = bytearray((SAMPLES / name).read_bytes())
    for _ in range(count):
        content[choose(len(content))] = choose(256)
    del content[choose(len(content) // 2, len(content)) :: choose(1, 9)]
    with suppress(NoText):
        extract("application/octet-stream", name, bytes(content))


@repeatable
@given(
    st.sampled_from(
        [
            *(PDF, DOCX, ODT, "text/html", "application/xml", "application/json", "text/plain"),
            *("message/rfc822", "text/turtle", "application/ld+json"),
        ]
    ),
    st.binary() | st.text(alphabet="<>/!-[]&;\"'a= \n?x:{}\\@", max_size=200).map(str.encode),
)
def test_whatever_is_stored_has_text_or_none(content_type: str, content: bytes) -> None:
    with suppress(NoText):
        extract(content_type, "x", content)


# --- the process -------------------------------------------------------------------------------


class Body:
    """A stored body, which counts how often it is read."""

    file_path = None

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size_bytes = len(content)
        self.reads = 0

    @property
    def content(self) -> bytes:
        self.reads += 1
        return self._content

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        yield self._content[start:end]


def document(content_type: str, size_bytes: int, name: str = "x") -> Metadata:
    return Metadata(
        path=ResourcePath(f"/alice/{name}"),
        kind=ResourceKind.DOCUMENT,
        version=Version("0" * 16),
        content_type=content_type,
        size_bytes=size_bytes,
        modified_ms=0,
        created_ms=0,
    )


async def drawn_out(
    content: bytes, content_type: str, name: str = "x", extractor: Extractor | None = None
) -> Extracted | None:
    drawn = extractor or Extractor()
    return await drawn(document(content_type, len(content), name), Body(content))


@pytest.mark.parametrize("name", SAMPLE_NAMES)
async def test_the_process_draws_out_the_same_as_is_read_here(name: str) -> None:
    content = (SAMPLES / name).read_bytes()
    expected = extract("application/octet-stream", name, content)
    assert await drawn_out(content, "application/octet-stream", name) == expected


async def test_short_texts_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    found = await drawn_out("Häuser".encode(), "text/plain", "H%C3%A4user.txt")
    assert found == Extracted("hauser", "Häuser")
    assert await drawn_out(b'<#a> <#b> "x"@en .', "text/turtle") == Extracted("x ·en·x", "x", "en")
    assert await drawn_out(b"x" * (MAX_BYTES_WITHOUT_PROCESS + 1), "text/plain") is None
    for content_type in ("text/html", "application/json", "application/xml", "image/svg+xml", PDF):
        assert await drawn_out(b"<a>x</a>", content_type) is None


async def test_a_long_text_is_found() -> None:
    content = b"The houses. " * MAX_BYTES_WITHOUT_PROCESS
    found = await drawn_out(content, "text/plain")
    assert found is not None
    assert matches(parse_question('"houses the houses"', []), found.terms)


async def test_what_is_too_large_or_has_no_text_is_not_read() -> None:
    for metadata in (
        document("text/plain", extraction.MAX_BODY_BYTES + 1),
        document("image/png", 10),
    ):
        body = Body(b"text")
        assert await Extractor()(metadata, body) is None
        assert body.reads == 0


async def test_a_process_that_takes_too_long_or_too_much_has_no_text() -> None:
    content = (SAMPLES / "reportlab.pdf").read_bytes()
    assert await drawn_out(content, PDF) is not None
    assert await drawn_out(content, PDF, extractor=Extractor(time_limit_s=0)) is None
    assert await drawn_out(content, PDF, extractor=Extractor(memory_mib=16)) is None


async def test_a_document_that_needs_more_memory_than_there_is_has_no_text() -> None:
    many = json.dumps([{}] * 3_000_000).encode()  # 64 bytes each
    assert await drawn_out(many, "application/json", extractor=Extractor(memory_mib=256)) is None
    few = await drawn_out(b'["a"]', "application/json", extractor=Extractor(memory_mib=256))
    assert few == Extracted("a", "a")


def test_stems_are_bounded() -> None:
    words = " ".join(f"{chr(97 + n % 26)}{n:x}q" for n in range(2 * analysis.MAX_STEMS))
    stems = {stem for term in analysis.terms(words, "tr") for stem in term.stems}
    assert len(stems) <= analysis.MAX_STEMS
    assert sum(bool(term.stems) for term in analysis.terms(words, "tr")) == analysis.MAX_STEMS


def limited(code: str) -> int:
    """The exit status of a program with 256 MiB of memory and one second of processor time."""
    program = (
        "from podstead.app.adapters.guarded_child import limit_this_process\n"
        f"limit_this_process(memory_mib=256, processor_s=1)\n{code}"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", program], stderr=subprocess.DEVNULL, check=False
    ).returncode


def test_a_limited_process_cannot_go_on_forever_nor_take_all_memory_nor_write_files(
    tmp_path: Path,
) -> None:
    assert limited("pass") == 0
    assert limited("while True: pass") < 0
    assert limited("bytearray(512 * 1024 * 1024)") == 1
    assert limited(f"open({str(tmp_path / 'x')!r}, 'wb', 0).write(b'x')") != 0
