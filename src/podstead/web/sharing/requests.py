"""``/.pages/why``, ``/.pages/ask`` and ``/.pages/requests``: why somebody can do something with a
resource or not, and how people ask for access and are answered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from podstead.core.errors import BadRequest, NotFound, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container, parse_path
from podstead.resources.codes import ResourceCodes
from podstead.resources.sharing import access_requests
from podstead.resources.sharing.documents import RulesOutOfReach
from podstead.resources.sharing.offers import MAX_MESSAGE_CHARS
from podstead.resources.sharing.people import NobodyFound, PeopleDirectory
from podstead.resources.sharing.service import Answer, SharingService
from podstead.wac.acl import origin_of
from podstead.wac.modes import Mode
from podstead.wac.sharing.access import Reason
from podstead.wac.sharing.rules import ROLE_MODES, AccessRule, Grantee, GranteeKind, Role, group
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages, add_refusals
from podstead.web.pages.notifier import Notifier
from podstead.web.pages.rendering import refusal_message, refusal_text
from podstead.web.pages.request import PageRequest, Person, Waiting
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, route
from podstead.web.sharing import shared, views
from podstead.web.sharing.reminders import Reminders

_ANYBODY: Final = "anybody"


@dataclass(frozen=True, slots=True)
class ShownMode:
    """Whether a mode is held, and why."""

    title: str
    held: bool
    reasons: list[tuple[str, str]]
    """Each with the name of the rule in the ACL, which may be empty."""


@dataclass(frozen=True, slots=True)
class WhyPage:
    """Explains the decisions of the gate to those who manage a resource."""

    site: Site
    sharing: SharingService
    people: PeopleDirectory
    names: views.NamesByReader

    @route(addresses.WHY + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        target = page.target
        try:
            state = await self.sharing.view(page.identity, target)
        except RulesOutOfReach as error:
            return views.out_of_reach_page(self.site.renderer, page, error)
        who, app = page.query_text("who").strip(), page.query_text("app").strip()
        asked = bool(who or app or page.query_text("ask"))
        anybody = page.query_text("kind") == _ANYBODY
        inside = page.query_text("about") == "inside" and is_container(target)
        answer, person, problem = None, None, None
        if asked:
            try:
                person = None if anybody else await self._person(page, who)
                answer = await self.sharing.explain(
                    page.identity, target, person=person, origin=_origin(app), inside=inside
                )
            except (BadRequest, NobodyFound, RateLimited) as error:
                problem = refusal_text(error)
        names = await self.names.of(page.identity, () if answer is None else _grantees(answer))
        return self.site.page(
            page,
            "sharing/why.html",
            target=target,
            name=addresses.shown_name(target),
            breadcrumb=addresses.breadcrumb(target),
            is_folder=is_container(target),
            who=who,
            app=app,
            anybody=anybody,
            inside=inside,
            known=[
                entry.grantee.iri
                for entry in state.access.entries
                if entry.grantee.kind is GranteeKind.AGENT
            ],
            problem=problem,
            person_name=None if person is None else names.iri(person),
            person_iri=person,
            role=None if answer is None else views.shown_role(answer.explanation.modes),
            modes=[] if answer is None else _shown(answer, names),
            decided_by=None if answer is None else answer.decided_by,
            folder=None if answer is None else addresses.shown_name(answer.decided_by),
            hidden_groups=[]
            if answer is None
            else [names.group(each) for each in answer.hidden_groups],
            is_inherited=answer is not None and answer.decided_by != target,
        )

    async def _person(self, page: PageRequest, who: str) -> str | None:
        """Whom the question is about: without a name, the person who asks it."""
        identity = page.identity
        if identity is None:
            return None
        return identity.iri if not who else await self.people.find(identity, who)


def _grantees(answer: Answer) -> Iterable[Grantee]:
    reasons = answer.explanation.reasons
    named = [reason.grantee for reason in reasons if reason.grantee is not None]
    return (*named, *map(group, answer.hidden_groups))


def _shown(answer: Answer, names: views.Names) -> list[ShownMode]:
    return [
        ShownMode(
            _(views.MODES[mode]),
            mode in answer.explanation.modes,
            _distinct(
                (names.reason(reason, answer.decided_by), _rule_place(reason))
                for reason in answer.explanation.about(mode)
            ),
        )
        for mode in (Mode.READ, Mode.APPEND, Mode.WRITE, Mode.CONTROL)
    ]


def _distinct(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(reasons))


def _rule_place(reason: Reason) -> str:
    """The address of the rule: its document, and its name there."""
    rule: AccessRule | None = reason.rule
    return (
        ""
        if rule is None or rule.name is None
        else unquote(urlsplit(rule.name)._replace(scheme="", netloc="").geturl())
    )


def _origin(app: str) -> str | None:
    """The origin of an application; ``None`` without one. Raises BadRequest."""
    if not app:
        return None
    if origin_of(app) is None:
        raise BadRequest(WebCodes.NO_ADDRESS_OF_APPLICATION)
    return app


add_flash_messages(
    Tone.DONE,
    access_requested=N_("Your request was sent to the owner."),
    request_refused=N_("The request was removed."),
    answer_removed=N_("The answer was removed."),
)
add_refusals(ResourceCodes.HAS_ACCESS, ResourceCodes.NO_REQUESTS_HERE)


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request for access as the list shows it. Without a ``token`` it cannot be allowed."""

    request: access_requests.AccessRequest
    actor: str
    role_text: str
    role: str
    name: str
    token: str | None


@dataclass(frozen=True, slots=True)
class AskPage:
    """Sends a request for access to the owner of a resource."""

    site: Site
    requests: access_requests.AccessRequests

    @route(addresses.ASK + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The form. It is the same whether or not the resource exists. Raises NotAuthenticated."""
        page.signed_in()
        return self.site.page(
            page,
            "sharing/ask.html",
            target=page.target,
            name=addresses.shown_name(page.target),
            max_message=MAX_MESSAGE_CHARS,
        )

    @route(addresses.ASK + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form()
        target = page.target
        role = Role.EDIT if sent.text("role") == Role.EDIT.value else Role.VIEW
        message = sent.text("message").strip()[:MAX_MESSAGE_CHARS]
        try:
            await self.requests.ask(page.identity, target, ROLE_MODES[role], message=message)
        except access_requests.HasAccess as error:
            return self.site.see_other(addresses.files_url(target), refusal_message(error))
        except access_requests.NoInbox as error:
            return self.site.see_other(addresses.ask_url(target), refusal_message(error))
        return self.site.see_other(addresses.ask_url(target), FlashMessage("access-requested"))


@dataclass(frozen=True, slots=True)
class RequestsPage:
    """Shows people who asks them for access to what, and what others have answered."""

    site: Site
    requests: access_requests.AccessRequests
    requests_waiting: access_requests.PendingRequests
    sharing: SharingService
    names: views.Names
    reminders: Reminders
    notifier: Notifier

    @route(addresses.REQUESTS, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        found: list[access_requests.AccessRequest] = []
        answers = [*await self.requests.stored_answers(person.identity)]
        for pod in person.pods:
            try:
                answers += await self.requests.answers(person.identity, pod)
                found += await self.requests.pending(person.identity, pod)
            except access_requests.NoInbox:
                continue
        return self.site.page(
            page,
            "sharing/requests.html",
            views=shared.shared_tabs(page, shared.ASKED),
            requests=[await self._shown(person, request) for request in found],
            answers=[views.shown_answer(answer, self.names) for answer in answers],
            reminders=views.shown_reminders(await self.reminders.on(page), self.names),
        )

    async def count(self, person: Person, opened: str) -> Waiting:
        """What waits for a person who opens the page at a path. Raises ServerTrouble."""
        pending = [len(await self.requests_waiting.of(person.identity, pod)) for pod in person.pods]
        reminders = await self.reminders.count(person)
        unread = await self.notifier.unread(person, opened=opened)
        return Waiting(sum(pending), reminders, unread)

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

    async def _shown(self, person: Person, request: access_requests.AccessRequest) -> ShownRequest:
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
            views.shown_role(request.modes),
            views.offered_role(request.modes),
            addresses.shown_name(request.resource),
            token,
        )

    @route(addresses.REQUESTS, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Remove a request. Raises NotAuthenticated, AccessDenied, NotFound."""
        sent = await page.form()
        person = page.signed_in()
        if sent.text("kept"):
            await self.requests.remove_stored_answer(person.identity, sent.text("kept"))
            back = addresses.REQUESTS if person.pods else addresses.SHARED
            return self.site.see_other(back, FlashMessage("answer-removed"))
        if sent.text("answer"):
            await self.requests.forget(
                person.identity, parse_path(sent.text("answer").encode("ascii", "replace"))
            )
            return self.site.see_other(addresses.REQUESTS, FlashMessage("answer-removed"))
        path: ResourcePath = parse_path(sent.text("request").encode())
        request = await self.requests.read(person.identity, path)
        if request is None:
            raise NotFound(WebCodes.REQUEST_GONE)
        await self.requests.answer(person.identity, request, allowed=False)
        back = addresses.local_address(sent.text("next")) or addresses.REQUESTS
        return self.site.see_other(back, FlashMessage("request-refused"))
