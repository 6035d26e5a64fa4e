"""What the templates of the sharing pages show: plain values, made from the service's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath, is_container
from podstead.rdf.graph import Iri, Object
from podstead.resources.sharing.preview import Difference
from podstead.resources.sharing.service import Preview, SharingState
from podstead.wac.modes import Mode, Modes
from podstead.wac.sharing.access import AccessEntry, Scope
from podstead.wac.sharing.rules import EVERYONE, ROLE_MODES, AccessRule, Role, agent
from podstead.web.pages.texts import _
from podstead.web.pod_pages.sharing.sentences import (
    ROLES,
    SCOPES,
    Names,
    shown_peculiarities,
    shown_role,
)


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One line of the list of people with access."""

    kind: str
    iri: str
    name: str
    sentence: str
    role: str | None
    """The value of the choice; ``None`` if the modes are no role."""
    role_text: str
    scope: str
    scope_text: str
    is_owner: bool


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule that is kept as it is."""

    name: str
    why: str
    statements: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """What changes for somebody."""

    name: str
    iri: str
    before: str
    after: str
    gains: bool


@dataclass(frozen=True, slots=True)
class ShownPart:
    """The differences on one part of a folder, or on a document."""

    title: str
    changes: Sequence[ShownDifference]
    unchanged: int


def shown_entries(state: SharingState, names: Names) -> list[ShownEntry]:
    """Everybody with access by rules that can be edited; the owner is shown apart."""
    owner = None if state.access.owner is None else agent(state.access.owner)
    container = is_container(state.access.resource)
    return [
        _entry(entry, names, is_owner=entry.grantee == owner, container=container)
        for entry in state.access.entries
    ]


def everyone_lists(state: SharingState) -> bool:
    """Whether the resource is a container whose members everyone can see."""
    return is_container(state.access.resource) and any(
        entry.grantee == EVERYONE and Mode.READ in entry.modes and entry.scope.includes_this
        for entry in state.access.entries
    )


def _entry(entry: AccessEntry, names: Names, *, is_owner: bool, container: bool) -> ShownEntry:
    return ShownEntry(
        kind=entry.grantee.kind.value,
        iri=entry.grantee.iri,
        name=names.grantee(entry.grantee),
        sentence=names.sentence(entry),
        role=entry.role.value if entry.role in ROLE_MODES else None,
        role_text=shown_role(entry.modes),
        scope=entry.scope.value,
        scope_text=_(SCOPES[entry.scope]) if container else "",
        is_owner=is_owner,
    )


def shown_rules(rules: Sequence[AccessRule]) -> list[ShownRule]:
    """The rules that are kept, with all their statements."""
    return [
        ShownRule(
            name=(rule.name or "").partition("#")[2] or (rule.name or ""),
            why=shown_peculiarities(rule.peculiarities),
            statements=[
                (_short(predicate), _short(each))
                for predicate, objects in rule.description.items()
                for each in objects
            ],
        )
        for rule in rules
    ]


def shown_parts(preview: Preview, names: Names) -> list[ShownPart]:
    """What changes, in one part if the folder and its contents change alike."""
    if not preview.inside:
        return [_part("", preview.here, names)]
    if preview.here == preview.inside:
        return [_part(_(SCOPES[Scope.BOTH]), preview.here, names)]
    return [
        _part(_(SCOPES[Scope.THIS]), preview.here, names),
        _part(_(SCOPES[Scope.INSIDE]), preview.inside, names),
    ]


def _part(title: str, differences: Sequence[Difference], names: Names) -> ShownPart:
    changes = [
        ShownDifference(
            name=names.grantee(each.grantee),
            iri=each.grantee.iri,
            before=shown_role(each.before),
            after=shown_role(each.after),
            gains=bool(each.after - each.before),
        )
        for each in differences
        if each.is_change
    ]
    return ShownPart(title, changes, len(differences) - len(changes))


def role_choices() -> list[tuple[str, str]]:
    """The roles, for a choice."""
    return [(role.value, _(text)) for role, text in ROLES.items()]


def scope_choices(target: ResourcePath) -> list[tuple[str, str]]:
    """What a role can be about, for a choice; none for a document."""
    if not is_container(target):
        return []
    return [(scope.value, _(text)) for scope, text in SCOPES.items()]


def offered_role(modes: Modes) -> str:
    """The role to offer for a request: to edit if it asks for that, and never to manage."""
    return Role.EDIT.value if Mode.WRITE in modes else Role.VIEW.value


def _short(term: Object) -> str:
    """A term as it is shown: the last part of well-known names, everything else in full."""
    if not isinstance(term, Iri):
        return term.value
    for namespace in _NAMESPACES:
        if term.value.startswith(namespace):
            return term.value.removeprefix(namespace)
    return term.value


_NAMESPACES = (
    "http://www.w3.org/ns/auth/acl#",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
)
