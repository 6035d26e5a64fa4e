"""Resumable uploads over HTTP, by the protocol tus 1.0.0 (``tus.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core import errors, identifiers, media_types
from podstead.core.identity import Identity
from podstead.features import WorkerFeature
from podstead.features.uploads import service, tus
from podstead.resources.uploads import UploadState
from podstead.storage.uploads import UploadRecord
from podstead.web.cors import CorsPolicy
from podstead.web.errors import refusal
from podstead.web.pages import addresses, rendering
from podstead.web.pages.request import PageRequest
from podstead.web.request import Request
from podstead.web.response import NO_STORE, HeaderField, Response, empty_response
from podstead.web.routes import Access, Endpoint, Route, is_of_service, route

if TYPE_CHECKING:
    from podstead.app.services import Services

PLACE: Final = "/.uploads/"
"""Where uploads are created, each with a URL below it."""


MAX_WHOLE_BYTES: Final = 1024 * 1024
"""An upload of at most this size that is sent with its creation is stored like any PUT: if the
connection breaks, it is sent again."""


class UploadsEndpoint:
    """Creates, continues and cancels uploads."""

    def __init__(
        self, services: Services, place: str = PLACE, *, for_own_pages: bool = False
    ) -> None:
        """``for_own_pages`` is true if only pages of this server send requests to ``place``, so
        that their Origin is no application's."""
        self._services = services
        self._base_url = services.base_url
        self._place = place
        self._for_own_pages = for_own_pages
        self._text_of = rendering.refusal_text if for_own_pages else str

    @cached_property
    def _service(self) -> service.ResumableUploads:
        services = self._services
        return service.ResumableUploads(
            resources=services.resources,
            records=services.records,
            capacity=services.capacity,
            max_body_bytes=services.settings.max_body_bytes,
        )

    def routes(self) -> tuple[Route, ...]:
        """The routes for agents with ordinary credentials."""
        return (
            self._route(self._place, {"POST": self.create}),
            self._route(
                f"{self._place}{{upload}}",
                {
                    "HEAD": self.inspect,
                    "PATCH": self.append,
                    "DELETE": self.cancel,
                    "POST": self.override,
                },
            ),
        )

    def _route(self, path: str, endpoints: dict[str, Endpoint]) -> Route:
        return Route(
            identifiers.ResourcePath(path),
            {method: self._checked(endpoint) for method, endpoint in endpoints.items()},
            Access.PUBLIC,
            CorsPolicy.REFLECTED,
            options=tus.options(self._services.settings.max_body_bytes),
        )

    def _checked(self, endpoint: Endpoint) -> Endpoint:
        async def handle(request: Request, agent: Identity | None) -> Response:
            return await self.answer(endpoint, request, agent)

        return handle

    async def answer(
        self, endpoint: Endpoint, request: Request, agent: Identity | None
    ) -> Response:
        """What every request and response of the protocol has. Raises ServerTrouble."""
        if request.fields.get(b"tus-resumable") != tus.VERSION.decode("ascii"):
            return empty_response(412, [tus.VERSION_FIELD, tus.OFFERED_VERSION, NO_STORE])
        try:
            response = await endpoint(request, agent)
        except errors.RequestRefused as error:
            response = refusal(
                error,
                method=request.method,
                accept=request.fields.get(b"accept"),
                challenges=self._services.challenges,
                text_of=self._text_of,
            )
        response.headers.append(tus.VERSION_FIELD)
        if request.fields.get(b"origin") is not None:
            response.headers.append(tus.EXPOSED)
        return response

    async def create(self, request: Request, agent: Identity | None) -> Response:
        """POST: begin an upload, and receive its first bytes if they are there (creation)."""
        get = request.fields.get
        if get(b"upload-defer-length") is not None:
            raise errors.BadRequest("Upload-Length is required")
        record = tus.read_new_upload(
            get(b"upload-metadata"),
            size_bytes=tus.number("Upload-Length", get(b"upload-length")),
            base_url=self._base_url,
        )
        if is_of_service(record.target):
            raise errors.NotFound("There can be no resource at the target")
        origin = self._origin(request)
        if _is_whole(request, record):
            _check_type(request)
            state = await self._service.store(record, request.body, agent, origin)
        else:
            state = await self._service.create(record, agent, origin)
            if request.body.announced and record.size_bytes:
                state = await self._append_first(state, request, agent)
        location = f"{self._base_url}{self._place}{state.upload}"
        return _described(201, state, (b"location", location.encode("ascii")))

    async def _append_first(
        self, state: UploadState, request: Request, agent: Identity | None
    ) -> UploadState:
        try:
            return await self._append_to(state.upload, 0, request, agent)
        except BaseException:  # the client never learns the URL of the upload
            await self._service.cancel(state.upload, agent)
            raise

    async def inspect(self, request: Request, agent: Identity | None) -> Response:
        """HEAD: how much has been received."""
        state = await self._service.inspect(_upload(request), agent)
        length = str(state.record.size_bytes).encode("ascii")
        fields: list[HeaderField] = [(b"upload-length", length)]
        if state.record.description is not None:
            fields.append((b"upload-metadata", state.record.description.encode("latin-1")))
        return _described(200, state, *fields)

    async def append(self, request: Request, agent: Identity | None) -> Response:
        """PATCH: receive more."""
        offset_bytes = tus.number("Upload-Offset", request.fields.get(b"upload-offset"))
        state = await self._append_to(_upload(request), offset_bytes, request, agent)
        return _described(204, state)

    async def _append_to(
        self, upload: str, offset_bytes: int, request: Request, agent: Identity | None
    ) -> UploadState:
        get = request.fields.get
        _check_type(request)
        checksum = tus.read_checksum(get(b"upload-checksum"))
        return await self._service.append(
            upload, offset_bytes, request.body, agent, self._origin(request), checksum=checksum
        )

    def _origin(self, request: Request) -> str | None:
        return None if self._for_own_pages else request.fields.get(b"origin")

    async def cancel(self, request: Request, agent: Identity | None) -> Response:
        """DELETE: give the upload up (termination)."""
        await self._service.cancel(_upload(request), agent)
        return empty_response(204)

    async def override(self, request: Request, agent: Identity | None) -> Response:
        """POST with the name of another method, for clients that cannot send it."""
        methods = {"HEAD": self.inspect, "PATCH": self.append, "DELETE": self.cancel}
        endpoint = methods.get(request.fields.get(b"x-http-method-override") or "")
        if endpoint is None:
            allow = ("OPTIONS", *methods)
            raise errors.MethodNotAllowed("An upload is continued by PATCH", allow=allow)
        return await endpoint(request, agent)


def _upload(request: Request) -> str:
    return request.path.rpartition("/")[2]


def _check_type(request: Request) -> None:
    stated = request.fields.get(b"content-type")
    if stated is None or media_types.essence(stated) != tus.CONTENT_TYPE:
        raise errors.UnsupportedMediaType(f"The Content-Type must be {tus.CONTENT_TYPE}")


def _is_whole(request: Request, record: UploadRecord) -> bool:
    """Whether the request that creates an upload has all of it, and little."""
    return (
        0 < record.size_bytes <= MAX_WHOLE_BYTES
        and request.body.size_bytes == record.size_bytes
        and request.fields.get(b"upload-checksum") is None
    )


def _described(status: int, state: UploadState, *fields: HeaderField) -> Response:
    offset = str(state.record.offset_bytes).encode("ascii")
    every = [(b"upload-offset", offset), NO_STORE, *fields]
    if state.expires_ms is not None:
        every.append(tus.expires(state.expires_ms))
    return empty_response(status, every)


@dataclass(frozen=True, slots=True)
class PageUploads:
    """Creates, continues and cancels the uploads of a person."""

    endpoint: UploadsEndpoint

    @route(addresses.UPLOADS, "POST")
    async def create(self, page: PageRequest) -> Response:
        """POST: begin an upload."""
        return await self._answer(page, self.endpoint.create)

    @route(addresses.UPLOADS + "{upload}", "HEAD")
    async def inspect(self, page: PageRequest) -> Response:
        """HEAD: how much has been received."""
        return await self._answer(page, self.endpoint.inspect)

    @route(addresses.UPLOADS + "{upload}", "PATCH")
    async def append(self, page: PageRequest) -> Response:
        """PATCH: receive more."""
        return await self._answer(page, self.endpoint.append)

    @route(addresses.UPLOADS + "{upload}", "DELETE")
    async def cancel(self, page: PageRequest) -> Response:
        """DELETE: give the upload up."""
        return await self._answer(page, self.endpoint.cancel)

    async def _answer(self, page: PageRequest, endpoint: Endpoint) -> Response:
        if page.request.method != "HEAD":
            page.check_token(None)
        return await self.endpoint.answer(endpoint, page.request, page.identity)


class UploadsInWorker(WorkerFeature):
    """The endpoints of applications and of the pages."""

    def __init__(self, services: Services) -> None:
        self.routes = UploadsEndpoint(services).routes()
        self.pages = (
            PageUploads(UploadsEndpoint(services, addresses.UPLOADS, for_own_pages=True)),
        )
