"""How is access put into words? Sentences, roles and modes in the language of the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.sharing.people import GroupNames
from podstead.wac.acl import local_path
from podstead.wac.modes import Mode, Modes
from podstead.wac.sharing.access import AccessEntry, Cause, Reason, Scope
from podstead.wac.sharing.rules import Grantee, GranteeKind, Peculiarity, Role, role_of
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.files.names import shown_name

ROLES: Final = {
    Role.VIEW: N_("Can view"),
    Role.ADD: N_("Can view and add"),
    Role.EDIT: N_("Can edit"),
    Role.MANAGE: N_("Can manage"),
}
SCOPES: Final = {
    Scope.BOTH: N_("This folder and everything inside"),
    Scope.THIS: N_("This folder only"),
    Scope.INSIDE: N_("Everything inside"),
}
MODES: Final = {
    Mode.READ: N_("view"),
    Mode.APPEND: N_("add"),
    Mode.WRITE: N_("change and delete"),
    Mode.CONTROL: N_("change who has access"),
}

_CLAUSES: Final = {
    "everyone-view": N_("Everyone can view"),
    "everyone-add": N_("Everyone can view and add"),
    "everyone-edit": N_("Everyone can edit"),
    "everyone-manage": N_("Everyone can manage"),
    "everyone-other": N_("Everyone can do only this: %(modes)s"),
    "authenticated-view": N_("Anyone who is signed in can view"),
    "authenticated-add": N_("Anyone who is signed in can view and add"),
    "authenticated-edit": N_("Anyone who is signed in can edit"),
    "authenticated-manage": N_("Anyone who is signed in can manage"),
    "authenticated-other": N_("Anyone who is signed in can do only this: %(modes)s"),
    "group-view": N_("The members of %(name)s can view"),
    "group-add": N_("The members of %(name)s can view and add"),
    "group-edit": N_("The members of %(name)s can edit"),
    "group-manage": N_("The members of %(name)s can manage"),
    "group-other": N_("The members of %(name)s can do only this: %(modes)s"),
    "agent-view": N_("%(name)s can view"),
    "agent-add": N_("%(name)s can view and add"),
    "agent-edit": N_("%(name)s can edit"),
    "agent-manage": N_("%(name)s can manage"),
    "agent-other": N_("%(name)s can do only this: %(modes)s"),
}

_ONLY_ADDING: Final = frozenset({Mode.APPEND})
_ADDING: Final = {
    "everyone-other": N_("Everyone can add something, but not view it"),
    "authenticated-other": N_("Anyone who is signed in can add something, but not view it"),
    "group-other": N_("The members of %(name)s can add something, but not view it"),
    "agent-other": N_("%(name)s can add something, but not view it"),
}
"""For those who may do nothing but add, as to an inbox."""

_PECULIARITIES: Final = {
    Peculiarity.NO_EFFECT: N_("has no effect here"),
    Peculiarity.ORIGINS: N_("names applications"),
    Peculiarity.OTHER_RESOURCE: N_("names another resource"),
    Peculiarity.UNKNOWN_CLASS: N_("names a kind of people that this server does not know"),
    Peculiarity.UNKNOWN_MODE: N_("names a permission that this server does not know"),
    Peculiarity.FURTHER_STATEMENTS: N_("states something else besides"),
    Peculiarity.DESCRIPTION: N_("lets people read the profile, but not the list of what is here"),
}

_GRANTED: Final = {
    GranteeKind.EVERYONE: N_("The rules of “%(folder)s” allow it to everyone."),
    GranteeKind.AUTHENTICATED: N_("The rules of “%(folder)s” allow it to anyone who is signed in."),
    GranteeKind.GROUP: N_(
        "The rules of “%(folder)s” allow it to the group %(name)s, of which this person is a "
        "member."
    ),
    GranteeKind.AGENT: N_("The rules of “%(folder)s” allow it to %(name)s."),
}
_OWNS: Final = N_("This person owns the pod, and owners can always change who has access.")
_OTHER_APPLICATIONS: Final = N_(
    "The rules of “%(folder)s” allow it only through other applications: %(origins)s."
)
_NO_RULE: Final = N_("No rule of “%(folder)s” allows it.")

_CUSTOMARY_FRAGMENTS: Final = frozenset({"", "it", "me", "this"})
"""Fragments that say nothing about what they identify."""


class Names:
    """What agents, groups and folders are called on the pages."""

    def __init__(self, base_url: str, groups: Mapping[str, str] | None = None) -> None:
        """``groups`` are the names that groups state themselves, by IRI."""
        self._base_url = base_url
        self._groups = {} if groups is None else groups

    def grantee(self, grantee: Grantee) -> str:
        """A short name; the IRI is shown beside it where it matters who exactly is meant."""
        match grantee.kind:
            case GranteeKind.EVERYONE:
                return _("Everyone")
            case GranteeKind.AUTHENTICATED:
                return _("Anyone who is signed in")
            case GranteeKind.GROUP:
                return self.group(grantee.iri)
            case GranteeKind.AGENT:
                return self.iri(grantee.iri)

    def group(self, iri: str) -> str:
        """The name that a group states itself; else the last part of its address."""
        return self._groups.get(iri) or _last_part(iri)

    def iri(self, iri: str) -> str:
        """The name of the pod for its owner; else the IRI itself, so that nobody can choose to be
        called like somebody else."""
        document, _separator, fragment = iri.partition("#")
        path = local_path(document, self._base_url)
        if path is not None and fragment == "me" and path.count("/") == 2 and path.endswith("/"):
            return shown_name(path)
        return iri

    def sentence(self, entry: AccessEntry) -> str:
        """What somebody can do, and why."""
        clause = self.clause(entry)
        if entry.inherited_from is None:
            return f"{clause}."
        return _(
            "%(clause)s, because the folder “%(folder)s” says so.",
            clause=clause,
            folder=shown_name(entry.inherited_from),
        )

    def clause(self, entry: AccessEntry) -> str:
        """What somebody can do."""
        return _(
            _ADDING[entry.sentence.id]
            if entry.modes == _ONLY_ADDING and entry.sentence.id in _ADDING
            else _CLAUSES[entry.sentence.id],
            name=self.grantee(entry.grantee),
            modes=shown_modes(entry.modes),
        )

    def reason(self, reason: Reason, folder: ResourcePath) -> str:
        """Why a mode is granted or not, by the rules of a folder."""
        name = shown_name(folder)
        match reason.cause:
            case Cause.OWNER:
                return _(_OWNS)
            case Cause.ORIGIN if reason.rule is not None:
                origins = reason.rule.authorization.origins
                return _(_OTHER_APPLICATIONS, folder=name, origins=", ".join(sorted(origins)))
            case Cause.RULE if reason.grantee is not None:
                who = self.grantee(reason.grantee)
                return _(_GRANTED[reason.grantee.kind], folder=name, name=who)
            case _:
                return _(_NO_RULE, folder=name)


@dataclass(frozen=True, slots=True)
class NamesByReader:
    """Gives each person the names that this person may read."""

    base_url: str
    groups: GroupNames

    async def of(self, person: Identity | None, grantees: Iterable[Grantee]) -> Names:
        """The names of these grantees, and of agents and folders. Raises ServerTrouble."""
        groups = {each.iri for each in grantees if each.kind is GranteeKind.GROUP}
        return Names(self.base_url, await self.groups.of(person, sorted(groups)))


def _last_part(iri: str) -> str:
    document, _separator, fragment = iri.partition("#")
    if fragment not in _CUSTOMARY_FRAGMENTS:
        return unquote(fragment)
    return unquote(urlsplit(document).path.rstrip("/").rpartition("/")[2]) or iri


def shown_modes(modes: Modes) -> str:
    """Modes as a list of words, without those that others include."""
    listed = [
        mode
        for mode in MODES
        if mode in modes and not (mode is Mode.APPEND and Mode.WRITE in modes)
    ]
    return ", ".join(_(MODES[mode]) for mode in listed)


def shown_role(modes: Modes) -> str:
    """What somebody with these modes can do, in short."""
    role = role_of(modes)
    if role is None:
        return _("No access")
    if role is Role.OTHER:
        return _("Only: %(modes)s", modes=shown_modes(modes))
    return _(ROLES[role])


def shown_peculiarities(peculiarities: Iterable[Peculiarity]) -> str:
    """Why a rule is not edited."""
    return ", ".join(_(_PECULIARITIES[each]) for each in Peculiarity if each in peculiarities)
