"""Reads an ACL rule by rule, and tells plain rules, which can be edited, from special ones.

Pure. A *plain* rule is an authorization that consists of nothing but agents, groups, the two agent
classes, known modes, and its own resource, and may have an end: a condition in a blank node that
states nothing but that. Everything else is *special*: it names origins, another resource or an
unknown class, has another condition or any other statement, or has no effect. Special rules are
shown and never changed, because a program cannot foresee the effect of editing a statement that it
does not understand.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from podstead.core import vocab
from podstead.core.identifiers import canonical_url
from podstead.rdf.graph import BlankNode, Description, Graph, Iri, Object, Subject
from podstead.wac import acl
from podstead.wac.acl import ALWAYS, PeriodCondition, unknown_conditions
from podstead.wac.modes import ALL_MODES, NO_MODES, Mode, Modes, with_entailed

CONDITION: Final = Iri(vocab.ACL_CONDITION)
PERIOD_CONDITION: Final = Iri(vocab.ACCESS_PERIOD_CONDITION)
BEGINS: Final = Iri(vocab.ACCESS_BEGINS)
ENDS: Final = Iri(vocab.ACCESS_ENDS)

_IS_AUTHORIZATION: Final = (acl.TYPE, acl.AUTHORIZATION)
_CLASSES: Final = frozenset({vocab.FOAF_AGENT, vocab.ACL_AUTHENTICATED_AGENT})


class GranteeKind(Enum):
    """Whom a rule can name."""

    AGENT = "agent"
    GROUP = "group"
    AUTHENTICATED = "authenticated"
    EVERYONE = "everyone"


@dataclass(frozen=True, slots=True, order=True)
class Grantee:
    """A holder of access under rules: an agent or a group by its IRI, or a class of agents.

    The IRI of an agent is canonical (:func:`podstead.wac.acl.agent_name`).
    """

    kind: GranteeKind
    iri: str = ""

    @property
    def statement(self) -> tuple[Iri, Iri]:
        """The predicate and object that name the grantee in an authorization."""
        match self.kind:
            case GranteeKind.AGENT:
                return acl.AGENT, Iri(self.iri)
            case GranteeKind.GROUP:
                return acl.AGENT_GROUP, Iri(self.iri)
            case GranteeKind.AUTHENTICATED:
                return acl.AGENT_CLASS, Iri(vocab.ACL_AUTHENTICATED_AGENT)
            case GranteeKind.EVERYONE:
                return acl.AGENT_CLASS, Iri(vocab.FOAF_AGENT)


_ORDER: Final = tuple(reversed(GranteeKind))
EVERYONE: Final = Grantee(GranteeKind.EVERYONE)
AUTHENTICATED: Final = Grantee(GranteeKind.AUTHENTICATED)


def agent(iri: str) -> Grantee:
    """The agent with this IRI."""
    return Grantee(GranteeKind.AGENT, acl.agent_name(iri))


def group(iri: str) -> Grantee:
    """The group with this IRI."""
    return Grantee(GranteeKind.GROUP, iri)


def order_of(grantee: Grantee) -> tuple[int, str]:
    """The place of a grantee in lists, from everyone to single agents."""
    return _ORDER.index(grantee.kind), grantee.iri


def grantees_of(rule: acl.Authorization) -> tuple[Grantee, ...]:
    """Everybody whom an authorization names: classes first, then groups and agents by IRI."""
    return (
        *((EVERYONE,) if rule.public else ()),
        *((AUTHENTICATED,) if rule.authenticated else ()),
        *(group(iri) for iri in sorted(rule.groups)),
        *(agent(iri) for iri in sorted(rule.agents)),
    )


class Peculiarity(Enum):
    """Why a rule is special."""

    NO_EFFECT = "no effect"
    ORIGINS = "origins"
    OTHER_RESOURCE = "other resource"
    UNKNOWN_CLASS = "unknown class"
    UNKNOWN_MODE = "unknown mode"
    CONDITIONS = "conditions"
    """It applies only under conditions other than one period."""
    IGNORED_CONDITIONS = "ignored conditions"
    """It has conditions of types that are not evaluated, and applies without them."""
    FURTHER_STATEMENTS = "further statements"
    """A type, a label or any other statement that plain rules do not have."""
    DESCRIPTION = "description"
    """It lets agents read a container without its members."""


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One authorization of an ACL with its node; plain if it has no peculiarities.

    ``ignored_conditions`` are the types of conditions that are not evaluated, an empty text for
    one without a type.
    """

    node: Subject
    authorization: acl.Authorization
    peculiarities: frozenset[Peculiarity]
    description: Description
    ignored_conditions: tuple[str, ...] = ()

    @property
    def period(self) -> PeriodCondition:
        """When a plain rule applies."""
        conditions = self.authorization.conditions
        return next((each for each in conditions if isinstance(each, PeriodCondition)), ALWAYS)

    @property
    def is_plain(self) -> bool:
        return not self.peculiarities

    @property
    def name(self) -> str | None:
        """The IRI of the rule; ``None`` if it has none."""
        return self.node.value if isinstance(self.node, Iri) else None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of one ACL, in the order of the document.

    ``is_void`` means that the ACL grants nothing at all, because it names too many groups.
    """

    rules: tuple[AccessRule, ...]
    is_void: bool = False

    @property
    def plain(self) -> tuple[AccessRule, ...]:
        return tuple(rule for rule in self.rules if rule.is_plain)

    @property
    def special(self) -> tuple[AccessRule, ...]:
        return tuple(rule for rule in self.rules if not rule.is_plain)

    def about_subject(self) -> tuple[AccessRule, ...]:
        """The rules that decide about the subject of the ACL."""
        return tuple(rule for rule in self._effective() if rule.authorization.access_to)

    def about_contents(self) -> tuple[AccessRule, ...]:
        """The rules that decide about everything below without a closer ACL."""
        return tuple(rule for rule in self._effective() if rule.authorization.default)

    def _effective(self) -> tuple[AccessRule, ...]:
        if self.is_void:
            return ()
        return tuple(rule for rule in self.rules if acl.applies(rule.authorization))


def read_rules(graph: Graph, *, subject_url: str) -> RuleSet:
    """The rules of the ACL of the resource at ``subject_url``."""
    subject = canonical_url(subject_url)
    references = Counter(object_ for _, _, object_ in graph if isinstance(object_, BlankNode))
    found = tuple(
        _access_rule(graph, node, rule, subject, references)
        for node, rule in acl.authorizations_by_node(graph, subject_url=subject_url).items()
    )
    applying = tuple(rule.authorization for rule in found if acl.applies(rule.authorization))
    return RuleSet(found, is_void=len(acl.AclDocument(applying).groups()) > acl.MAX_GROUPS)


def _access_rule(
    graph: Graph,
    node: Subject,
    rule: acl.Authorization,
    subject: str | None,
    references: Counter[BlankNode],
) -> AccessRule:
    description = graph.about(node)
    found = set(_peculiarities(description, rule, subject))
    ignored = unknown_conditions(graph, description)
    if ignored:
        found.add(Peculiarity.IGNORED_CONDITIONS)
    elif rule.conditions and not _has_only_a_period(graph, description, rule, references):
        found.add(Peculiarity.CONDITIONS)
    return AccessRule(node, rule, frozenset(found), description, ignored)


def _has_only_a_period(
    graph: Graph, description: Description, rule: acl.Authorization, references: Counter[BlankNode]
) -> bool:
    """Whether the only condition is a period, stated in a blank node that nothing else refers
    to."""
    nodes = description[CONDITION]
    if len(nodes) != 1 or not isinstance(nodes[0], BlankNode) or references[nodes[0]] != 1:
        return False
    condition = graph.about(nodes[0])
    return (
        {acl.TYPE} < set(condition) <= {acl.TYPE, BEGINS, ENDS}
        and tuple(condition[acl.TYPE]) == (PERIOD_CONDITION,)
        and all(len(values) == 1 for values in condition.values())
        and all(isinstance(each, PeriodCondition) and each.is_valid for each in rule.conditions)
    )


def granted(rules: tuple[AccessRule, ...]) -> Mapping[tuple[Grantee, PeriodCondition], Modes]:
    """The modes that plain rules grant to each grantee that they name in each period."""
    modes: dict[tuple[Grantee, PeriodCondition], Modes] = {}
    for rule in rules:
        for grantee in grantees_of(rule.authorization):
            during = grantee, rule.period
            modes[during] = modes.get(during, NO_MODES) | rule.authorization.modes
    return modes


def _peculiarities(
    description: Description, rule: acl.Authorization, subject: str | None
) -> frozenset[Peculiarity]:
    found = set()
    if not acl.applies(rule):
        found.add(Peculiarity.NO_EFFECT)
    for predicate, objects in description.items():
        for each in objects:
            peculiarity = _peculiarity(predicate, each, subject)
            if peculiarity is not None:
                found.add(peculiarity)
    if acl.opens_description(rule) and not acl.applies(rule):
        found -= {Peculiarity.NO_EFFECT, Peculiarity.OTHER_RESOURCE}
        found.add(Peculiarity.DESCRIPTION)
    return frozenset(found)


def _peculiarity(predicate: Iri, object_: Object, subject: str | None) -> Peculiarity | None:
    """Why a plain rule would not contain the statement, if so."""
    if predicate == acl.ORIGIN:
        return Peculiarity.ORIGINS
    if predicate == CONDITION:
        return None
    known, otherwise = False, Peculiarity.FURTHER_STATEMENTS
    if isinstance(object_, Iri):
        value = object_.value
        if predicate in (acl.ACCESS_TO, acl.DEFAULT):
            known, otherwise = canonical_url(value) == subject, Peculiarity.OTHER_RESOURCE
        elif predicate == acl.AGENT_CLASS:
            known, otherwise = value in _CLASSES, Peculiarity.UNKNOWN_CLASS
        elif predicate == acl.MODE:
            known, otherwise = value in acl.MODES, Peculiarity.UNKNOWN_MODE
        else:
            known = (
                predicate in (acl.AGENT, acl.AGENT_GROUP)
                or (predicate, object_) == _IS_AUTHORIZATION
            )
    return None if known else otherwise


class Role(Enum):
    """What somebody can do with a resource, from little to much."""

    VIEW = "view"
    ADD = "add"
    EDIT = "edit"
    MANAGE = "manage"
    OTHER = "other"
    """Any other combination of modes, such as Append alone."""


ROLE_MODES: Final[Mapping[Role, Modes]] = MappingProxyType(
    {
        Role.VIEW: frozenset({Mode.READ}),
        Role.ADD: frozenset({Mode.READ, Mode.APPEND}),
        Role.EDIT: frozenset({Mode.READ, Mode.APPEND, Mode.WRITE}),
        Role.MANAGE: ALL_MODES,
    }
)
"""The modes of each role, with the entailed ones."""

_BY_MODES: Final = {modes: role for role, modes in ROLE_MODES.items()}


def role_of(modes: Modes) -> Role | None:
    """The role that amounts to exactly these modes; ``None`` if there are none."""
    held = with_entailed(modes)
    return _BY_MODES.get(held, Role.OTHER) if held else None
