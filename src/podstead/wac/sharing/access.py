"""Lists who has access to a resource, one entry for each grantee, from its effective ACL.

Pure. The entries of plain rules can be edited. An entry says where it comes from, and for a
container whether it covers the container alone, everything inside without rules of its own, or
both.
"""

from dataclasses import dataclass, replace
from enum import Enum

from podstead.core.identifiers import ResourcePath, is_container
from podstead.wac.acl import ALWAYS, Authorization, ConditionContext, PeriodCondition
from podstead.wac.decision import Requester, Rules, agent_modes
from podstead.wac.modes import NO_MODES, Mode, Modes
from podstead.wac.sharing import rules


class Scope(Enum):
    """What an entry for a container is about. A document has ``THIS`` only."""

    THIS = "this"
    INSIDE = "inside"
    BOTH = "both"

    @property
    def includes_this(self) -> bool:
        return self is not Scope.INSIDE

    @property
    def includes_inside(self) -> bool:
        return self is not Scope.THIS


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text for people that the pages translate: an ID, and the parameters that it contains."""

    id: str
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """What one grantee can do during a period. ``inherited_from`` is the container whose rules say
    so; ``None`` if the resource has rules of its own."""

    grantee: rules.Grantee
    modes: Modes
    scope: Scope
    inherited_from: ResourcePath | None = None
    period: PeriodCondition = ALWAYS

    @property
    def role(self) -> rules.Role:
        return rules.role_of(self.modes) or rules.Role.OTHER

    @property
    def sentence(self) -> Sentence:
        """What the grantee can do, such as ``everyone-view``."""
        parameters = [("name", self.grantee.iri)] if self.grantee.iri else []
        if self.role is rules.Role.OTHER:
            parameters.append(("modes", " ".join(sorted(self.modes))))
        return Sentence(f"{self.grantee.kind.value}-{self.role.value}", tuple(parameters))

    @property
    def reason(self) -> Sentence:
        """Why: because of the rules of a container above, or the resource's own."""
        if self.inherited_from is None:
            return Sentence("own-rules")
        return Sentence("rules-of-folder", (("folder", self.inherited_from),))


@dataclass(frozen=True, slots=True)
class AccessList:
    """Who has access to a resource.

    ``entries`` are those of plain rules, everyone first. ``special`` are the rules that are kept as
    they are, as far as they concern the resource. The owner can always manage it.
    """

    resource: ResourcePath
    owner: str | None
    inherited_from: ResourcePath | None
    entries: tuple[AccessEntry, ...]
    special: tuple[rules.AccessRule, ...]


def access_list(
    rules: rules.RuleSet,
    resource: ResourcePath,
    *,
    inherited_from: ResourcePath | None,
    owner: str | None,
) -> AccessList:
    """Who has access to ``resource`` by its own ACL, or by that of ``inherited_from``."""
    if inherited_from is not None:
        here = inside = tuple(rule for rule in rules.about_contents() if rule.is_plain)
        special = tuple(rule for rule in rules.about_contents() if not rule.is_plain)
    else:
        here = tuple(rule for rule in rules.about_subject() if rule.is_plain)
        inside = tuple(rule for rule in rules.about_contents() if rule.is_plain)
        special = rules.special
    entries = _entries(here, inside if is_container(resource) else None, inherited_from)
    return AccessList(resource, owner, inherited_from, entries, special)


def _entries(
    here: tuple[rules.AccessRule, ...],
    inside: tuple[rules.AccessRule, ...] | None,
    inherited_from: ResourcePath | None,
) -> tuple[AccessEntry, ...]:
    """The entries of a document if ``inside`` is ``None``, else those of a container."""
    on_this = rules.granted(here)
    on_inside = {} if inside is None else rules.granted(inside)
    entries: list[AccessEntry] = []
    for each in sorted({*on_this, *on_inside}, key=_order):
        this, below = on_this.get(each, NO_MODES), on_inside.get(each, NO_MODES)
        grantee, period = each
        parts = [(this, Scope.BOTH)]
        if this != below:
            parts = [(this, Scope.THIS), (below, Scope.INSIDE)]
        entries += [
            AccessEntry(grantee, modes, scope, inherited_from, period)
            for modes, scope in parts
            if modes
        ]
    return tuple(entries)


def _order(
    entry: tuple[rules.Grantee, PeriodCondition],
) -> tuple[tuple[int, str], bool, int, int]:
    grantee, period = entry
    has_end, ends_ms = period.ends_ms is not None, period.ends_ms or 0
    return rules.order_of(grantee), has_end, ends_ms, period.begins_ms or 0


class Cause(Enum):
    """What decides about a mode."""

    RULE = "rule"
    """A rule grants it."""
    OWNER = "owner"
    """The agent owns the storage, and owners always have Control."""
    CONDITION = "condition"
    """A rule would grant it, but not all of its conditions hold."""
    ORIGIN = "origin"
    """Rules name other applications for it, so this application does not have it."""
    NO_RULE = "no rule"
    """No rule grants it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a mode is held or not.

    ``RULE`` and ``CONDITION`` come with the rule and the grantee that matches the agent; ``ORIGIN``
    with a rule that names origins.
    """

    mode: Mode
    cause: Cause
    rule: rules.AccessRule | None = None
    grantee: rules.Grantee | None = None

    @property
    def grants(self) -> bool:
        return self.cause in (Cause.RULE, Cause.OWNER)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The modes of an agent, with at least one reason for each mode, held or not."""

    modes: Modes
    reasons: tuple[Reason, ...]

    def about(self, mode: Mode) -> tuple[Reason, ...]:
        """Why the mode is held, or why not."""
        return tuple(reason for reason in self.reasons if reason.mode is mode)


def explain(
    applying: tuple[rules.AccessRule, ...],
    requester: Requester | None,
    circumstances: ConditionContext,
) -> Explanation:
    """Why an agent, or the public, has modes under the rules that apply to a resource."""
    rules = Rules.of(tuple(rule.authorization for rule in applying)).under(circumstances)
    modes = rules.public if requester is None else agent_modes(rules, requester)
    held = tuple(rule for rule in applying if rule.authorization.holds(circumstances))
    lapsed = tuple(rule for rule in applying if not rule.authorization.holds(circumstances))
    reasons: list[Reason] = []
    for mode in Mode:
        found = _grants(mode, held, requester)
        if mode not in modes:
            unheld = [
                replace(reason, cause=Cause.CONDITION)
                for reason in _grants(mode, lapsed, requester)
                if reason.cause is Cause.RULE
            ]
            found = unheld or _obstacles(mode, applying, requester if found else None)
        reasons += found
    return Explanation(modes, tuple(reasons))


def _grants(
    mode: Mode, applying: tuple[rules.AccessRule, ...], requester: Requester | None
) -> list[Reason]:
    """Every reason to grant the mode, origins aside."""
    found = []
    for rule in applying:
        grantee = _matching(rule.authorization, requester)
        if mode in rule.authorization.modes and grantee is not None:
            found.append(Reason(mode, Cause.RULE, rule, grantee))
    if mode is Mode.CONTROL and requester is not None and requester.owns_storage:
        found.append(Reason(mode, Cause.OWNER))
    return found


def _obstacles(
    mode: Mode, applying: tuple[rules.AccessRule, ...], restricted: Requester | None
) -> list[Reason]:
    """Why the mode is not held: the rules that name origins if it would be held without them."""
    if restricted is not None and restricted.origin is not None:
        return [
            Reason(mode, Cause.ORIGIN, rule)
            for rule in applying
            if mode in rule.authorization.modes and rule.authorization.origins
        ]
    return [Reason(mode, Cause.NO_RULE)]


def _matching(rule: Authorization, requester: Requester | None) -> rules.Grantee | None:
    """The grantee of the rule that matches the agent; the most specific if several do."""
    if requester is not None:
        for name in sorted(rule.agents & requester.names):
            return rules.agent(name)
        for iri in sorted(rule.groups & requester.groups):
            return rules.group(iri)
        if rule.authenticated:
            return rules.AUTHENTICATED
    return rules.EVERYONE if rule.public else None
