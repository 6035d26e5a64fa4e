"""``/.pages/save/<path>``: replaces the text of a document that was edited on its page.

The version that was edited is a precondition (``If-Match``). If somebody else has saved since, both
versions are shown and nothing is lost.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from msgspec.structs import replace

from podstead.core.conditional import Conditions
from podstead.core.errors import PreconditionFailed
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import TURTLE
from podstead.core.operation import InMemoryBody
from podstead.rdf.errors import MalformedRdf
from podstead.resources.entity_tags import stored_tag
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.pod_pages.files.contents import DocumentContents
from podstead.web.pod_pages.files.document_page import EDIT, DocumentPage
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.response import Response
from podstead.web.routes import REST, route

MAX_EDITED_BYTES: Final = 4 * 1024 * 1024
"""A form with a text of the largest size that is shown, each byte of which may be escaped."""
_MAX_COMPARED_LINES: Final = 1_500
_EXCERPT_LINES: Final = 2

add_notices(Tone.DONE, document_saved=N_("%(subject)s was saved."))


@dataclass(frozen=True, slots=True)
class TextProblem:
    """Why a text was not saved, and where in it the reason is."""

    reason: str
    line: int | None
    column: int | None
    excerpt: tuple[ExcerptLine, ...]


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """A line near the place, cut in two at it if it is the one."""

    number: int
    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line of two versions beside each other; ``None`` where one has none."""

    left: str | None
    right: str | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Saving:
    """Saves edited texts."""

    site: Site
    resources: ResourceService
    documents: DocumentPage
    contents: DocumentContents

    @route(addresses.SAVE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, and whatever refuses the write otherwise."""
        sent = await page.form(max_bytes=MAX_EDITED_BYTES)
        target = page.target
        tag = sent.text("tag")
        text = _as_written(sent.text("text"), newline=sent.text("newline"))
        head = page.operation("HEAD", target)
        stored = (await self.resources.handle(head)).metadata
        request = page.operation(
            "PUT",
            target,
            body=InMemoryBody(text.encode()),
            content_type=TURTLE if stored is None else stored.content_type,
        )
        conditions = Conditions(if_match=tag) if tag else Conditions(if_none_match="*")
        request.operation = replace(request.operation, conditions=conditions)
        try:
            await self.resources.handle(request)
        except PreconditionFailed:
            return await self._conflict(page, target, text)
        except MalformedRdf as error:
            problem = problem_at(error, text)
            edited = {"text": text, "tag": tag, "problem": problem, "editable": True}
            return await self.documents.show(
                page, target, head, stored, status=422, view=EDIT, edited=edited
            )
        notice = Notice("document-saved", shown_name(target))
        return self.site.see_other(files_url(target), notice)

    async def _conflict(self, page: PageRequest, target: ResourcePath, mine: str) -> Response:
        """Both versions, of which the person chooses one or makes a third."""
        read = await self.contents.text(page, target)
        theirs = "" if read.decoded is None else read.decoded.text
        return self.site.page(
            page,
            "files/conflict.html",
            status=409,
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            mine=mine,
            theirs=theirs,
            # Comparing lines that alternate takes more than a second.
            lines=await asyncio.to_thread(compared, theirs, mine),
            newline="crlf" if "\r\n" in mine else "lf",
            tag=_tag(read.stored),
        )


def _tag(stored: Metadata | None) -> str:
    return "" if stored is None else stored_tag(stored)


def _as_written(text: str, *, newline: str) -> str:
    """The text with the line ends of the document: browsers send all of them as CR LF."""
    lines = text.replace("\r\n", "\n")
    return lines.replace("\n", "\r\n") if newline == "crlf" else lines


def problem_at(error: MalformedRdf, text: str) -> TextProblem:
    """The problem with the lines around its place."""
    if error.line is None:
        return TextProblem(error.reason, None, None, ())
    lines = text.splitlines() or [""]
    at = min(max(error.line, 1), len(lines))
    excerpt = []
    for number in range(max(1, at - _EXCERPT_LINES), min(len(lines), at + _EXCERPT_LINES) + 1):
        line = lines[number - 1][:1_000]
        if number == at and error.column is not None:
            cut = min(max(error.column - 1, 0), len(line))
            excerpt.append(ExcerptLine(number, line[:cut], line[cut:]))
        else:
            excerpt.append(ExcerptLine(number, line, "" if number == at else None))
    return TextProblem(error.reason, error.line, error.column, tuple(excerpt))


def compared(left: str, right: str) -> list[ComparedLine] | None:
    """Two texts line by line; ``None`` if they are too long to be compared."""
    one, other = left.splitlines(), right.splitlines()
    if max(len(one), len(other)) > _MAX_COMPARED_LINES:
        return None
    rows: list[ComparedLine] = []
    for kind, start, end, from_other, to_other in SequenceMatcher(None, one, other).get_opcodes():
        rows += [
            ComparedLine(
                one[start + index] if start + index < end else None,
                other[from_other + index] if from_other + index < to_other else None,
                kind != "equal",
            )
            for index in range(max(end - start, to_other - from_other))
        ]
    return rows
