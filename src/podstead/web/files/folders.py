"""The page about a container: what is in it, and what can be done with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec.structs import replace

from podstead.core.caches import BoundedCache
from podstead.core.errors import AccessDenied, NotAuthenticated, NotFound
from podstead.core.identifiers import ROOT, ResourcePath, description_of, is_container, storage_root
from podstead.core.media_types import essence
from podstead.resources import activity, entity_tags, outcome
from podstead.storage.records import ResourceKind
from podstead.wac.decision import Audience
from podstead.wac.modes import Mode
from podstead.web.account.home import StorageNotes
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.files import members as files_members
from podstead.web.files.documents import ContentPreviews, DocumentPage
from podstead.web.files.starred import StarredResources
from podstead.web.pages import addresses, formats, kinds, texts
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import REST, route
from podstead.web.sharing.pod_front import PodFront

_MAX_BYTES: Final = 16 * 1024 * 1024
_OVERHEAD_BYTES: Final = 2048

_Key = tuple[str, str, str, str]


class PageCache:
    """Keeps the newest pages of one worker."""

    def __init__(self, data_version: Callable[[], int | None]) -> None:
        """``data_version`` is that of the store: it changes with every commit."""
        self._data_version = data_version
        self._cached: BoundedCache[_Key, tuple[int, Response]] = BoundedCache(_MAX_BYTES)

    def get(self, page: PageRequest) -> Response | None:
        """The page for this request, if it would be the same again."""
        cached = self._cached.get(_key(page)) if page.flash_message is None else None
        if cached is None or cached[0] != self._data_version():
            return None
        return replace(cached[1], headers=[*cached[1].headers])

    def begin(self) -> int | None:
        """The state of the store before a page is made, for :meth:`put`."""
        return self._data_version()

    def put(self, page: PageRequest, response: Response, *, begun: int | None) -> None:
        """Keep a page, unless there was a write while it was made."""
        if begun is None or begun != self._data_version() or page.flash_message is not None:
            return
        if response.status == 200 and isinstance(response.body, bytes):
            cached = replace(response, headers=[*response.headers])
            weight = len(response.body) + _OVERHEAD_BYTES
            self._cached.put(_key(page), (begun, cached), weight=weight)


def _key(page: PageRequest) -> _Key:
    # The token belongs to one session of one person; the public has none.
    session = "" if page.person is None else page.person.csrf_token
    return session, page.request.method, page.address, page.texts.language


_MAX_DATED: Final = 5_000
"""The number of photos of a folder whose dates are looked up."""
ROWS: Final = 100
"""How many members a page has; the next ones follow when it is scrolled."""
PART_ROWS: Final = 50
"""How many of them scripts show or take out at once; divides ROWS."""
_MAX_FILTER_CHARACTERS: Final = 200
_VIEWS: Final = frozenset({"grid", "photos"})


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column: where a click leads, and how the list is sorted by it now."""

    title: str
    address: str
    state: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What of the container is shown, as the query says."""

    sorting: files_members.Sorting
    filter: str
    view: str
    """``grid``, ``photos``, or nothing for the list."""
    start: int
    apps: bool
    """Whether what applications use is shown, too."""

    @classmethod
    def of(cls, page: PageRequest) -> "Shown":
        """Raises BadRequest."""
        start = page.query_text("from")
        return cls(
            files_members.Sorting.of(page.query_text("sort")),
            page.query_text("filter")[:_MAX_FILTER_CHARACTERS].strip(),
            view if (view := page.query_text("view")) in _VIEWS else "",
            int(start) if start.isdecimal() and len(start) < 7 else 0,
            page.query_text("apps") == "yes",
        )

    @property
    def grid(self) -> bool:
        """Whether there are tiles and not rows."""
        return self.view != ""

    def query(
        self,
        *,
        sorting: files_members.Sorting | None = None,
        view: str | None = None,
        apps: bool | None = None,
        start: int = 0,
    ) -> str:
        """The query of the page that differs in this."""
        sorting = sorting or self.sorting
        view = self.view if view is None else view
        apps = self.apps if apps is None else apps
        fields = {
            "sort": "" if sorting == files_members.Sorting() else sorting.text,
            "filter": self.filter,
            "view": view,
            "apps": "yes" if apps else "",
            "from": str(start) if start else "",
        }
        given = {name: value for name, value in fields.items() if value}
        return f"?{urlencode(given)}" if given else "?"


@dataclass(frozen=True, slots=True)
class ContainerPage:
    """Lists the members of a container."""

    site: Site
    lists: files_members.MemberLists
    reach: activity.MemberAudiences
    authors: activity.ChangeAuthors
    storage_notes: StorageNotes
    page_cache: PageCache
    previews: ContentPreviews
    starred: StarredResources

    async def get(self, page: PageRequest, target: ResourcePath) -> Response:
        """The page, or with ``part=rows`` only the rows. Raises NotAuthenticated, AccessDenied,
        NotFound, BadRequest."""
        page_cache = self.page_cache.get(page)
        if page_cache is not None:
            return page_cache
        begun = self.page_cache.begin()
        shown = Shown.of(page)
        members, request = await self.lists.read(page, target)
        sorted_members = (
            members.matching(shown.filter, shown.sorting)
            if shown.filter
            else members.sorted(shown.sorting)
            if members.is_complete
            else members.all
        )
        used_by_apps: Sequence[files_members.Member] = ()
        first_folders: Sequence[str] = ()
        may = _may(request, members)
        if members.container.kind is ResourceKind.STORAGE and not shown.filter:
            apart = {each.path for each in sorted_members if addresses.is_for_apps(each.path)}
            if may["may_control"]:
                apart |= await self.lists.unused(page, sorted_members)
            used_by_apps = [each for each in sorted_members if each.path in apart]
            sorted_members = [each for each in sorted_members if each.path not in apart]
            first_folders = _first_folders(sorted_members) if may["may_control"] else ()
            if shown.apps:
                sorted_members += used_by_apps
        taken: Mapping[ResourcePath, int] = {}
        if shown.view == "photos":
            sorted_members, taken = await self._photos(sorted_members)
        part = sorted_members[shown.start : shown.start + ROWS]
        following = shown.start + ROWS
        more = shown.query(start=following) if following < len(sorted_members) else None
        only_rows = page.query_text("part") == "rows"
        reaches = await self.reach.of(page.identity, [member.metadata for member in part])
        listed = request.grant is not None and request.grant.public_may_read
        response = self.site.page(
            page,
            "files/rows.html" if only_rows else "files/container.html",
            target=target,
            name=addresses.shown_name(target),
            breadcrumb=addresses.breadcrumb(target),
            rows=_by_month(
                await self._rows(page, part, reaches, grid=shown.grid, listed=listed),
                [taken[each.path] for each in part] if taken else [],
                before=taken[sorted_members[shown.start - 1].path]
                if taken and shown.start
                else None,
            ),
            shows_closed_names=listed and set(reaches.values()) != {Audience.EVERYONE},
            icons=files_members.ICONS,
            shown=shown,
            more=more,
            first_folders=first_folders,
            used_by_apps=0 if more else len(used_by_apps),
            total=len(sorted_members),
            page_rows=ROWS,
            part_rows=PART_ROWS,
            is_complete=members.is_complete,
            columns=_columns(shown),
            storage=None
            if only_rows or not may["may_append"]
            else await self.storage_notes.of(page, target),
            **may,
        )
        # When photos were taken becomes known without a write.
        if request.cacheable and request.decided_until_ms is None and not taken:
            self.page_cache.put(page, response, begun=begun)
        return response

    async def _photos(
        self, members: Sequence[files_members.Member]
    ) -> tuple[Sequence[files_members.Member], Mapping[ResourcePath, int]]:
        """The pictures among the members, the newest first, and when each was taken in Unix
        milliseconds: as far as that is not known, when it was changed."""
        photos = [each for each in members if kinds.is_photo(essence(each.metadata.content_type))]
        taken = {each.path: entity_tags.last_modified_ms(each.metadata) for each in photos}
        taken |= await self.previews.taken([each.metadata for each in photos[:_MAX_DATED]])
        return sorted(photos, key=lambda each: -taken[each.path]), taken

    async def _rows(
        self,
        page: PageRequest,
        members: Sequence[files_members.Member],
        reaches: Mapping[ResourcePath, Audience | None],
        *,
        grid: bool,
        listed: bool,
    ) -> Sequence[Markup]:
        """``listed`` if everyone may see what is in the container."""
        stored = [member.metadata for member in members]
        person = page.person
        owns = person is not None and any(
            member.path.startswith(pod) for pod in person.pods for member in members[:1]
        )
        authors = (
            {}
            if grid
            else _shown_authors(
                await self.authors.of(stored), reaches, page.person, self.site.base_url
            )
        )
        writer = files_members.RowWriter(
            grid=grid,
            owns=owns,
            reaches=reaches,
            authors=authors,
            everyone_lists=listed,
            picture=self.previews.picture,
            starred=await self.starred.of(page),
        )
        return [writer.row(member) for member in members]


_FIRST_FOLDERS: Final = (texts.N_("Documents"), texts.N_("Photos"))


def _first_folders(members: Sequence[files_members.Member]) -> Sequence[str]:
    """The names of the folders that a person can make with one click in a pod with no others."""
    offered = [texts._(each) for each in _FIRST_FOLDERS]
    present = {each.name for each in members}
    if not present <= {*files_members.OF_NEW_POD, *offered}:
        return ()
    return [each for each in offered if each not in present]


def _by_month(
    rows: Sequence[Markup], taken_ms: Sequence[int], *, before: int | None
) -> Sequence[Markup]:
    """The tiles of photos with the months above them. ``before`` is the time of the last photo of
    the part before this one."""
    if not taken_ms:
        return rows
    found: list[Markup] = []
    last = "" if before is None else formats.month_text(before)
    for row, at_ms in zip(rows, taken_ms, strict=True):
        month = formats.month_text(at_ms)
        if month != last:
            found.append(Markup('<li class="month"><h2>{}</h2></li>\n').format(month))
        last = month
        found.append(row)
    return found


def _shown_authors(
    authors: Mapping[ResourcePath, str],
    reaches: Mapping[ResourcePath, Audience | None],
    person: Person | None,
    base_url: str,
) -> Mapping[ResourcePath, str]:
    """Who changed each member last, told to the person who did and to those who know its rules."""
    own = None if person is None else person.web_id
    return {
        path: files_members.shown_agent(author, own=own, base_url=base_url)
        for path, author in authors.items()
        if author == own or reaches[path] not in {None, Audience.EVERYONE}
    }


def _columns(shown: Shown) -> dict[str, Column]:
    current = shown.sorting
    states = {False: "ascending", True: "descending"}
    return {
        order.value: Column(
            order.value,
            shown.query(sorting=current.by(order)),
            states[current.descending] if order is current.order else "none",
        )
        for order in files_members.Order
    }


def _may(request: outcome.ResourceRequest, members: files_members.Members) -> dict[str, Any]:
    grant = request.grant
    return {
        "may_append": grant is not None and grant.allows(Mode.APPEND),
        "may_write": grant is not None and grant.allows(Mode.WRITE),
        "may_control": grant is not None and grant.allows(Mode.CONTROL),
        "is_storage": members.container.kind is ResourceKind.STORAGE,
    }


@dataclass(frozen=True, slots=True)
class FilesPage:
    """Leads to the page for the kind of the resource."""

    containers: ContainerPage
    documents: DocumentPage
    pod_front: PodFront

    async def _home(self, page: PageRequest) -> Response:
        """Leads to the person's pod. Raises NotAuthenticated, NotFound."""
        if not page.signed_in().pods:
            return see_other(addresses.SHARED)  # a visitor, who has an identity elsewhere
        return see_other(addresses.files_url(_first_pod(page)))

    @route(addresses.FILES + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        target = page.target
        if target == ROOT:
            return await self._home(page)
        if is_container(target):
            try:
                return await self.containers.get(page, target)
            except (NotAuthenticated, AccessDenied):
                # Somebody who may not know what is in the pod may still read its profile.
                if storage_root(target) == target and not page.query_text("view"):
                    return await self.pod_front.get(page, target)
                return await self.documents.get(page, description_of(target))
        return await self.documents.get(page, target)


def _first_pod(page: PageRequest) -> ResourcePath:
    """The root of the person's pod. Raises NotAuthenticated, NotFound."""
    pods = page.signed_in().pods
    if not pods:
        raise NotFound(WebCodes.NO_POD)
    return pods[0]
