"""The members of a container as rows of a list, in the order in which a person wants them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit

from markupsafe import Markup

from podstead.core.caches import BoundedCache
from podstead.core.errors import AccessDenied, NotAuthenticated, NotFound
from podstead.core.identifiers import ResourcePath, segment_name
from podstead.core.media_types import essence
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.wac.decision import Audience
from podstead.web.pages.addresses import actions_url, files_url, shown_name
from podstead.web.pages.formats import date_text, iso_time, moment_text, name_sort_key, size_text
from podstead.web.pages.kinds import Kind, kind_of
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import N_, _, current_texts

MAX_SORTED: Final = 20_000
"""A container with more members is listed in the order of their paths."""
OF_NEW_POD: Final = frozenset({"private", "public"})
"""The folders for people in every new pod."""
_CACHED_MEMBERS: Final = 60_000
_READ_AT_ONCE: Final = 1_000


class Order(Enum):
    """What the list is sorted by. The values are those of the query."""

    NAME = "name"
    SIZE = "size"
    CHANGED = "changed"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Sorting:
    """An order and its direction."""

    order: Order = Order.NAME
    descending: bool = False

    @classmethod
    def of(cls, text: str) -> "Sorting":
        """Read ``name`` or ``-name``; anything else is the usual order."""
        name = text.removeprefix("-")
        known = [order for order in Order if order.value == name]
        return cls(known[0], text.startswith("-")) if known else cls()

    @property
    def text(self) -> str:
        """The form that :meth:`of` reads."""
        return ("-" if self.descending else "") + self.order.value

    def by(self, order: Order) -> "Sorting":
        """What a click on the head of a column leads to: the newest and largest come first."""
        if order is self.order:
            return Sorting(order, not self.descending)
        return Sorting(order, order in {Order.SIZE, Order.CHANGED})


@dataclass(frozen=True, slots=True)
class Member:
    """A member with its name as people read it, and the sort key of that name."""

    name: str
    sort_key: bytes
    metadata: Metadata

    @property
    def path(self) -> ResourcePath:
        return self.metadata.path

    @property
    def is_container(self) -> bool:
        return self.metadata.kind.is_container


@dataclass(frozen=True, slots=True)
class Members:
    """All members of one state of a container; not all if they are too many to be sorted."""

    container: Metadata
    all: Sequence[Member]
    is_complete: bool = True
    _sorted: dict[Sorting, Sequence[Member]] = field(default_factory=dict)

    def sorted(self, sorting: Sorting) -> Sequence[Member]:
        """Folders first, then by the order, and by name where that is equal."""
        found = self._sorted.get(sorting)
        if found is None:
            found = self._sorted[sorting] = in_order(self.all, sorting)
        return found

    def matching(self, text: str, sorting: Sorting) -> Sequence[Member]:
        """Those whose name contains the text, in any case."""
        wanted = text.casefold()
        return [each for each in self.sorted(sorting) if wanted in each.name.casefold()]


def in_order(members: Sequence[Member], sorting: Sorting) -> Sequence[Member]:
    """Sort by name first, then stably by what was asked for, then folders before documents."""
    by_name_descending = sorting.order is Order.NAME and sorting.descending
    found = sorted(members, key=lambda each: (each.sort_key, each.name), reverse=by_name_descending)
    if sorting.order is Order.SIZE:
        found.sort(key=lambda each: each.metadata.size_bytes, reverse=sorting.descending)
    elif sorting.order is Order.CHANGED:
        found.sort(key=lambda each: last_modified_ms(each.metadata), reverse=sorting.descending)
    elif sorting.order is Order.TYPE:
        found.sort(key=lambda each: essence(each.metadata.content_type), reverse=sorting.descending)
    found.sort(key=lambda each: not each.is_container)
    return found


class MemberLists:
    """Reads the members of containers, and remembers the newest lists."""

    def __init__(self, resources: ResourceService) -> None:
        self._resources = resources
        self._cached: BoundedCache[tuple[ResourcePath, str], tuple[str, Members]] = BoundedCache(
            _CACHED_MEMBERS
        )

    async def read(
        self, page: PageRequest, target: ResourcePath
    ) -> tuple[Members, ResourceRequest]:
        """The members, and the request with what the person may do with the container.

        Every call passes the gate; what is remembered is the sorted list of one state. Raises
        NotAuthenticated, AccessDenied, NotFound, ServerTrouble.
        """
        request = page.operation("GET", target)
        first = await self._resources.members(request, limit=1)
        state = state_version(first.container)
        key = target, current_texts().language
        cached = self._cached.get(key)
        if cached is not None and cached[0] == state:
            return cached[1], request
        sort_key = name_sort_key()
        found: list[Member] = []
        after: ResourcePath | None = None
        listed = first
        while len(found) <= MAX_SORTED:
            listed = await self._resources.members(request, after=after, limit=_READ_AT_ONCE)
            for each in listed.members:
                name = shown_name(each.path)
                found.append(Member(name, sort_key(name), each))
            if len(listed.members) < _READ_AT_ONCE:
                break
            after = listed.members[-1].path
            await asyncio.sleep(0)  # lets other requests go on
        members = Members(listed.container, found[:MAX_SORTED], len(found) <= MAX_SORTED)
        if state_version(listed.container) == state:
            self._cached.put(key, (state, members), weight=len(found) + 1)
        return members, request

    async def unused(
        self, page: PageRequest, members: Iterable[Member]
    ) -> AbstractSet[ResourcePath]:
        """Those among the members of a pod that every new pod has and that are still empty. Raises
        ServerTrouble."""
        found = set()
        for each in members:
            if each.is_container and each.name in OF_NEW_POD:
                request = page.operation("GET", each.path)
                try:
                    inside = await self._resources.members(request, limit=1)
                except (AccessDenied, NotAuthenticated, NotFound):
                    continue
                if not inside.members:
                    found.add(each.path)
        return found


_KINDS: Final = MappingProxyType(
    {
        Kind.FOLDER: N_("Folder"),
        Kind.LINKED_DATA: N_("Data"),
        Kind.IMAGE: N_("Picture"),
        Kind.VIDEO: N_("Video"),
        Kind.AUDIO: N_("Audio"),
        Kind.PDF: N_("PDF"),
        Kind.MARKDOWN: N_("Markdown"),
        Kind.TABLE: N_("Table"),
        Kind.DOCUMENT: N_("Document"),
        Kind.SPREADSHEET: N_("Spreadsheet"),
        Kind.PRESENTATION: N_("Presentation"),
        Kind.SOURCE: N_("Source code"),
        Kind.TEXT: N_("Text"),
        Kind.ARCHIVE: N_("Archive"),
        Kind.OTHER: N_("File"),
    }
)
_REACHES: Final = MappingProxyType(
    {
        Audience.OWNER: N_("Only the owner"),
        Audience.PEOPLE: N_("Certain people"),
        Audience.SIGNED_IN: N_("Anyone signed in"),
        Audience.EVERYONE: N_("Everyone"),
    }
)
_MAX_CHARACTERS: Final = 60


def kind_name(kind: Kind) -> str:
    """The name of a kind of content."""
    return _(_KINDS[kind])


def reach_name(reach: Audience, *, owns: bool) -> str:
    """Who can see something; ``owns`` if the person who reads it is the owner."""
    return _("Only you") if owns and reach is Audience.OWNER else _(_REACHES[reach])


def shown_agent(web_id: str, *, own: str | None, base_url: str) -> str:
    """What an agent is called: the name of the pod on this server, the host elsewhere."""
    if web_id == own:
        return _("You")
    try:
        url = urlsplit(web_id)
    except ValueError:
        return web_id[:_MAX_CHARACTERS]
    first = unquote(url.path.strip("/").partition("/")[0])
    if web_id.startswith(f"{base_url}/") and first:
        return first[:_MAX_CHARACTERS]
    return (url.netloc or web_id)[:_MAX_CHARACTERS]


ICONS: Final = tuple(each.value for kinds in (Kind, Audience) for each in kinds)
"""The icons that rows refer to, as the symbols ``i-<name>``: the page has each of them once."""


class RowWriter:
    """Writes the rows of one list in the language of the current request."""

    def __init__(
        self,
        *,
        grid: bool,
        owns: bool,
        reaches: Mapping[ResourcePath, Audience | None],
        authors: Mapping[ResourcePath, str],
        everyone_lists: bool,
        picture: Callable[[Metadata], str | None],
        starred: AbstractSet[ResourcePath],
    ) -> None:
        """``reaches`` says how far the right to read each member reaches, ``authors`` who is shown
        as having changed it; ``owns`` if the container is the person's own, ``everyone_lists`` if
        the public may see what is in it. ``picture`` gives the address of a small picture,
        ``starred`` are the paths with a star of the person."""
        self._starred = starred
        self._star = f'<span class="star" role="img" aria-label="{escape(_("Starred"))}">★</span>'
        self._picture = picture
        self._grid = grid
        self._reaches = reaches
        self._authors = authors
        self._select = escape(_("Select %(name)s"))
        self._actions = escape(_("Actions for %(name)s"))
        self._pictures = {
            kind: f'<span class="picture kind-{kind.value}">{_icon(kind.value)}</span>'
            for kind in Kind
        }
        self._types = {kind: escape(kind_name(kind)) for kind in Kind}
        self._reach_cells: dict[Audience | None, str] = {None: ""}
        self._reach_cells.update(
            {each: _reach_cell(each, owns=owns, everyone_lists=everyone_lists) for each in Audience}
        )

    def row(self, member: Member) -> Markup:
        """One row, or one tile of the grid."""
        metadata = member.metadata
        name = escape(member.name)
        kind = (
            Kind.FOLDER
            if member.is_container
            else kind_of(essence(metadata.content_type), member.name)
        )
        picture = self._pictures[kind]
        address = self._picture(metadata) if kind is Kind.IMAGE else None
        if address is not None:
            picture = (
                f'<span class="picture kind-image"><img src="{escape(address)}" '
                'alt="" loading="lazy" decoding="async"></span>'
            )
        box = (
            f'<input type="checkbox" name="name" value="{escape(segment_name(member.path))}" '
            f'form="selection" aria-label="{self._select % {"name": name}}">'
        )
        page = escape(files_url(member.path))
        actions = (
            f'<button class="do" form="of-row" formaction="{escape(actions_url(member.path))}" '
            f'aria-label="{self._actions % {"name": name}}">⋯</button>'
        )
        title = f'<span class="title">{name}</span>'
        if member.path in self._starred:
            title += self._star
        if self._grid:
            written = (
                f'<li class="tile" data-name="{name}">{box}'
                f'<a href="{page}">{picture}{title}</a>{actions}</li>\n'
            )
        else:
            written = (
                f'<tr data-name="{name}"><td class="pick">{box}</td>'
                f'<td class="name"><a href="{page}">{picture}'
                f"<span>{title}{self._rest(member, kind)}"
                f'<td class="do">{actions}</td></tr>\n'
            )
        return Markup(written)  # noqa: S704 - all that comes from the pod is escaped above

    def _rest(self, member: Member, kind: Kind) -> str:
        """The row from the end of the name on."""
        size = "" if member.is_container else escape(size_text(member.metadata.size_bytes))
        changed_ms = last_modified_ms(member.metadata)
        author = self._authors.get(member.path)
        by = f' <span class="quiet author">{escape(author)}</span>' if author else ""
        return (
            f'<span class="narrow-only quiet">{size}{" · " if size else ""}'
            f'<time datetime="{iso_time(changed_ms)}" data-relative>'
            f"{escape(date_text(changed_ms))}</time></span></span></a></td>"
            f'<td class="reach">{self._reach_cells[self._reaches[member.path]]}</td>'
            f'<td class="wide-only quiet">{self._types[kind]}</td>'
            f'<td class="wide-only changed"><time datetime="{iso_time(changed_ms)}" data-relative>'
            f"{escape(moment_text(changed_ms))}</time>{by}</td>"
            f'<td class="number">{size}</td>'
        )


def _icon(name: str) -> str:
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{name}"/></svg>'


def _reach_cell(reach: Audience, *, owns: bool, everyone_lists: bool) -> str:
    text = escape(reach_name(reach, owns=owns))
    if not everyone_lists or reach is Audience.EVERYONE:
        return f'<span title="{text}">{_icon(reach.value)}<span class="label">{text}</span></span>'
    listed = escape(_("Everyone can see that it exists"))
    return (
        f'<span title="{text}. {listed}.">{_icon(reach.value)}'
        f'<span class="label">{text}<br>{listed}</span></span>'
    )
