"""``/.pages/ask/<path>``: asking for access. ``/.pages/requests``: who has asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.errors import NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.resources.sharing.access_requests import (
    AccessRequest,
    AccessRequests,
    HasAccess,
    NoInbox,
    PendingRequests,
)
from podstead.resources.sharing.offers import MAX_MESSAGE_CHARS
from podstead.resources.sharing.service import SharingService
from podstead.wac.sharing.rules import ROLE_MODES, Role
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import REQUESTS, SHARED, ask_url, files_url, local_address
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.pod_pages.shared.shared_tabs import ASKED, shared_tabs
from podstead.web.pod_pages.sharing.answers import shown_answer
from podstead.web.pod_pages.sharing.sentences import Names, shown_role
from podstead.web.pod_pages.sharing.views import offered_role
from podstead.web.response import Response
from podstead.web.routes import REST, route

add_notices(
    Tone.DONE,
    access_requested=N_("Your request was sent to the owner."),
    has_access=N_("You have this access already."),
    request_refused=N_("The request was removed."),
    answer_removed=N_("The answer was removed."),
)
add_notices(
    Tone.PROBLEM,
    no_inbox=N_("The owner takes no requests here. Ask them in another way."),
)


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request for access as the list shows it. Without a ``token`` it cannot be allowed."""

    request: AccessRequest
    actor: str
    role_text: str
    role: str
    name: str
    token: str | None


@dataclass(frozen=True, slots=True)
class AskPage:
    """Sends a request for access to the owner of a resource."""

    site: Site
    requests: AccessRequests

    @route(addresses.ASK + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form. It is the same whether or not the resource exists. Raises NotAuthenticated."""
        page.signed_in()
        return self.site.page(
            page,
            "sharing/ask.html",
            target=page.target,
            name=shown_name(page.target),
            max_message=MAX_MESSAGE_CHARS,
        )

    @route(addresses.ASK + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, RateLimited."""
        sent = await page.form()
        target = page.target
        role = Role.EDIT if sent.text("role") == Role.EDIT.value else Role.VIEW
        message = sent.text("message").strip()[:MAX_MESSAGE_CHARS]
        try:
            await self.requests.ask(page.identity, target, ROLE_MODES[role], message=message)
        except HasAccess:
            return self.site.see_other(files_url(target), Notice("has-access"))
        except NoInbox:
            return self.site.see_other(ask_url(target), Notice("no-inbox"))
        return self.site.see_other(ask_url(target), Notice("access-requested"))


@dataclass(frozen=True, slots=True)
class RequestsPage:
    """Shows people who asks them for access to what, and what others have answered."""

    site: Site
    requests: AccessRequests
    requests_waiting: PendingRequests
    sharing: SharingService
    names: Names

    @route(addresses.REQUESTS, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        person = page.signed_in()
        found: list[AccessRequest] = []
        answers = [*await self.requests.stored_answers(person.identity)]
        for pod in person.pods:
            try:
                answers += await self.requests.answers(person.identity, pod)
                found += await self.requests.pending(person.identity, pod)
            except NoInbox:
                continue
        return self.site.page(
            page,
            "sharing/requests.html",
            views=shared_tabs(page, ASKED),
            requests=[await self._shown(person, request) for request in found],
            answers=[shown_answer(answer, self.names) for answer in answers],
        )

    async def count(self, person: Person) -> int:
        """How many requests wait for a person. Raises ServerTrouble."""
        return sum(
            [len(await self.requests_waiting.of(person.identity, pod)) for pod in person.pods]
        )

    async def waiting(
        self, person: Person, *, limit: int
    ) -> tuple[Sequence[ShownRequest], frozenset[ResourcePath]]:
        """The newest of them, and the notifications of all. Raises ServerTrouble."""
        found = [
            each
            for pod in person.pods
            for each in await self.requests_waiting.of(person.identity, pod)
        ]
        shown = [await self._shown(person, request) for request in found[:limit]]
        return shown, frozenset(request.notification for request in found)

    async def _shown(self, person: Person, request: AccessRequest) -> ShownRequest:
        """A request, with the state of the rules that allowing it would change."""
        try:
            state = await self.sharing.view(person.identity, request.resource)
        except RequestRefused:  # it does not exist, or is not the person's to share
            token = None
        else:
            token = state.token
        return ShownRequest(
            request,
            self.names.iri(request.actor),
            shown_role(request.modes),
            offered_role(request.modes),
            shown_name(request.resource),
            token,
        )

    @route(addresses.REQUESTS, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Remove a request. Raises NotAuthenticated, AccessDenied, NotFound."""
        sent = await page.form()
        person = page.signed_in()
        if sent.text("kept"):
            await self.requests.remove_stored_answer(person.identity, sent.text("kept"))
            back = REQUESTS if person.pods else SHARED
            return self.site.see_other(back, Notice("answer-removed"))
        if sent.text("answer"):
            await self.requests.forget(
                person.identity, parse_path(sent.text("answer").encode("ascii", "replace"))
            )
            return self.site.see_other(REQUESTS, Notice("answer-removed"))
        path: ResourcePath = parse_path(sent.text("request").encode())
        request = await self.requests.read(person.identity, path)
        if request is None:
            raise NotFound(WebCodes.REQUEST_GONE)
        await self.requests.answer(person.identity, request, allowed=False)
        back = local_address(sent.text("next")) or REQUESTS
        return self.site.see_other(back, Notice("request-refused"))
