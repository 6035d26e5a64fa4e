"""``/.pages/``, ``/.pages/activity`` and ``/.pages/storage``: an overview of what a person has,
what happened in it, and what takes the space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from mimetypes import guess_type
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote, urlencode

from podstead.core import identifiers
from podstead.core.date_times import DAY_MS, read_day
from podstead.core.errors import AccessDenied, BadRequest, NotFound
from podstead.core.identity import Identity
from podstead.core.media_types import essence
from podstead.core.numbers import whole_number
from podstead.resources.activity import ChangeFilter, ChangeKind, PastChange, PodActivity
from podstead.resources.sharing.shared import SharedLists, SharedResource
from podstead.resources.storage_usage import MediaCategory, PodUsage, StorageUsage, UsedSpace
from podstead.wac.modes import Mode
from podstead.web.account.actor_names import AgentNames, agent_text
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.files.members import (
    Member,
    MemberLists,
    Order,
    Sorting,
    in_order,
    kind_name,
)
from podstead.web.files.starred import StarredResources
from podstead.web.pages import addresses, kinds
from podstead.web.pages.addresses import ACTIVITY, files_url, is_for_apps, shown_name
from podstead.web.pages.notifier import Notifier
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sharing.reminders import Reminders
from podstead.web.sharing.views import Names, shown_reminders

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.web.account.first_steps import FirstSteps

NEARLY_FULL_PERCENT: Final = 90


@dataclass(frozen=True, slots=True)
class StorageNote:
    """How full a pod with a quota is."""

    used_bytes: int
    quota_bytes: int

    @property
    def percent(self) -> int:
        """The used part of the quota."""
        return percent_used(self.used_bytes, self.quota_bytes) or 0

    @property
    def is_nearly_full(self) -> bool:
        """Whether a page should say so without being asked."""
        return self.percent >= NEARLY_FULL_PERCENT

    @property
    def left_bytes(self) -> int:
        """What can still be stored."""
        return max(0, self.quota_bytes - self.used_bytes)


@dataclass(frozen=True, slots=True)
class StorageNotes:
    """Tells owners how full their pods are."""

    usage: PodUsage

    async def of(self, page: PageRequest, target: identifiers.ResourcePath) -> StorageNote | None:
        """The note about the person's pod that contains the target; ``None`` if the pod has no
        quota, or is not the person's. Raises ServerTrouble."""
        person = page.person
        pods = () if person is None else person.pods
        root = next((pod for pod in pods if target.startswith(pod)), None)
        if root is None:
            return None
        try:
            used_bytes, quota_bytes = await self.usage.total(page.identity, root)
        except AccessDenied:  # an application's rules, or somebody else's
            return None
        return StorageNote(used_bytes, quota_bytes) if quota_bytes else None


def percent_used(used_bytes: int, quota_bytes: int) -> int | None:
    """The used part of a quota in percent; ``None`` without a quota."""
    return None if not quota_bytes else min(100, 100 * used_bytes // quota_bytes)


SHOWN_FOLDERS: Final = 30

_FAMILIES: Final = {
    MediaCategory.IMAGE: N_("Pictures"),
    MediaCategory.VIDEO: N_("Videos"),
    MediaCategory.AUDIO: N_("Music and audio"),
    MediaCategory.DOCUMENT: N_("Texts and documents"),
    MediaCategory.DATA: N_("Data"),
    MediaCategory.OTHER: N_("Other files"),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart that is a table, too."""

    name: str
    size_bytes: int
    resources: int | None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class StoragePage:
    """Shows how much of the quota is used, and by what."""

    site: Site
    usage: PodUsage

    @route(addresses.STORAGE, "GET")
    async def get(self, page: PageRequest) -> Response:
        pod = chosen_pod(page, page.signed_in())
        usage = await self.usage.of(page.identity, pod.root)
        breakdown = usage.breakdown
        return self.site.page(
            page,
            "account/storage.html",
            pod=pod,
            usage=usage,
            percent=percent_used(usage.used_bytes, usage.quota_bytes),
            is_complete=breakdown.is_complete,
            counted=breakdown.counted,
            counted_ms=breakdown.at_ms,
            families=_by_size(
                Bar(_(_FAMILIES[family]), share.size_bytes, share.resources)
                for family, share in breakdown.categories.items()
            ),
            folders=_folders(pod.root, usage),
            largest=[
                {
                    "name": shown_name(each.path),
                    "folder": unquote(identifiers.parent_container(each.path) or ""),
                    "address": files_url(each.path),
                    "kind": kind_name(
                        kinds.kind_of(essence(each.content_type), shown_name(each.path))
                    ),
                    "size_bytes": each.size_bytes,
                }
                for each in breakdown.largest
            ],
        )


def _folders(root: identifiers.ResourcePath, usage: StorageUsage) -> list[Bar]:
    """The folders by size, and what is charged besides resources."""
    breakdown = usage.breakdown
    bars = _by_size(_folder_bar(root, path, share) for path, share in breakdown.folders.items())
    further = bars[SHOWN_FOLDERS:]
    shown = bars[:SHOWN_FOLDERS]
    if further:
        sizes = sum(each.size_bytes for each in further)
        resources = sum(each.resources or 0 for each in further)
        shown.append(Bar(_("All other folders"), sizes, resources))
    charged = sum(usage.charges.values())
    if charged:
        shown.append(Bar(_("Versions in repositories"), charged, None))
    rest = usage.used_bytes - charged - sum(each.size_bytes for each in bars)
    if rest > 0 and breakdown.is_complete:
        shown.append(Bar(_("Names of all items, and what was deleted a moment ago"), rest, None))
    return shown


def _folder_bar(
    root: identifiers.ResourcePath, path: identifiers.ResourcePath, share: UsedSpace
) -> Bar:
    name = _("In no folder") if path == root else shown_name(path)
    return Bar(name, share.size_bytes, share.resources, files_url(path))


def _by_size(bars: Iterable[Bar]) -> list[Bar]:
    return sorted(bars, key=lambda each: (-each.size_bytes, each.name))


@dataclass(frozen=True, slots=True)
class ChosenPod:
    """The chosen pod, and all of them to choose from."""

    root: identifiers.ResourcePath
    pods: Sequence[identifiers.ResourcePath]

    @property
    def name(self) -> str:
        return self.root.strip("/")


def chosen_pod(page: PageRequest, person: Person) -> ChosenPod:
    """The pod. Raises NotFound if the person has no such pod."""
    name = page.query_text("pod")
    pods = [each for each in person.pods if not name or each == f"/{name}/"]
    if not pods:
        raise NotFound(WebCodes.NO_SUCH_OWN_POD if name else WebCodes.NO_POD)
    return ChosenPod(pods[0], person.pods)


PAGE_CHANGES: Final = 50
NOBODY: Final = "nobody"
"""Stands in the query for changes without an agent."""


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change as the page shows it."""

    name: str
    folder: str
    address: str | None
    """The page about the resource, if it exists."""
    is_container: bool
    kind: ChangeKind
    origin: str
    """The name that it had before it was renamed or moved, with the folder if that was another."""
    who: str
    agent: str
    """The agent as the filter names it."""
    at_ms: int
    above: str
    """The page about the folder that it is in."""
    count: int = 1
    """How many files the line stands for."""
    is_of_other: bool = False
    """Whether it is in the pod of ``who``, whoever changed it."""

    @property
    def shape(self) -> str:
        """The name of the icon of the kind of content that the name suggests."""
        if self.is_container or self.count > 1:
            return kinds.Kind.FOLDER.value
        return kinds.kind_of(
            guess_type(self.name)[0] or "application/octet-stream", self.name
        ).value


@dataclass(frozen=True, slots=True)
class TypedFilters:
    """The filters as they were typed."""

    kind: str
    folder: str
    who: str
    since: str
    until: str

    def query(self, **further: str) -> str:
        """These filters in a query, with further fields."""
        fields = {
            "kind": self.kind,
            "folder": self.folder,
            "who": self.who,
            "since": self.since,
            "until": self.until,
            **further,
        }
        return urlencode({name: value for name, value in fields.items() if value})


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """Shows the change log of the person's own pod."""

    site: Site
    activity: PodActivity
    agent_names: AgentNames

    @route(addresses.ACTIVITY, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        pod = chosen_pod(page, person)
        fields = ("kind", "folder", "who", "since", "until")
        typed = TypedFilters(*(page.query_text(name).strip() for name in fields))
        is_filtered, with_apps = any(astuple(typed)), page.query_text("apps") == "yes"
        wanted = read_filter(typed, root=pod.root)
        if not is_filtered and not with_apps:
            wanted = replace(wanted, leaves_out=is_for_apps)
        found = await self.activity.page(
            page.identity,
            wanted,
            before=_number(page.query_text("before")),
            limit=PAGE_CHANGES,
        )
        agents = (typed.who, *(each.agent for each in found.changes))
        names = await self.agent_names(pod.root, agents)
        shown = [
            shown_change(change, person, pod.root, self.site.base_url, names)
            for change in found.changes
        ]
        more = None
        if found.before is not None:
            apps = "yes" if with_apps else ""
            more = f"{ACTIVITY}?{typed.query(pod=pod.name, apps=apps, before=str(found.before))}"
        return self.site.page(
            page,
            "account/activity.html",
            pod=pod,
            typed=typed,
            is_filtered=is_filtered,
            of_apps=None
            if is_filtered or with_apps
            else f"{ACTIVITY}?{urlencode({'pod': pod.name, 'apps': 'yes'})}",
            kinds=list(ChangeKind),
            who=self._who(shown, person, typed, names),
            nobody=NOBODY,
            days=[
                (day * DAY_MS, list(changes))
                for day, changes in groupby(shown, key=lambda each: each.at_ms // DAY_MS)
            ],
            more=more,
            is_whole=len(shown) == PAGE_CHANGES or found.before is None,
            by_agent=lambda agent: f"{ACTIVITY}?{urlencode({'pod': pod.name, 'who': agent})}",
        )

    def _who(
        self,
        shown: Sequence[ShownChange],
        person: Person,
        typed: TypedFilters,
        names: Mapping[str, str],
    ) -> list[tuple[str, str]]:
        """Whom the filter offers: the person, the agents on the page, and the chosen one."""
        offered = {person.web_id: _("You"), **{each.agent: each.who for each in shown}}
        if typed.who and typed.who not in offered:
            agent = None if typed.who == NOBODY else typed.who
            offered[typed.who] = agent_text(
                agent, viewer=person.identity, base_url=self.site.base_url, names=names
            )
        offered.setdefault(NOBODY, _("Somebody who was not signed in"))
        return list(offered.items())


def shown_change(
    change: PastChange,
    person: Person,
    root: identifiers.ResourcePath,
    base_url: str,
    names: Mapping[str, str],
) -> ShownChange:
    """A change as the pages show it to the owner of the pod."""
    above = identifiers.parent_container(change.path) or root
    return ShownChange(
        name=shown_name(change.path) or change.path,
        folder=unquote(above[len(root) :]).strip("/"),
        address=files_url(change.path) if change.exists else None,
        is_container=change.path.endswith("/"),
        kind=change.kind,
        origin="" if change.origin is None else _former_name(change.origin, above, root),
        who=agent_text(change.agent, viewer=person.identity, base_url=base_url, names=names),
        agent=NOBODY if change.agent is None else change.agent,
        at_ms=change.at_ms,
        above=files_url(above),
    )


def _former_name(
    origin: identifiers.ResourcePath,
    folder: identifiers.ResourcePath,
    root: identifiers.ResourcePath,
) -> str:
    if identifiers.parent_container(origin) == folder:
        return shown_name(origin)
    return unquote(origin.removeprefix(root)).strip("/")


def read_filter(typed: TypedFilters, *, root: identifiers.ResourcePath) -> ChangeFilter:
    """The filters that were typed, for a pod. Raises BadRequest."""
    try:
        kind = ChangeKind(typed.kind) if typed.kind else None
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_CHANGE) from error
    until_ms = _day_ms(typed.until)
    return ChangeFilter(
        below=_folder(typed.folder, root),
        kind=kind,
        agent="" if typed.who == NOBODY else typed.who or None,
        since_ms=_day_ms(typed.since),
        until_ms=None if until_ms is None else until_ms + DAY_MS,
    )


def _folder(typed: str, root: identifiers.ResourcePath) -> identifiers.ResourcePath:
    """The folder of a pod with this name as people read it, such as “photos/2026”."""
    names = [each for each in typed.split("/") if each]
    segments = [identifiers.encode_segment(unquote(each).encode()) for each in names]
    return identifiers.parse_path(f"{root}{'/'.join(segments)}{'/' if segments else ''}".encode())


_MAX_SEQUENCE: Final = 10**18


def _day_ms(typed: str) -> int | None:
    if not typed:
        return None
    try:
        return read_day(typed)
    except ValueError as error:
        raise BadRequest(WebCodes.DATE_MALFORMED) from error


def _number(typed: str) -> int | None:
    if not typed:
        return None
    number = whole_number(typed, _MAX_SEQUENCE)
    if number is None:
        raise BadRequest("The field before must be a number")
    return number


RECENT_FILES: Final = 8
READ_CHANGES: Final = 100
"""How many changes of a pod are looked at for its recent files."""
READ_FOLDERS_OF_OTHERS: Final = 12
READ_FOLDERS_OF_ONE: Final = 3
"""How many folders of one storage are looked at, so that nobody crowds out the others."""
READ_CHANGES_OF_OTHERS: Final = 30
"""How many changes of each folder that somebody shares are looked at."""
SHOWN_SHARED: Final = 5
SHOWN_STARRED: Final = 8
SHOWN_FOLDERS_AT_HOME: Final = 8
SHOWN_REQUESTS: Final = 3
SHOWN_NEWS: Final = 4
_OF_CONTENT: Final = frozenset({ChangeKind.CREATED, ChangeKind.CHANGED, ChangeKind.MOVED})


class ShownRequests(Protocol):
    """Reads the requests for access that wait for a person."""

    async def __call__(
        self, person: Person, *, limit: int
    ) -> tuple[Sequence[object], frozenset[identifiers.ResourcePath]]:
        """The newest as the list of requests shows them, and the notifications of all. Raises
        ServerTrouble."""


@dataclass(frozen=True, slots=True)
class HomePage:
    """Shows pods with their used space, addresses to copy, and what happened last.

    ``issuer`` is the provider's URL, if this server has one. ``first_steps`` is ``None`` if no
    provider is at this origin.
    """

    site: Site
    lists: MemberLists
    starred: StarredResources
    activity: PodActivity
    usage: PodUsage
    shared: SharedLists
    requests: ShownRequests
    reminders: Reminders
    notifier: Notifier
    agent_names: AgentNames
    issuer: str | None
    first_steps: FirstSteps | None

    @route(addresses.HOME, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        if not person.pods:
            return see_other(addresses.SHARED)  # a visitor, who has an identity elsewhere
        requests, notifications = await self.requests(person, limit=SHOWN_REQUESTS)
        pods = []
        recent: list[ShownChange] = []
        folders: list[Member] = []
        starred = await self.starred.of(page)
        for root in person.pods:
            newest = await recent_files(self.activity, page.identity, root)
            folders += await self._own_folders(page, root, starred, newest)
            used_bytes, quota_bytes = await self.usage.total(page.identity, root)
            pods.append(
                {
                    "name": root.strip("/"),
                    "root": root,
                    "url": self.site.base_url + root,
                    "used_bytes": used_bytes,
                    "quota_bytes": quota_bytes,
                    "percent": percent_used(used_bytes, quota_bytes),
                }
            )
            names = await self.agent_names(root, (each.agent for each in newest))
            recent += [
                shown_change(each, person, root, self.site.base_url, names) for each in newest
            ]
        shared = await self.shared.shared_with(person.identity, own=person.pods)
        steps = None
        if self.first_steps is not None:
            steps = await self.first_steps.reminder(page, has_files=bool(recent))
        recent += await self._recent_of_others(person, shared.resources)
        recent.sort(key=lambda each: -each.at_ms)
        return self.site.page(
            page,
            "account/home.html",
            steps=steps,
            requests=requests,
            more_requests=len(notifications) > len(requests),
            reminders=shown_reminders(await self.reminders.on(page), Names(self.site.base_url)),
            news=await self.notifier.newest_unread(person, limit=SHOWN_NEWS),
            pods=pods,
            recent=in_groups(recent)[:RECENT_FILES],
            starred=await self.starred.rows(page, limit=SHOWN_STARRED),
            folders=folders[:SHOWN_FOLDERS_AT_HOME],
            all_folders=files_url(person.pods[0]) if folders else None,
            shared=[
                {
                    "name": shown_name(each.resource),
                    "address": files_url(each.resource),
                    "is_container": each.resource.endswith("/"),
                    "whose": shown_name(each.storage),
                    "storage": each.storage,
                }
                for each in shared.resources
                if Mode.READ in each.here
            ][:SHOWN_SHARED],
            issuer=self.issuer,
            issuer_of_person=self.issuer if person.account_id else None,
        )

    async def _recent_of_others(
        self, person: Person, shared: Sequence[SharedResource]
    ) -> Sequence[ShownChange]:
        """The files that changed last in folders that others share with the person. Who changed
        them is for those to know who may see the rules. Raises ServerTrouble."""
        roots: dict[identifiers.ResourcePath, identifiers.ResourcePath] = {}
        of_one = Counter[identifiers.ResourcePath]()
        for each in filter(is_open_folder, shared):
            of_one[each.storage] += 1
            if of_one[each.storage] <= READ_FOLDERS_OF_ONE:
                roots[each.resource] = each.storage
        folders = [*roots][:READ_FOLDERS_OF_OTHERS]
        found = await self.activity.readable(person.identity, folders, limit=READ_CHANGES_OF_OTHERS)
        shown: dict[identifiers.ResourcePath, ShownChange] = {}
        for folder, changes in found.items():
            root, whose = roots[folder], shown_name(roots[folder])
            for change in _newest_of_files(changes):
                if not is_for_apps(change.path):
                    line = shown_change(change, person, root, self.site.base_url, {})
                    shown[change.path] = replace(line, who=whose, agent=root, is_of_other=True)
        return list(shown.values())

    async def _own_folders(
        self,
        page: PageRequest,
        root: identifiers.ResourcePath,
        starred: AbstractSet[identifiers.ResourcePath],
        newest: Sequence[PastChange],
    ) -> Sequence[Member]:
        """The folders of a pod that are the person's own, those in use first; none if the rules
        keep them from the person. Raises StorageError."""
        try:
            members, _request = await self.lists.read(page, root)
        except (AccessDenied, NotFound):
            return ()
        own = [each for each in members.all if each.is_container and not is_for_apps(each.path)]
        unused = await self.lists.unused(page, own)
        changed = Sorting(Order.CHANGED, descending=True)
        shown = in_order([each for each in own if each.path not in unused], changed)
        used = [top_folder(each.path, root) for each in newest]
        order = {path: place for place, path in reversed([*enumerate(used)])}
        return sorted(
            shown, key=lambda each: (each.path not in starred, order.get(each.path, len(used)))
        )


def is_open_folder(shared: SharedResource) -> bool:
    """Whether somebody can open a folder that is shared with them."""
    return identifiers.is_container(shared.resource) and Mode.READ in shared.here


def top_folder(path: identifiers.ResourcePath, root: identifiers.ResourcePath) -> str:
    """The folder of a pod that something is in, which is the pod itself for what is in none."""
    folder, slash, _rest = path[len(root) :].partition("/")
    return root + folder + slash if slash else root


_AT_ONCE_MS: Final = 15 * 60_000
"""Within what time files that came into one folder are shown as one line."""
_MANY: Final = 3


def in_groups(files: Sequence[ShownChange]) -> list[ShownChange]:
    """Files that somebody put into one folder at about the same time as one line for the folder,
    where they are many; the newest first, as they are given."""
    groups: dict[tuple[str, str, str, ChangeKind], list[list[ShownChange]]] = {}
    found: list[list[ShownChange]] = []
    for each in files:
        key = each.folder, each.above, each.agent, each.kind
        known = groups.setdefault(key, [])
        if not known or known[-1][0].at_ms - each.at_ms > _AT_ONCE_MS:
            known.append([])
            found.append(known[-1])
        known[-1].append(each)
    shown = []
    for group in found:
        if len(group) < _MANY or group[0].kind is not ChangeKind.CREATED:
            shown += group
        else:
            shown.append(replace(group[0], address=group[0].above, count=len(group)))
    return sorted(shown, key=lambda each: -each.at_ms)


async def recent_files(
    activity: PodActivity, identity: Identity | None, pod: identifiers.ResourcePath
) -> Sequence[PastChange]:
    """The newest change of the content of each document of a pod that is there and not for
    applications, among the newest changes. Raises AccessDenied, StorageError."""
    wanted = ChangeFilter(below=pod, leaves_out=is_for_apps)
    found = await activity.page(identity, wanted, limit=READ_CHANGES)
    return _newest_of_files(found.changes)


def _newest_of_files(changes: Iterable[PastChange]) -> list[PastChange]:
    newest: dict[identifiers.ResourcePath, PastChange] = {}
    for each in changes:
        is_file = each.exists and not identifiers.is_container(each.path)
        if is_file and each.kind in _OF_CONTENT:
            newest.setdefault(each.path, each)
    return list(newest.values())
