"""``/.pages/activity``: what has happened in the person's pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final
from urllib.parse import unquote, urlencode

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, encode_segment, parent_container, parse_path
from podstead.resources.activity import ChangeFilter, ChangeKind, PastChange, PodActivity
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import ACTIVITY, files_url
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import _
from podstead.web.pod_pages.account.agents import agent_text
from podstead.web.pod_pages.account.pods import chosen_pod
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.response import Response
from podstead.web.routes import route

PAGE_CHANGES: Final = 50
NOBODY: Final = "nobody"
"""Stands in the query for changes without an agent."""
_DAY_MS: Final = 86_400_000


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


@dataclass(frozen=True, slots=True)
class Typed:
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

    @route(addresses.ACTIVITY, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound, BadRequest."""
        person = page.signed_in()
        pod = chosen_pod(page, person)
        fields = ("kind", "folder", "who", "since", "until")
        typed = Typed(*(page.query_text(name).strip() for name in fields))
        found = await self.activity.page(
            page.identity,
            read_filter(typed, root=pod.root),
            before=_number(page.query_text("before")),
            limit=PAGE_CHANGES,
        )
        shown = [
            shown_change(change, person, pod.root, self.site.base_url) for change in found.changes
        ]
        more = None
        if found.before is not None:
            more = f"{ACTIVITY}?{typed.query(pod=pod.name, before=str(found.before))}"
        return self.site.page(
            page,
            "account/activity.html",
            pod=pod,
            typed=typed,
            is_filtered=typed != Typed("", "", "", "", ""),
            kinds=list(ChangeKind),
            who=self._who(shown, person, typed),
            nobody=NOBODY,
            days=[
                (day * _DAY_MS, list(changes))
                for day, changes in groupby(shown, key=lambda each: each.at_ms // _DAY_MS)
            ],
            more=more,
            is_whole=len(shown) == PAGE_CHANGES or found.before is None,
            by_agent=lambda agent: f"{ACTIVITY}?{urlencode({'pod': pod.name, 'who': agent})}",
        )

    def _who(
        self, shown: Sequence[ShownChange], person: Person, typed: Typed
    ) -> list[tuple[str, str]]:
        """Whom the filter offers: the person, the agents on the page, and the chosen one."""
        offered = {person.web_id: _("You"), **{each.agent: each.who for each in shown}}
        if typed.who and typed.who not in offered:
            agent = None if typed.who == NOBODY else typed.who
            offered[typed.who] = agent_text(
                agent, viewer=person.identity, base_url=self.site.base_url
            )
        offered.setdefault(NOBODY, _("Somebody who was not signed in"))
        return list(offered.items())


def shown_change(
    change: PastChange, person: Person, root: ResourcePath, base_url: str
) -> ShownChange:
    """A change as the pages show it to the owner of the pod."""
    above = parent_container(change.path) or root
    return ShownChange(
        name=shown_name(change.path) or change.path,
        folder=unquote(above[len(root) :]).strip("/"),
        address=files_url(change.path) if change.exists else None,
        is_container=change.path.endswith("/"),
        kind=change.kind,
        origin="" if change.origin is None else _former_name(change.origin, above, root),
        who=agent_text(change.agent, viewer=person.identity, base_url=base_url),
        agent=NOBODY if change.agent is None else change.agent,
        at_ms=change.at_ms,
    )


def _former_name(origin: ResourcePath, folder: ResourcePath, root: ResourcePath) -> str:
    if parent_container(origin) == folder:
        return shown_name(origin)
    return unquote(origin.removeprefix(root)).strip("/")


def read_filter(typed: Typed, *, root: ResourcePath) -> ChangeFilter:
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
        until_ms=None if until_ms is None else until_ms + _DAY_MS,
    )


def _folder(typed: str, root: ResourcePath) -> ResourcePath:
    """The folder of a pod with this name as people read it, such as “photos/2026”."""
    names = [each for each in typed.split("/") if each]
    segments = [encode_segment(unquote(each).encode()) for each in names]
    return parse_path(f"{root}{'/'.join(segments)}{'/' if segments else ''}".encode())


def _day_ms(typed: str) -> int | None:
    if not typed:
        return None
    try:
        day = datetime.strptime(typed, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadRequest(WebCodes.DATE_MALFORMED) from error
    return int((day - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def _number(typed: str) -> int | None:
    if not typed:
        return None
    if not typed.isascii() or not typed.isdigit() or len(typed) > 18:
        raise BadRequest("The field before must be a number")
    return int(typed)
