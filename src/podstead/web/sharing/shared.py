"""``/.pages/shared``: what others share with a person, and what the person shares with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath, canonical_url, is_container
from podstead.resources.sharing.access_requests import AccessRequests
from podstead.resources.sharing.shared import SharedBy, SharedLists, SharedResource
from podstead.wac.modes import Mode
from podstead.wac.sharing.access import AccessEntry, Scope
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import (
    REQUESTS,
    SHARED,
    breadcrumb,
    files_url,
    share_url,
    shown_name,
)
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import _
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sharing.views import SCOPES, Names, NamesByReader, shown_answer, shown_role

WITH_ME: Final = "with-me"
BY_ME: Final = "by-me"
ASKED: Final = "requests"


def shared_tabs(page: PageRequest, current: str) -> list[tuple[str, str, bool]]:
    """Address, title and whether it is the ``current`` one; none for a person without a pod, who
    has only one list. Raises NotAuthenticated."""
    if not page.signed_in().pods:
        return []
    by_me = f"{SHARED}?{urlencode({'view': BY_ME})}"
    return [
        (SHARED, _("Shared with me"), current == WITH_ME),
        (by_me, _("Shared by me"), current == BY_ME),
        (REQUESTS, _("Requests for access"), current == ASKED),
    ]


_SHOWN_PEOPLE: Final = 4


@dataclass(frozen=True, slots=True)
class ShownShared:
    """A resource that others share with the person."""

    name: str
    address: str | None
    """The page about it; ``None`` if the person cannot read it."""
    is_container: bool
    place: str
    from_whom: str
    role: str


@dataclass(frozen=True, slots=True)
class ShownOwn:
    """One of the person's resources that others can access."""

    name: str
    address: str
    share_address: str
    is_container: bool
    place: str
    sentences: Sequence[str]
    more: int


@dataclass(frozen=True, slots=True)
class SharedPage:
    """Shows both lists."""

    site: Site
    lists: SharedLists
    requests: AccessRequests
    names: NamesByReader

    @route(addresses.SHARED, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
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
            answers=[shown_answer(each, names) for each in answers],
            is_complete=is_complete,
            only_of=None if storage is None else shown_name(storage),
            shared=[_shared(each) for each in found.resources],
            more_of=[(shown_name(each), _address({"from": each})) for each in found.more_of],
            more=_more({"from": storage or "", "after": found.after or ""}, found.after),
            own=None,
        )

    async def _by_person(self, page: PageRequest, *, is_complete: bool) -> Response:
        person = page.signed_in()
        pod = _storage(page.query_text("pod")) or person.pods[0]
        if pod not in person.pods:
            raise NotFound(WebCodes.OTHERS_POD)
        found, after = await self.lists.shared_by(
            person.identity, pod, after=page.query_text("after")
        )
        named = (entry.grantee for each in found for entry in each.entries[:_SHOWN_PEOPLE])
        names = await self.names.of(person.identity, named)
        return self.site.page(
            page,
            "shared/shared.html",
            views=shared_tabs(page, BY_ME),
            is_complete=is_complete,
            only_of=None,
            shared=None,
            more_of=[],
            own=[_own(each, names) for each in found],
            more=_more({"view": BY_ME, "pod": pod, "after": after or ""}, after),
        )


def _own(shared: SharedBy, names: Names) -> ShownOwn:
    path = shared.resource
    shown = shared.entries[:_SHOWN_PEOPLE]
    people = len({entry.grantee for entry in shown})
    return ShownOwn(
        name=shown_name(path),
        address=files_url(path),
        share_address=share_url(path),
        is_container=is_container(path),
        place=_place(path),
        sentences=[_sentence(entry, path, names) for entry in shown],
        more=shared.total - people,
    )


def _sentence(entry: AccessEntry, path: ResourcePath, names: Names) -> str:
    clause = names.clause(entry)
    if not is_container(path) or entry.scope is Scope.BOTH:
        return clause
    return f"{clause} · {_(SCOPES[entry.scope])}"


def _shared(shared: SharedResource) -> ShownShared:
    path = shared.resource
    role = shown_role(shared.modes)
    if shared.here != shared.inside and is_container(path) and shared.modes:
        scope = Scope.THIS if shared.here else Scope.INSIDE
        role = f"{role} · {_(SCOPES[scope])}"
    return ShownShared(
        name=shown_name(path),
        address=files_url(path) if Mode.READ in shared.here else None,
        is_container=is_container(path),
        place=_place(path),
        from_whom=shown_name(shared.storage),
        role=role,
    )


def _place(path: ResourcePath) -> str:
    """Where a resource is: the names of the folders above it."""
    return " / ".join(crumb.name for crumb in breadcrumb(path)[:-1])


def _address(fields: dict[str, str]) -> str:
    return f"{SHARED}?{urlencode({key: value for key, value in fields.items() if value})}"


def _more(fields: dict[str, str], after: str | None) -> str | None:
    return None if after is None else _address(fields)


def _storage(text: str) -> ResourcePath | None:
    """The root container of a storage that the address of the page names, if it can be one."""
    is_root = text.count("/") == 2 and text.startswith("/") and text.endswith("/")
    if not is_root or canonical_url(f"http://host{text}") != f"http://host{text}":
        return None
    return ResourcePath(text)
