"""What the templates of the sharing pages show, and what their forms send."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from podstead.core.date_times import DAY_MS, day_of, read_day, read_time, write_time
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.rdf.graph import Iri, Object
from podstead.resources.sharing.access_requests import AccessAnswer
from podstead.resources.sharing.documents import Edit, Inheritance, RulesOutOfReach
from podstead.resources.sharing.offers import MAX_MESSAGE_CHARS
from podstead.resources.sharing.people import Contacts, GroupNames
from podstead.resources.sharing.service import Consequence, Difference, Preview, SharingState
from podstead.wac import acl
from podstead.wac.modes import NO_MODES, Mode, Modes
from podstead.wac.sharing import rules as sharing_rules
from podstead.wac.sharing.access import AccessEntry, Cause, Reason, Scope
from podstead.wac.sharing.editing import AccessChange
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import shown_name
from podstead.web.pages.formats import date_text, moment_text
from podstead.web.pages.people import short_name
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.sharing.reminders import AccessReminder, ReminderKind

ROLES: Final = {
    sharing_rules.Role.VIEW: N_("Can view"),
    sharing_rules.Role.ADD: N_("Can add"),
    sharing_rules.Role.EDIT: N_("Can edit"),
    sharing_rules.Role.MANAGE: N_("Full access"),
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
    sharing_rules.Peculiarity.NO_EFFECT: N_("has no effect here"),
    sharing_rules.Peculiarity.ORIGINS: N_("names applications"),
    sharing_rules.Peculiarity.OTHER_RESOURCE: N_("names another resource"),
    sharing_rules.Peculiarity.UNKNOWN_CLASS: N_(
        "names a kind of people that this server does not know"
    ),
    sharing_rules.Peculiarity.UNKNOWN_MODE: N_("names a permission that this server does not know"),
    sharing_rules.Peculiarity.CONDITIONS: N_("applies only under conditions"),
    sharing_rules.Peculiarity.IGNORED_CONDITIONS: N_(
        "has a condition that this server does not know"
    ),
    sharing_rules.Peculiarity.FURTHER_STATEMENTS: N_("states something else besides"),
    sharing_rules.Peculiarity.DESCRIPTION: N_(
        "lets people read the profile, but not the list of what is here"
    ),
}

_GRANTED: Final = {
    sharing_rules.GranteeKind.EVERYONE: N_("The rules of “%(folder)s” allow it to everyone."),
    sharing_rules.GranteeKind.AUTHENTICATED: N_(
        "The rules of “%(folder)s” allow it to anyone who is signed in."
    ),
    sharing_rules.GranteeKind.GROUP: N_(
        "The rules of “%(folder)s” allow it to the group %(name)s, of which this person is a "
        "member."
    ),
    sharing_rules.GranteeKind.AGENT: N_("The rules of “%(folder)s” allow it to %(name)s."),
}
_OWNS: Final = N_("This person owns the pod, and owners can always change who has access.")
_OTHER_APPLICATIONS: Final = N_(
    "The rules of “%(folder)s” allow it only through other applications: %(origins)s."
)
_NO_RULE: Final = N_("No rule of “%(folder)s” allows it.")
_NOT_UNDER_CONDITIONS: Final = N_(
    "A rule of “%(folder)s” allows it, but not now or not in this way. It applies %(conditions)s."
)
_UNDER_CONDITIONS: Final = N_("%(reason)s It applies %(conditions)s.")

_CUSTOMARY_FRAGMENTS: Final = frozenset({"", "it", "me", "this"})
"""Fragments that say nothing about what they identify."""


class Names:
    """What agents, groups and folders are called on the pages."""

    def __init__(
        self,
        base_url: str,
        groups: Mapping[str, str] | None = None,
        contacts: Mapping[str, str] | None = None,
    ) -> None:
        """``groups`` are the names that groups state themselves, and ``contacts`` those that the
        reader has given to people, by IRI."""
        self._base_url = base_url
        self._groups = {} if groups is None else groups
        self._contacts = {} if contacts is None else contacts

    def grantee(self, grantee: sharing_rules.Grantee) -> str:
        """A short name; the IRI is shown beside it where it matters who exactly is meant."""
        match grantee.kind:
            case sharing_rules.GranteeKind.EVERYONE:
                return _("Everyone")
            case sharing_rules.GranteeKind.AUTHENTICATED:
                return _("Anyone who is signed in")
            case sharing_rules.GranteeKind.GROUP:
                return self.group(grantee.iri)
            case sharing_rules.GranteeKind.AGENT:
                return self.iri(grantee.iri)

    def group(self, iri: str) -> str:
        """The name that a group states itself; else the last part of its address."""
        return self._groups.get(iri) or _last_part(iri)

    def iri(self, iri: str) -> str:
        """What the reader calls the person; else :func:`short_name`. The pages show the IRI where
        it matters who exactly is meant."""
        return self._contacts.get(iri) or short_name(iri, self._base_url)

    def is_here(self, iri: str) -> bool:
        """Whether the name is that of a pod here, by which its owner is found."""
        return iri == f"{self._base_url}/{short_name(iri, self._base_url)}/#me"

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
        """What somebody can do, and when."""
        return with_period(self._clause(entry), entry.period)

    def _clause(self, entry: AccessEntry) -> str:
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
            case Cause.CONDITION if reason.rule is not None:
                applies = "; ".join(shown_conditions(reason.rule))
                return _(_NOT_UNDER_CONDITIONS, folder=name, conditions=applies)
            case Cause.RULE if reason.grantee is not None:
                who = self.grantee(reason.grantee)
                granted = _(_GRANTED[reason.grantee.kind], folder=name, name=who)
                conditions = [] if reason.rule is None else shown_conditions(reason.rule)
                if not conditions:
                    return granted
                return _(_UNDER_CONDITIONS, reason=granted, conditions="; ".join(conditions))
            case _:
                return _(_NO_RULE, folder=name)


@dataclass(frozen=True, slots=True)
class NamesByReader:
    """Gives each person the names that this person may read."""

    base_url: str
    groups: GroupNames
    contacts: Contacts

    async def of(self, person: Identity | None, grantees: Iterable[sharing_rules.Grantee]) -> Names:
        """The names of these grantees, and of agents and folders. Raises ServerTrouble."""
        groups = {each.iri for each in grantees if each.kind is sharing_rules.GranteeKind.GROUP}
        contacts = () if person is None else await self.contacts.of(person)
        return Names(
            self.base_url,
            await self.groups.of(person, sorted(groups)),
            {each.iri: each.name for each in contacts},
        )


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
    role = sharing_rules.role_of(modes)
    if role is None:
        return _("No access")
    if role is sharing_rules.Role.OTHER:
        return _("Only: %(modes)s", modes=shown_modes(modes))
    return _(ROLES[role])


def _shown_moment(at_ms: int, *, is_end: bool = False) -> str:
    """The first or last day of a period, with the time if it is within the day (UTC)."""
    if at_ms % DAY_MS == 0:
        return date_text(at_ms - is_end)
    return f"{moment_text(at_ms)} UTC"


def with_period(text: str, period: acl.PeriodCondition) -> str:
    """What somebody can do, and when."""
    return text if period == acl.ALWAYS else f"{text}, {_shown_period(period)}"


def first_day(begins_ms: int | None) -> str:
    """The first day (UTC) of a period, as a form has it; empty for none."""
    return "" if begins_ms is None else day_of(begins_ms)


def last_day(ends_ms: int | None) -> str:
    """The last day (UTC) of a period, as a form has it; empty for none."""
    return "" if ends_ms is None else day_of(ends_ms - 1)


def shown_conditions(rule: sharing_rules.AccessRule) -> list[str]:
    """The conditions under which a rule applies, in words."""
    return [_shown_condition(condition) for condition in rule.authorization.conditions]


def _shown_condition(condition: acl.Condition) -> str:
    if isinstance(condition, acl.PeriodCondition):
        return _shown_period(condition)
    is_client = isinstance(condition, acl.ClientCondition)
    if condition.anyone:
        if is_client:
            return _("through any application")
        return _("for people of any identity provider")
    names = ", ".join(sorted(condition.names | condition.groups)) or _("none")
    if is_client:
        return _("only through these applications: %(names)s", names=names)
    return _("only for people of these identity providers: %(names)s", names=names)


def _shown_period(period: acl.PeriodCondition) -> str:
    begins = "" if period.begins_ms is None else _shown_moment(period.begins_ms)
    if not period.is_valid:
        return _("never, because its time cannot be read")
    if period.ends_ms is None:
        return _("from %(begins)s on", begins=begins)
    ends = _shown_moment(period.ends_ms, is_end=True)
    if begins:
        return _("from %(begins)s until %(ends)s", begins=begins, ends=ends)
    return _("until %(ends)s", ends=ends)


def shown_peculiarities(peculiarities: Iterable[sharing_rules.Peculiarity]) -> str:
    """Why a rule is not edited."""
    return ", ".join(
        _(_PECULIARITIES[each]) for each in sharing_rules.Peculiarity if each in peculiarities
    )


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One line of the list of people with access."""

    kind: str
    iri: str
    name: str
    clause: str
    sentence: str
    role: str | None
    """The value of the choice; ``None`` if the modes are no role."""
    role_text: str
    scope: str
    scope_text: str
    is_owner: bool
    first_day: str
    last_day: str
    """The first and last day of the access, as a form has them; empty for none."""
    moments: Mapping[str, str]
    """The exact beginning and end, as ``xsd:dateTime``, by the names of hidden fields."""
    has_ended: bool


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule that is kept as it is."""

    name: str
    why: str
    conditions: Sequence[str]
    ignored_conditions: Sequence[str]
    statements: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """What changes for somebody."""

    name: str
    iri: str
    kind: str
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
    owner = None if state.access.owner is None else sharing_rules.agent(state.access.owner)
    container = is_container(state.access.resource)
    return [
        _entry(entry, names, state.now_ms, is_owner=entry.grantee == owner, container=container)
        for entry in state.access.entries
    ]


def everyone_lists(state: SharingState) -> bool:
    """Whether the resource is a container whose members everyone can see."""
    return is_container(state.access.resource) and any(
        entry.grantee == sharing_rules.EVERYONE
        and Mode.READ in entry.modes
        and entry.scope.includes_this
        and acl.all_periods_hold((entry.period,), state.now_ms)
        for entry in state.access.entries
    )


def _entry(
    entry: AccessEntry, names: Names, now_ms: int, *, is_owner: bool, container: bool
) -> ShownEntry:
    return ShownEntry(
        kind=entry.grantee.kind.value,
        iri=entry.grantee.iri,
        name=names.grantee(entry.grantee),
        clause=names.clause(entry),
        sentence=names.sentence(entry),
        role=entry.role.value if entry.role in sharing_rules.ROLE_MODES else None,
        role_text=shown_role(entry.modes),
        scope=entry.scope.value,
        scope_text=_(SCOPES[entry.scope]) if container else "",
        is_owner=is_owner,
        first_day=first_day(entry.period.begins_ms),
        last_day=last_day(entry.period.ends_ms),
        moments=_moments(entry.period),
        has_ended=entry.period.ends_ms is not None and entry.period.ends_ms <= now_ms,
    )


def shown_rules(rules: Sequence[sharing_rules.AccessRule]) -> list[ShownRule]:
    """The rules that are kept, with all their statements."""
    return [
        ShownRule(
            name=(rule.name or "").partition("#")[2] or (rule.name or ""),
            why=shown_peculiarities(rule.peculiarities),
            conditions=shown_conditions(rule),
            ignored_conditions=[each or _("of no type") for each in rule.ignored_conditions],
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
            kind=each.grantee.kind.value,
            before=_role_during(each.before, each.before_period),
            after=_role_during(each.after, each.after_period),
            gains=bool(each.after - each.before),
        )
        for each in differences
        if each.is_change
    ]
    return ShownPart(title, changes, len(differences) - len(changes))


def _role_during(modes: Modes, period: acl.PeriodCondition) -> str:
    return with_period(shown_role(modes), period if modes else acl.ALWAYS)


def _moments(period: acl.PeriodCondition) -> Mapping[str, str]:
    named = {"begins": period.begins_ms, "ends": period.ends_ms}
    return {name: write_time(at_ms) for name, at_ms in named.items() if at_ms is not None}


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
    return sharing_rules.Role.EDIT.value if Mode.WRITE in modes else sharing_rules.Role.VIEW.value


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


_NOTICES: Final = {
    ReminderKind.ENDS: N_("%(name)s: ends on %(date)s"),
    ReminderKind.ENDED: N_("%(name)s: ended on %(date)s"),
    ReminderKind.UNUSED: N_("%(name)s: not used since %(date)s"),
}


def shown_reminders(notices: Sequence[AccessReminder], names: Names) -> Sequence[tuple[str, str]]:
    """Each notice as a text, with the address where it leads."""
    return [(_shown_reminder(each, names), each.address) for each in notices]


def _shown_reminder(notice: AccessReminder, names: Names) -> str:
    name, is_unused = notice.name, notice.kind is ReminderKind.UNUSED
    if notice.grantee is not None:
        whose = names.grantee(notice.grantee)
        name = _("Access to “%(what)s” for %(whose)s", what=notice.name, whose=whose)
    date = date_text(notice.at_ms) if is_unused else _shown_moment(notice.at_ms, is_end=True)
    return _(_NOTICES[notice.kind], name=name, date=date)


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer to a request of the person."""

    answer: AccessAnswer
    actor: str
    role_text: str
    name: str


def shown_answer(answer: AccessAnswer, names: Names) -> ShownAnswer:
    """An answer in the language of the current request."""
    return ShownAnswer(
        answer, names.iri(answer.actor), shown_role(answer.modes), shown_name(answer.resource)
    )


def out_of_reach_page(
    renderer: PageRenderer, page: PageRequest, error: RulesOutOfReach
) -> Response:
    """The page that names the folder whose rules apply to the page's resource."""
    return renderer.page(
        page,
        "sharing/out_of_reach.html",
        target=page.target,
        name=shown_name(page.target),
        folder=shown_name(error.folder),
    )


@dataclass(frozen=True, slots=True)
class WantedChange:
    """One form of the sharing page, with the grantee found.

    ``action`` is ``set``, ``remove``, ``stop`` (inheriting) or ``resume``. ``was`` is the scope of
    the entry that is changed, and ``was_period`` its period; ``None`` for a new one. ``request`` is
    the notification of a request for access that the change answers, and ``message`` what the
    grantee is told.
    """

    action: str
    grantee: sharing_rules.Grantee | None = None
    role: sharing_rules.Role = sharing_rules.Role.VIEW
    scope: Scope = Scope.BOTH
    was: Scope | None = None
    request: str = ""
    message: str = ""
    period: acl.PeriodCondition = acl.ALWAYS
    was_period: acl.PeriodCondition = acl.ALWAYS

    def fields(self) -> dict[str, str]:
        """The fields of a form that wants the same."""
        fields = {"change": self.action, "role": self.role.value, "scope": self.scope.value}
        if self.grantee is not None:
            fields |= {"kind": self.grantee.kind.value, "grantee": self.grantee.iri}
        if self.was is not None:
            fields["was"] = self.was.value
        if self.period.begins_ms is not None:
            fields["from"] = first_day(self.period.begins_ms)
        if self.period.ends_ms is not None:
            fields["until"] = last_day(self.period.ends_ms)
        fields |= _moments(self.was_period)
        if self.request:
            fields["request"] = self.request
        if self.message:
            fields["message"] = self.message
        return fields

    def edit(self, target: ResourcePath) -> Edit:
        """The edit of the rules of a resource."""
        if self.action == "stop":
            return Edit(inheritance=Inheritance.STOP)
        if self.action == "resume":
            return Edit(inheritance=Inheritance.RESUME)
        if self.grantee is None:
            raise BadRequest(WebCodes.GRANTEE_MISSING)
        scope = self.scope if is_container(target) else Scope.THIS
        was = self.was if is_container(target) else None
        modes = NO_MODES if self.action == "remove" else sharing_rules.ROLE_MODES[self.role]
        if self.action == "remove":
            scope = was or scope
        here = _modes(modes, now=scope.includes_this, before=bool(was and was.includes_this))
        inside = _modes(modes, now=scope.includes_inside, before=bool(was and was.includes_inside))
        replaced = None if self.was is None else frozenset({self.was_period})
        change = AccessChange(self.grantee, here, inside, self.period, replaced)
        return Edit((change,))


def read_change(sent: FormSubmission, grantee: sharing_rules.Grantee | None) -> WantedChange:
    """The change that a form asks for. Raises BadRequest."""
    action = sent.text("change")
    if action not in ("set", "remove", "stop", "resume"):
        raise BadRequest(WebCodes.CHANGE_MISSING)
    try:
        role = sharing_rules.Role(sent.text("role") or sharing_rules.Role.VIEW.value)
        scope = Scope(sent.text("scope") or Scope.BOTH.value)
        was = Scope(sent.text("was")) if sent.text("was") else None
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_ROLE) from error
    if role not in sharing_rules.ROLE_MODES:
        raise BadRequest(WebCodes.NO_SUCH_ROLE)
    return WantedChange(
        action,
        grantee,
        role,
        scope,
        was,
        sent.text("request"),
        sent.text("message").strip()[:MAX_MESSAGE_CHARS],
        *_read_periods(sent),
    )


def _read_periods(sent: FormSubmission) -> tuple[acl.PeriodCondition, acl.PeriodCondition]:
    """The period of the access, and that of the changed entry. A day that stays keeps the time that
    it had. Raises BadRequest."""
    begins, ends = sent.text("begins"), sent.text("ends")
    first, last = sent.text("from").strip(), sent.text("until").strip()
    try:
        was = acl.PeriodCondition(
            read_time(begins) if begins else None, read_time(ends) if ends else None
        )
        begins_ms, ends_ms = was.begins_ms, was.ends_ms
        if first != first_day(begins_ms):
            begins_ms = read_day(first) if first else None
        if last != last_day(ends_ms):
            ends_ms = read_day(last) + DAY_MS if last else None
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_DAY) from error
    return acl.PeriodCondition(begins_ms, ends_ms), was


def read_kind(sent: FormSubmission) -> sharing_rules.GranteeKind:
    """Whom the form is about. Raises BadRequest."""
    try:
        return sharing_rules.GranteeKind(sent.text("kind") or sharing_rules.GranteeKind.AGENT.value)
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_PEOPLE) from error


def _modes(modes: Modes, *, now: bool, before: bool) -> Modes | None:
    """The modes for one part: the new ones where the entry applies now, none where it no longer
    does, and ``None`` where it never did."""
    if now:
        return modes
    return NO_MODES if before else None


_SAVED_AT_ONCE: Final = frozenset({Consequence.GETS_OWN_RULES})


def needs_preview(change: WantedChange, preview: Preview) -> bool:
    """Whether a person should see what a change does before it is saved: whatever is more than
    that one person or group gets something."""
    grantee = change.grantee
    differences = (*preview.here, *preview.inside)
    return (
        change.action != "set"
        or change.role is sharing_rules.Role.MANAGE
        or grantee is None
        or grantee.kind not in (sharing_rules.GranteeKind.AGENT, sharing_rules.GranteeKind.GROUP)
        or not preview.consequences <= _SAVED_AT_ONCE
        or preview.members.with_own_rules > 0
        or any(each.is_change and each.grantee != grantee for each in differences)
        or any(each.before - each.after for each in differences)
        or not any(each.after - each.before for each in differences)
    )
