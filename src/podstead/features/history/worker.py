"""The history in one worker, and the addresses of the trash for applications.

``/.history/trash/{path}`` is the trash of a container and everything below it: GET lists it, and
DELETE empties it. With ``?version={version}``, the address is that of one item: POST restores it,
and DELETE removes it for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podstead.app.adapters.system import SystemRandomness
from podstead.core.date_times import DAY_MS
from podstead.core.errors import BadRequest, NotFound
from podstead.core.identifiers import ResourcePath, is_container, parse_path, storage_root
from podstead.core.identity import Identity
from podstead.features import WorkerFeature
from podstead.features.history import HistorySettings
from podstead.features.history.memento import TIMEGATE, TIMEMAP, MementoEndpoint, Versions
from podstead.features.history.pages import TRASH, TrashPage
from podstead.features.history.past import FormerStateService
from podstead.features.history.retention import Keeper, Retention
from podstead.features.history.trash import DeletedItem, Trash
from podstead.features.history.undo import Undo
from podstead.features.history.undo_page import UndoPage
from podstead.features.history.version_pages import VersionPages
from podstead.storage.record_store import Lease, RecordStore
from podstead.web.forms import only, read_query
from podstead.web.pages import formats, rendering, texts
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, empty_response, json_content_response
from podstead.web.routes import REST, Access, Route, is_reserved, plain_routes, rest_of_path, route

if TYPE_CHECKING:
    from podstead.app.services import Services

TRASH_API: Final = "/.history/trash"
_MAX_BODY_BYTES: Final = 16 * 1024
_LEASE_MS: Final = 900_000


class _Restore(msgspec.Struct):
    """The content of a POST. ``to`` is the URL to restore something at."""

    to: str | None = None


class TrashEndpoint:
    """Answers applications."""

    def __init__(self, trash: Trash, base_url: str) -> None:
        self._trash = trash
        self._base_url = base_url

    @route(TRASH_API + REST, "GET", access=Access.PUBLIC)
    async def get(self, request: Request, agent: Identity | None) -> Response:
        """List what the agent may read. Raises NotFound."""
        path, root, _ = _addressed(request)
        origin = request.fields.get(b"origin")
        found = await self._trash.items(agent, origin, path, root)
        items = [self._described(each) for each in found.items]
        return json_content_response({"items": items}, method=request.method, headers=[NO_STORE])

    @route(TRASH_API + REST, "POST", access=Access.PUBLIC)
    async def post(self, request: Request, agent: Identity | None) -> Response:
        """Restore an item. Raises NotFound, BadRequest, and what a PUT raises."""
        path, _, version = _addressed(request)
        origin = request.fields.get(b"origin")
        content = await request.body.read(limit_bytes=_MAX_BODY_BYTES)
        item = await self._trash.item(agent, origin, path, version)
        to = self._destination(content, item.path)
        restored = await self._trash.restore(agent, origin, item, to=to)
        location = (self._base_url + restored).encode("ascii")
        return empty_response(201, [(b"location", location), NO_STORE])

    @route(TRASH_API + REST, "DELETE", access=Access.PUBLIC)
    async def delete(self, request: Request, agent: Identity | None) -> Response:
        """Remove an item, or all of them, for good. Raises NotFound."""
        path, root, version = _addressed(request)
        origin = request.fields.get(b"origin")
        if version:
            await self._trash.remove(agent, origin, path, version)
        else:
            await self._trash.empty(agent, origin, path, root)
        return empty_response(204, [NO_STORE])

    def _destination(self, content: bytes, source: ResourcePath) -> ResourcePath | None:
        """Raises BadRequest."""
        if not content:
            return None
        try:
            to = msgspec.json.decode(content, type=_Restore).to
        except msgspec.DecodeError as error:
            raise BadRequest("The content is not a JSON object of the documented form") from error
        if to is None:
            return None
        if not to.startswith(f"{self._base_url}/") or not to.isascii():
            raise BadRequest("The destination must be a URL of this server")
        path = parse_path(to.removeprefix(self._base_url).encode("ascii"))
        if is_container(path) != is_container(source) or is_reserved(path):
            raise BadRequest("There can be no such resource at the destination")
        return path

    def _described(self, item: DeletedItem) -> Mapping[str, Any]:
        state = item.state
        address = f"{self._base_url}{TRASH_API}{state.path}?version={state.version}"
        return {
            "id": address,
            "resource": self._base_url + state.path,
            "type": state.content_type,
            "size": state.size_bytes,
            "modified": formats.iso_time(state.modified_ms),
            "deleted": formats.iso_time(state.ended_ms),
            "agent": item.agent,
            "client": item.client,
        }


def _addressed(request: Request) -> tuple[ResourcePath, ResourcePath, str]:
    """The path that a request is about, the root of its storage, and the version or nothing.
    Raises NotFound, BadRequest."""
    path = rest_of_path(request.path)
    root = storage_root(path)
    version = only(read_query(request), "version") or ""
    if root is None or is_reserved(path) or (not version and not is_container(path)):
        raise NotFound
    return path, root, version


class HistoryInWorker(WorkerFeature):
    """Keeps former states, and gives them back."""

    navigation: Sequence[rendering.NavigationRow] = ((TRASH, "trash", texts.N_("Trash")),)

    def __init__(self, services: Services) -> None:
        own = services.settings.of(HistorySettings)
        self._services = services
        self._retention = Retention(own.keep_deleted * DAY_MS, own.keep_versions * DAY_MS)
        self._keeper = Keeper(services.records, services.capacity.quotas, self._retention)
        self.write_extension = self._keeper
        self.observer = self._keeper.creations
        if own.keep_versions:
            self.document_links = ((TIMEGATE, "timegate"), (TIMEMAP, "timemap"))
        records = RecordStore(services.store, services.clock, SystemRandomness())
        self._lease = Lease("history", records, lasts_ms=_LEASE_MS)

    @cached_property
    def _past(self) -> FormerStateService:
        services = self._services
        return FormerStateService(services.records, services.gate, self._keeper.retentions)

    @cached_property
    def _trash(self) -> Trash:
        services = self._services
        return Trash(self._past, self._keeper, services.resources, services.documents)

    @cached_property
    def routes(self) -> Sequence[Route]:  # type: ignore[override]
        base_url = self._services.base_url
        trash = TrashEndpoint(self._trash, base_url)
        if self._retention.versions_ms == 0:
            return plain_routes(trash)
        return plain_routes(trash, MementoEndpoint(self._versions, base_url))

    @cached_property
    def _versions(self) -> Versions:
        return Versions(self._past, self._services.resources)

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        services, site = self._services, self._services.pages.site
        names = services.pages.actor_names
        trash = TrashPage(site, self._trash, names)
        undo = UndoPage(site, Undo(self._past, self._trash), names)
        if self._retention.versions_ms == 0:
            return trash, undo
        return trash, undo, VersionPages(site, self._versions, services.documents, names)

    def kept_days(self, path: ResourcePath) -> int:
        return self._keeper.retentions.of(storage_root(path)).deleted_days

    async def start(self) -> None:
        settings = self._services.settings
        if settings.database is None and settings.bodies is None:  # they are on this disk
            self._services.space.dispensable.append(self._keeper.make_disk_room)
        await self._keeper.start()

    async def stop(self) -> None:
        await self._keeper.stop()

    async def sweep(self) -> None:
        if await self._lease.hold():
            await self._keeper.sweep()
