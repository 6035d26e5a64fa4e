"""``/.pages/upload/<container>``: the form for uploading files, which works without scripts.

Each file becomes a PUT that does not replace anything, unless the person chose that. A file whose
name is taken is held (:meth:`UploadService.hold`) until the person has chosen what to do, once for
all of them, on the page that follows.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote, unquote

from msgspec.structs import replace

from podstead.core import errors, identifiers
from podstead.core.conditional import UNCONDITIONAL, Conditions
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.resources.outcome import Result
from podstead.resources.service import ResourceService
from podstead.resources.uploads import UploadService
from podstead.storage.uploads import UploadRecord
from podstead.web.account.home import StorageNotes
from podstead.web.codes import WebCodes
from podstead.web.forms import FormPart, is_multipart, read_parts
from podstead.web.pages import addresses, rendering, texts
from podstead.web.pages.addresses import breadcrumb, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import REST, is_of_service, route

MAX_NUMBER: Final = 100
"""How often a name is changed until it is free."""

_OCTETS: Final = "application/octet-stream"
TYPES_BY_EXTENSION: Final = {
    "jsonld": JSON_LD,
    "md": "text/markdown",
    "n3": "text/n3",
    "nq": "application/n-quads",
    "nt": "application/n-triples",
    "rdf": "application/rdf+xml",
    "trig": "application/trig",
    "ttl": TURTLE,
}
"""The types that browsers do not know."""

_NEW: Final = Conditions(if_none_match="*")
_NAME: Final = re.compile(
    r"(?P<stem>.+?)(?: \((?P<number>[0-9]{1,3})\))?(?P<end>\.[^.]*)?", re.DOTALL
)

add_flash_messages(
    Tone.DONE,
    uploaded=texts.N_("Uploaded files: %(subject)s."),
    nothing_uploaded=texts.N_("You have not chosen a file."),
)


class TakenNames(Enum):
    """What happens to a file whose name is taken."""

    ASK = "ask"
    KEEP = "keep"
    """It gets another name, so that both are kept."""
    REPLACE = "replace"
    SKIP = "skip"


class Ending(Enum):
    """What became of one file."""

    STORED = "stored"
    REPLACED = "replaced"
    RENAMED = "renamed"
    SKIPPED = "skipped"
    HELD = "held"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of a form. ``name`` is the name it got, or gets if both are kept; ``message`` says
    why it failed. ``held`` is the upload that has it until the person has chosen."""

    sent_name: str
    name: str
    ending: Ending
    message: str = ""
    held: str = ""
    no_room: bool = False
    """Whether it failed because the pod is full."""

    @property
    def field(self) -> str:
        """The field of the page that asks; upload, and both names."""
        return quote_fields(self.held, self.sent_name, self.name)


@dataclass(frozen=True, slots=True)
class UploadPage:
    """Shows the form and receives the files."""

    site: Site
    resources: ResourceService
    uploads: UploadService
    storage_notes: StorageNotes

    @route(addresses.UPLOAD + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form by itself. Raises NotAuthenticated, AccessDenied, NotFound."""
        target = _container(page)
        await self.resources.handle(page.operation("HEAD", target))
        return await self._page(page, target, [])

    @route(addresses.UPLOAD + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Store the files, or what the person chose for those that are held. Raises
        NotAuthenticated, WrongFormToken, and what reading a form raises."""
        target = _container(page)
        if not is_multipart(page.request):
            return await self._finished(page, target, await self._place_all(page, target))
        taken = TakenNames.ASK
        files: list[UploadedFile] = []
        has_token = False
        async for part in read_parts(page.request):
            if part.filename is None:
                text = await part.text()
                if part.name == "csrf_token":
                    page.check_token(text)
                    has_token = True
                elif part.name == "taken":
                    taken = _taken(text)
                continue
            if not has_token:  # the form has it before the files
                page.check_token(None)
                has_token = True
            if part.filename:
                files.append(await self._store(page, target, part, part.filename, taken))
        return await self._finished(page, target, files)

    async def _finished(
        self, page: PageRequest, target: identifiers.ResourcePath, files: list[UploadedFile]
    ) -> Response:
        if not files:
            return self.site.see_other(files_url(target), FlashMessage("nothing-uploaded"))
        if all(each.ending in (Ending.STORED, Ending.REPLACED) for each in files):
            return self.site.see_other(files_url(target), FlashMessage("uploaded", str(len(files))))
        return await self._page(page, target, files)

    async def _page(
        self, page: PageRequest, target: identifiers.ResourcePath, files: list[UploadedFile]
    ) -> Response:
        return self.site.page(
            page,
            "transfers/upload_page.html",
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            files=files,
            no_room=any(each.no_room for each in files),
            storage=await self.storage_notes.of(page, target),
        )

    async def _store(
        self,
        page: PageRequest,
        container: identifiers.ResourcePath,
        part: FormPart,
        sent_name: str,
        taken: TakenNames,
    ) -> UploadedFile:
        """Store one file; a refusal concerns this file only. Raises NotAuthenticated."""
        name = sent_name
        try:
            for _ in range(MAX_NUMBER):
                conditions = UNCONDITIONAL if taken is TakenNames.REPLACE else _NEW
                try:
                    result = await self._put(page, container, part, name, conditions)
                except errors.PreconditionFailed:
                    if taken is TakenNames.SKIP:
                        return UploadedFile(sent_name, name, Ending.SKIPPED)
                    if part.is_read:  # somebody took the name meanwhile
                        raise
                    if taken is TakenNames.ASK:
                        return await self._hold(page, container, part, sent_name)
                    name = numbered(name)
                else:
                    return UploadedFile(sent_name, name, _ending(result, name == sent_name))
            raise errors.Conflict(WebCodes.TOO_MANY_NAMES_ALIKE)
        except errors.NotAuthenticated:
            raise
        except errors.RequestRefused as error:
            return _failed(sent_name, name, error)

    async def _hold(
        self, page: PageRequest, container: identifiers.ResourcePath, part: FormPart, sent_name: str
    ) -> UploadedFile:
        """Receive a file whose name is taken, under the next name that is free."""
        name = numbered(sent_name)
        for _ in range(MAX_NUMBER):
            target = _target(container, name)
            record = UploadRecord(
                target=target,
                size_bytes=0,
                content_type=type_of(target, part.content_type),
                if_none_match=_NEW.if_none_match,
            )
            try:
                state = await self.uploads.hold(record, part, page.identity)
            except errors.PreconditionFailed:
                name = numbered(name)
            else:
                return UploadedFile(sent_name, name, Ending.HELD, held=state.upload)
        raise errors.Conflict(WebCodes.TOO_MANY_NAMES_ALIKE)

    async def _place_all(
        self, page: PageRequest, container: identifiers.ResourcePath
    ) -> list[UploadedFile]:
        """What became of the files that were held."""
        sent = await page.form()
        taken = _taken(sent.text("taken"))
        held = [sent.text(name) for name in sent.fields if name.startswith("held-")]
        return [await self._place(page, container, each, taken) for each in held]

    async def _place(
        self, page: PageRequest, container: identifiers.ResourcePath, field: str, taken: TakenNames
    ) -> UploadedFile:
        upload, sent_name, name = read_fields(field)
        try:
            if taken is TakenNames.REPLACE:
                target = _target(container, sent_name)
                await self.uploads.place(upload, page.identity, target, UNCONDITIONAL)
                return UploadedFile(sent_name, sent_name, Ending.REPLACED)
            if taken is TakenNames.SKIP:
                await self.uploads.cancel(upload, page.identity)
                return UploadedFile(sent_name, sent_name, Ending.SKIPPED)
            for _ in range(MAX_NUMBER):
                try:
                    target = _target(container, name)
                    await self.uploads.place(upload, page.identity, target, _NEW)
                except errors.PreconditionFailed:  # the name has been taken since
                    name = numbered(name)
                else:
                    return UploadedFile(sent_name, name, Ending.RENAMED)
            raise errors.Conflict(WebCodes.TOO_MANY_NAMES_ALIKE)
        except errors.RequestRefused as error:
            return _failed(sent_name, name, error)

    async def _put(
        self,
        page: PageRequest,
        container: identifiers.ResourcePath,
        part: FormPart,
        name: str,
        conditions: Conditions,
    ) -> Result:
        target = _target(container, name)
        content_type = type_of(target, part.content_type)
        request = page.operation("PUT", target, body=part, content_type=content_type)
        request.operation = replace(request.operation, conditions=conditions)
        return (await self.resources.handle(request)).result


def numbered(name: str) -> str:
    """The next name to try: ``a.txt``, ``a (2).txt``, ``a (3).txt``."""
    above, slash, last = name.rpartition("/")
    matched = _NAME.fullmatch(last)
    if matched is None:
        raise errors.BadRequest(WebCodes.FILE_WITHOUT_NAME)
    number = int(matched["number"] or 1) + 1
    return f"{above}{slash}{matched['stem']} ({number}){matched['end'] or ''}"


def quote_fields(*values: str) -> str:
    """Several values in one field."""
    return "&".join(quote(value, safe="") for value in values)


def read_fields(field: str) -> tuple[str, str, str]:
    """The upload, the name that was sent and the other name. Raises BadRequest."""
    values = [unquote(value) for value in field.split("&")]
    if len(values) != 3:
        raise errors.BadRequest(WebCodes.FORM_MALFORMED)
    return values[0], values[1], values[2]


def _target(container: identifiers.ResourcePath, name: str) -> identifiers.ResourcePath:
    """Where a file goes. Raises BadRequest, Conflict."""
    target = member(container, *name.split("/"))
    if is_of_service(target) or identifiers.auxiliary_kind(target) is not None:
        raise errors.Conflict(WebCodes.NAME_OF_SERVER)
    return target


def _container(page: PageRequest) -> identifiers.ResourcePath:
    if not identifiers.is_container(page.target):
        raise errors.NotFound(WebCodes.UPLOAD_NEEDS_FOLDER)
    return page.target


def _taken(text: str) -> TakenNames:
    try:
        return TakenNames(text)
    except ValueError as error:
        raise errors.BadRequest(WebCodes.NO_SUCH_CHOICE) from error


def _failed(sent_name: str, name: str, error: errors.RequestRefused) -> UploadedFile:
    return UploadedFile(
        sent_name,
        name,
        Ending.FAILED,
        rendering.refusal_text(error),
        no_room=isinstance(error, errors.QuotaExceeded),
    )


def _ending(result: Result, has_its_name: bool) -> Ending:  # noqa: FBT001 - of one caller
    if result is Result.CHANGED:
        return Ending.REPLACED
    return Ending.STORED if has_its_name else Ending.RENAMED


def member(container: identifiers.ResourcePath, *names: str) -> identifiers.ResourcePath:
    """The document with that name in a container, or in one below it. Raises BadRequest for a name
    that is no name."""
    if not all(names):
        raise errors.BadRequest(WebCodes.FILE_NAME_EMPTY)
    return identifiers.parse_path(
        (container + "/".join(identifiers.encode_segment(name.encode()) for name in names)).encode()
    )


def type_of(target: identifiers.ResourcePath, stated: str | None) -> str:
    """The media type of a file: as stated, else by the end of its name."""
    if stated and stated != _OCTETS:
        return stated
    return TYPES_BY_EXTENSION.get(target.rpartition(".")[2].lower(), stated or _OCTETS)
