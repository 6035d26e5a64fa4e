"""``/.pages/why/<path>``: why somebody can, or cannot, do something with a resource."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from podstead.core.errors import RateLimited
from podstead.core.identifiers import is_container
from podstead.resources.sharing.documents import RulesOutOfReach
from podstead.resources.sharing.people import NobodyFound, PeopleDirectory, UnusableIri
from podstead.resources.sharing.service import Answer, SharingService
from podstead.wac.acl import origin_of
from podstead.wac.modes import Mode
from podstead.wac.sharing.access import Reason
from podstead.wac.sharing.rules import AccessRule, Grantee, GranteeKind, group
from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.sharing.out_of_reach import out_of_reach_page
from podstead.web.pod_pages.sharing.sentences import MODES, Names, NamesByReader, shown_role
from podstead.web.response import Response
from podstead.web.routes import REST, route

_NOBODY: Final = N_("Nobody was found by this name, address or WebID.")
_NO_ORIGIN: Final = N_(
    "This is not the address of an application: one looks like https://app.example."
)
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
    names: NamesByReader

    @route(addresses.WHY + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        target = page.target
        try:
            state = await self.sharing.view(page.identity, target)
        except RulesOutOfReach as error:
            return out_of_reach_page(self.site.renderer, page, error)
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
            except (NobodyFound, RateLimited):
                problem = _(_NOBODY)
            except UnusableIri:
                problem = _(_NO_ORIGIN) if app and _is_unusable(app) else _(_NOBODY)
        names = await self.names.of(page.identity, () if answer is None else _grantees(answer))
        return self.site.page(
            page,
            "sharing/why.html",
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
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
            role=None if answer is None else shown_role(answer.explanation.modes),
            modes=[] if answer is None else _shown(answer, names),
            decided_by=None if answer is None else answer.decided_by,
            folder=None if answer is None else shown_name(answer.decided_by),
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


def _shown(answer: Answer, names: Names) -> list[ShownMode]:
    return [
        ShownMode(
            _(MODES[mode]),
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
    """The origin of an application; ``None`` without one. Raises UnusableIri."""
    if not app:
        return None
    if _is_unusable(app):
        raise UnusableIri
    return app


def _is_unusable(app: str) -> bool:
    return origin_of(app) is None
