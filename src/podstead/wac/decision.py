"""Which modes does an agent hold under the rules that apply? WAC, "Authorization Evaluation".

Pure: the rules, who asks, and from which origin come in as values. The modes of all matching
authorizations add up (W-16), Write brings Append with it and nothing else entails anything (W-15).

The origin rule (W-17). Every web origin is trusted until the applying rules themselves name
origins for a mode; then a request with an ``Origin`` header holds that mode only if the mode is
open to everyone or one of those authorizations names its origin. Agent and origin may be named by
different authorizations, and one that names only origins gives no agent anything. Without the
header the rule does not apply.

The owner rule (W-7, W-18). The owner of a storage always keeps Control in it, so that no ACL, not
even one that cannot be read, locks the owner out for good. Where rules name origins for Control,
the web applications that the owner uses must come from one of them too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podstead.wac.acl import Authorization
from podstead.wac.modes import ALL_MODES, NO_MODES, Mode, Modes, with_entailed


def _union(rules: Iterable[Authorization]) -> Modes:
    return NO_MODES.union(*(rule.modes for rule in rules))


@dataclass(frozen=True, slots=True)
class Rules:
    """The authorizations that apply to a resource, and what they grant regardless of the agent."""

    authorizations: tuple[Authorization, ...]
    public: Modes
    groups: frozenset[str]
    name_origins: bool

    @classmethod
    def of(cls, authorizations: tuple[Authorization, ...]) -> Rules:
        return cls(
            authorizations,
            public=_union(rule for rule in authorizations if rule.public),
            groups=frozenset[str]().union(*(rule.groups for rule in authorizations)),
            name_origins=any(rule.origins for rule in authorizations),
        )


NO_RULES = Rules.of(())
"""What applies where there is no ACL at all: nothing is granted."""


@dataclass(frozen=True, slots=True)
class Requester:
    """A proven identity in the terms of access rules; the public holds ``Rules.public``.

    ``names`` are its IRIs, canonical (:func:`podstead.wac.iris.agent_name`). ``groups`` are those
    of the rules' groups that have one of the names as a member. ``origin`` is the request's
    ``Origin``, canonical, ``None`` if it had none.
    """

    names: frozenset[str]
    groups: frozenset[str] = frozenset()
    origin: str | None = None
    owns_storage: bool = False


def agent_modes(rules: Rules, requester: Requester) -> Modes:
    """What a proven identity holds, the public modes included."""
    held = _union(rule for rule in rules.authorizations if _names_agent(rule, requester))
    if requester.owns_storage:
        held |= {Mode.CONTROL}
    if requester.origin is not None and rules.name_origins:
        held &= rules.public | _modes_through(requester.origin, rules)
    return with_entailed(held)


def _names_agent(rule: Authorization, requester: Requester) -> bool:
    return (
        rule.public
        or rule.authenticated
        or not rule.agents.isdisjoint(requester.names)
        or not rule.groups.isdisjoint(requester.groups)
    )


def _modes_through(origin: str, rules: Rules) -> Modes:
    """The modes that a web application of the origin may be used for."""
    naming_origins = [rule for rule in rules.authorizations if rule.origins]
    allowed = _union(rule for rule in naming_origins if origin in rule.origins)
    return ALL_MODES - _union(naming_origins) | allowed
