"""``/.pages/shared``: what others share with a person, and what the person shares with others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from podstead.core.errors import NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath, canonical_url, is_container
from podstead.resources.activity import PastChange, PodActivity
from podstead.resources.sharing.access_requests import AccessRequests
from podstead.resources.sharing.service import SharingService, SharingState
from podstead.resources.sharing.shared import SharedBy, SharedLists, SharedResource
from podstead.wac.modes import Mode
from podstead.wac.sharing.access import AccessList, Scope
from podstead.wac.sharing.rules import GranteeKind
from podstead.web import codes, response, routes
from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import _
from podstead.web.sharing import share_page, views

WITH_ME: Final = "with-me"
BY_ME: Final = "by-me"
ASKED: Final = "requests"
GROUPS_TAB: Final = "groups"


def shared_tabs(page: PageRequest, current: str) -> list[tuple[str, str, bool]]:
    """Address, title and whether it is the ``current`` one; none for a person without a pod, who
    has only one list. Raises NotAuthenticated."""
    if not page.signed_in().pods:
        return []
    by_me = f"{addresses.SHARED}?{urlencode({'view': BY_ME})}"
    return [
        (addresses.SHARED, _("Shared with me"), current == WITH_ME),
        (by_me, _("Shared by me"), current == BY_ME),
        (addresses.REQUESTS, _("Requests for access"), current == ASKED),
        (addresses.GROUPS, _("Groups"), current == GROUPS_TAB),
    ]


_SHOWN_PEOPLE: Final = 20


@dataclass(frozen=True, slots=True)
class ShownShared:
    """A resource that others share with the person."""

    name: str
    address: str | None
    """The page about it; ``None`` if the person cannot read it."""
    is_container: bool
    place: str
    storage: ResourcePath
    from_whom: str
    role: str


@dataclass(frozen=True, slots=True)
class ShownGrant:
    """What somebody can do with one of the person's resources, with what the form that ends it
    sends. Without a ``token`` it cannot be ended here."""

    name: str
    text: str
    has_ended: bool = False
    last: "LastChange | None" = None
    token: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastChange:
    """What somebody did last."""

    kind: str
    name: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class ShownOwn:
    """One of the person's resources that others can access."""

    name: str
    address: str
    share_address: str
    is_container: bool
    place: str
    grants: Sequence[ShownGrant]
    more: int
    sections: Sequence[tuple[str, Mapping[str, object]]] = ()
    """The lists of agents that have sections of their own on the sharing page."""
    rules: Sequence[views.ShownRule] = ()


@dataclass(frozen=True, slots=True)
class SharedPage:
    """Shows both lists."""

    site: Site
    lists: SharedLists
    requests: AccessRequests
    names: views.NamesByReader
    sharing: SharingService
    activity: PodActivity
    sections: Sequence[share_page.SharingSection] = ()

    @routes.route(addresses.SHARED, "GET")
    async def get(self, page: PageRequest) -> response.Response:
        person = page.signed_in()
        is_complete = await self.lists.is_complete()
        if page.query_text("view") == BY_ME and person.pods:
            return await self._by_person(page, is_complete=is_complete)
        storage = _storage(page.query_text("from"))
        found = await self.lists.shared_with(
            person.identity, own=person.pods, storage=storage, after=page.query_text("after")
        )
        # Who has a pod here finds the answers among the requests.
        answers = () if person.pods else await self.requests.stored_answers(person.identity)
        names = await self.names.of(person.identity, ())
        return self.site.page(
            page,
            "shared/shared.html",
            views=shared_tabs(page, WITH_ME),
            answers=[views.shown_answer(each, names) for each in answers],
            is_complete=is_complete,
            only_of=None if storage is None else addresses.shown_name(storage),
            shared=[shown_shared(each) for each in found.resources],
            more_of=[
                (addresses.shown_name(each), _address({"from": each})) for each in found.more_of
            ],
            more=_more({"from": storage or "", "after": found.after or ""}, found.after),
            own=None,
        )

    async def _by_person(self, page: PageRequest, *, is_complete: bool) -> response.Response:
        person = page.signed_in()
        pod = _storage(page.query_text("pod")) or person.pods[0]
        if pod not in person.pods:
            raise NotFound(codes.WebCodes.OTHERS_POD)
        found, after = await self.lists.shared_by(
            person.identity, pod, after=page.query_text("after")
        )
        found = sorted(found, key=lambda each: addresses.is_for_apps(each.resource))
        states = [await self._state(page, each) for each in found]
        entries = [entry for each in states for entry in each.access.entries]
        names = await self.names.of(page.identity, (each.grantee for each in entries))
        agents = {each.grantee.iri for each in entries if each.grantee.kind is GranteeKind.AGENT}
        changes = await self.activity.latest(person.identity, pod, agents)
        last = {agent: _last(change) for agent, change in changes.items()}
        return self.site.page(
            page,
            "shared/shared.html",
            views=shared_tabs(page, BY_ME),
            is_complete=is_complete,
            only_of=None,
            shared=None,
            more_of=[],
            own=[
                await self._own(page, each, state, names, last)
                for each, state in zip(found, states, strict=True)
            ],
            last=last,
            back=page.address,
            more=_more({"view": BY_ME, "pod": pod, "after": after or ""}, after),
        )

    async def _state(self, page: PageRequest, shared: SharedBy) -> SharingState:
        """The rules of a resource; what the index says about them if they cannot be shown."""
        try:
            return await self.sharing.view(page.identity, shared.resource)
        except RequestRefused:
            access = AccessList(shared.resource, None, None, shared.entries, ())
            return SharingState(access, "", can_inherit=False, now_ms=0)

    async def _own(
        self,
        page: PageRequest,
        shared: SharedBy,
        state: SharingState,
        names: views.Names,
        last: Mapping[str, LastChange],
    ) -> ShownOwn:
        path, shown = shared.resource, views.shown_entries(state, names)
        sections = [
            (each.list_template, await each.values(page, state))
            for each in self.sections
            if any(each.shows(entry.iri) for entry in shown)
        ]
        people = [
            entry
            for entry in shown
            if not entry.is_owner and not any(each.shows(entry.iri) for each in self.sections)
        ]
        listed = people[:_SHOWN_PEOPLE]
        return ShownOwn(
            name=addresses.shown_name(path),
            address=addresses.files_url(path),
            share_address=addresses.share_url(path),
            is_container=is_container(path),
            place=_place(path),
            grants=[_grant(entry, _token(entry, state), last) for entry in listed],
            more=max(len(people), shared.total if not state.token else 0) - len(listed),
            sections=sections,
            rules=views.shown_rules(state.access.special),
        )


def _token(entry: views.ShownEntry, state: SharingState) -> str:
    """Empty where the end of the access would break what applications need."""
    is_for_everyone = entry.kind == GranteeKind.EVERYONE.value
    is_needed = is_for_everyone and addresses.is_for_apps(state.access.resource)
    return "" if is_needed else state.token


def _grant(entry: views.ShownEntry, token: str, last: Mapping[str, LastChange]) -> ShownGrant:
    where = entry.scope_text if entry.scope != Scope.BOTH.value else ""
    fields = {"kind": entry.kind, "grantee": entry.iri, "was": entry.scope, **entry.moments}
    return ShownGrant(
        name=entry.name,
        text=f"{entry.clause} · {where}" if where else entry.clause,
        has_ended=entry.has_ended,
        last=last.get(entry.iri),
        token=token,
        fields=fields,
    )


def _last(change: PastChange) -> LastChange:
    return LastChange(
        change.kind.value, addresses.shown_name(change.path) or change.path, change.at_ms
    )


def shown_shared(shared: SharedResource) -> ShownShared:
    """A resource that others share with the person, as pages show it."""
    path = shared.resource
    role = views.shown_role(shared.modes)
    if shared.here != shared.inside and is_container(path) and shared.modes:
        scope = Scope.THIS if shared.here else Scope.INSIDE
        role = f"{role} · {_(views.SCOPES[scope])}"
    return ShownShared(
        name=addresses.shown_name(path),
        address=addresses.files_url(path) if Mode.READ in shared.here else None,
        is_container=is_container(path),
        place=_place(path),
        storage=shared.storage,
        from_whom=addresses.shown_name(shared.storage),
        role=role,
    )


def _place(path: ResourcePath) -> str:
    """Where a resource is: the names of the folders above it."""
    return " / ".join(crumb.name for crumb in addresses.breadcrumb(path)[:-1])


def _address(fields: dict[str, str]) -> str:
    return f"{addresses.SHARED}?{urlencode({key: value for key, value in fields.items() if value})}"


def _more(fields: dict[str, str], after: str | None) -> str | None:
    return None if after is None else _address(fields)


def _storage(text: str) -> ResourcePath | None:
    """The root container of a storage that the address of the page names, if it can be one."""
    is_root = text.count("/") == 2 and text.startswith("/") and text.endswith("/")
    if not is_root or canonical_url(f"http://host{text}") != f"http://host{text}":
        return None
    return ResourcePath(text)
