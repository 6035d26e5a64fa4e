"""Evaluates the rules that apply to a resource into modes (WAC, "Authorization Evaluation").

Pure: the rules, the agent, the origin and the circumstances of the request are parameters. The
modes of all matching authorizations add up (W-16). Write entails Append, and no other mode entails
anything (W-15).

The origin rule (W-17). Every web origin is trusted as long as the rules that apply do not name
origins for a mode. If they do, a request with an ``Origin`` header has that mode only if everyone
has it or one of those authorizations names its origin. Different authorizations may name the agent
and the origin; one that names only origins grants nothing to any agent. The rule does not apply to
requests without the header.

Conditions (W-9). An authorization has an effect only while its conditions hold: :meth:`Rules.under`
gives the rules for one request. What it restricts by naming origins is restricted in any case, so
that the end of an authorization never opens anything to other origins.

The owner rule (W-7, W-18). The owner of a storage always has Control in it, so that no ACL, not
even one that cannot be parsed, can lock the owner out for good. If rules name origins for Control,
they apply to the web applications of the owner too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from msgspec.structs import replace

from podstead.core.value import Value
from podstead.wac import acl
from podstead.wac.modes import ALL_MODES, NO_MODES, Mode, Modes, with_entailed


def _union(rules: Iterable[acl.Authorization]) -> Modes:
    return NO_MODES.union(*[rule.modes for rule in rules])


def _by_name(named: Iterable[tuple[frozenset[str], Modes]]) -> dict[str, Modes]:
    """The modes of each name, from all authorizations that contain it."""
    found: dict[str, Modes] = {}
    for names, modes in named:
        for name in names:
            found[name] = found.get(name, NO_MODES) | modes
    return found


def _merged(one: Mapping[str, Modes], other: Mapping[str, Modes]) -> Mapping[str, Modes]:
    if not other:
        return one
    return {**one, **{name: modes | one.get(name, NO_MODES) for name, modes in other.items()}}


def _groups(
    conditions: Iterable[acl.Condition], kind: type[acl.ClientCondition | acl.IssuerCondition]
) -> frozenset[str]:
    return frozenset[str]().union(
        *(condition.groups for condition in conditions if isinstance(condition, kind))
    )


class Rules(Value):
    """What the authorizations that apply to a resource grant.

    The modes are those of everyone (``public``), of every authenticated agent, of each agent, and
    of the members of each group that the authorizations name, so a decision takes the same time
    whatever their number. ``through`` are the modes that each named origin has, and ``restricted``
    those for which authorizations name origins. ``conditional`` are the authorizations with
    conditions, which are in none of these but the last.
    """

    public: Modes
    authenticated: Modes
    agents: Mapping[str, Modes]
    members: Mapping[str, Modes]
    groups: frozenset[str]
    through: Mapping[str, Modes]
    restricted: Modes
    conditional: tuple[acl.Authorization, ...] = ()

    @classmethod
    def of(cls, authorizations: tuple[acl.Authorization, ...]) -> Rules:
        restricted = _union(rule for rule in authorizations if rule.origins)
        conditional = tuple(rule for rule in authorizations if rule.conditions)
        authorizations = tuple(rule for rule in authorizations if not rule.conditions)
        members = _by_name((rule.groups, rule.modes) for rule in authorizations)
        return cls(
            public=_union(rule for rule in authorizations if rule.public),
            authenticated=_union(
                rule for rule in authorizations if rule.public or rule.authenticated
            ),
            agents=_by_name((rule.agents, rule.modes) for rule in authorizations),
            members=members,
            groups=frozenset(members),
            through=_by_name((rule.origins, rule.modes) for rule in authorizations),
            restricted=restricted,
            conditional=conditional,
        )

    def under(self, circumstances: acl.ConditionContext) -> Rules:
        """The rules without conditions that apply in these circumstances."""
        held = (rule for rule in self.conditional if rule.holds(circumstances))
        return self._with(replace(rule, conditions=()) for rule in held)

    def _with(self, authorizations: Iterable[acl.Authorization]) -> Rules:
        """The rules with these authorizations in place of those with conditions."""
        held = Rules.of(tuple(authorizations))
        return Rules(
            public=self.public | held.public,
            authenticated=self.authenticated | held.authenticated,
            agents=_merged(self.agents, held.agents),
            members=_merged(self.members, held.members),
            groups=self.groups | held.groups,
            through=_merged(self.through, held.through),
            restricted=self.restricted,
        )

    def reaching(self, now_ms: int) -> Rules:
        """The rules that apply at this time through whichever client and issuer suits each."""
        current = (
            replace(rule, conditions=())
            for rule in self.conditional
            if acl.all_periods_hold(rule.conditions, now_ms)
        )
        return self._with(current) if self.conditional else self

    def next_change_ms(self, now_ms: int) -> int | None:
        """When time next changes what applies; ``None`` if it never does again."""
        return acl.next_change_ms(self._conditions(), now_ms)

    @property
    def client_groups(self) -> frozenset[str]:
        """The groups of clients that conditions name."""
        return _groups(self._conditions(), acl.ClientCondition)

    @property
    def issuer_groups(self) -> frozenset[str]:
        """The groups of issuers that conditions name."""
        return _groups(self._conditions(), acl.IssuerCondition)

    def _conditions(self) -> Iterable[acl.Condition]:
        return (condition for rule in self.conditional for condition in rule.conditions)

    @property
    def name_origins(self) -> bool:
        return bool(self.restricted)


NO_RULES = Rules.of(())
"""The rules where there is no ACL at all: they grant nothing."""


class Requester(Value):
    """An authenticated agent in the terms of access rules; the public has ``Rules.public``.

    ``names`` are the agent's canonical IRIs (:func:`podstead.wac.acl.agent_name`). ``groups`` are
    the groups in the rules that have one of the names as a member. ``origin`` is the canonical
    ``Origin`` of the request, ``None`` if it has none.
    """

    names: frozenset[str]
    groups: frozenset[str] = frozenset()
    origin: str | None = None
    owns_storage: bool = False


def agent_modes(rules: Rules, requester: Requester) -> Modes:
    """The modes of an authenticated agent, the public ones included."""
    held = rules.authenticated.union(
        *[rules.agents.get(name, NO_MODES) for name in requester.names],
        *[rules.members.get(group, NO_MODES) for group in requester.groups],
    )
    if requester.owns_storage:
        held |= {Mode.CONTROL}
    if requester.origin is not None and rules.name_origins:
        held &= rules.public | _modes_through(requester.origin, rules)
    return with_entailed(held)


def _modes_through(origin: str, rules: Rules) -> Modes:
    """The modes that a web application of this origin can have."""
    return ALL_MODES - rules.restricted | rules.through.get(origin, NO_MODES)


class Audience(Enum):
    """How far the right to read reaches, from the narrowest to the widest."""

    OWNER = "owner"
    """Nobody but the owner of the storage."""
    PEOPLE = "people"
    """The owner and agents or groups that the rules name."""
    SIGNED_IN = "signed-in"
    """Every agent that has identified itself."""
    EVERYONE = "everyone"


def audience_of(rules: Rules, owners: Collection[str]) -> Audience:
    """How far reading reaches under these rules; ``owners`` are the names of the owner
    (:func:`podstead.wac.acl.agent_name`)."""
    if Mode.READ in rules.public:
        return Audience.EVERYONE
    if Mode.READ in rules.authenticated:
        return Audience.SIGNED_IN
    if any(Mode.READ in modes for modes in rules.members.values()):
        return Audience.PEOPLE
    named = (agent for agent, modes in rules.agents.items() if Mode.READ in modes)
    return Audience.OWNER if all(agent in owners for agent in named) else Audience.PEOPLE
