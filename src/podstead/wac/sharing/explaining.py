"""Explains an agent's modes: the rules that grant each, or what is missing.

Pure. The modes are those of the gate's own decision (:func:`podstead.wac.decision.agent_modes`);
this module only names the rules that lead to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from podstead.wac.acl import Authorization
from podstead.wac.decision import Requester, Rules, agent_modes
from podstead.wac.modes import Mode, Modes
from podstead.wac.sharing.rules import AUTHENTICATED, EVERYONE, AccessRule, Grantee, agent, group


class Cause(Enum):
    """What decides about a mode."""

    RULE = "rule"
    """A rule grants it."""
    OWNER = "owner"
    """The agent owns the storage, and owners always have Control."""
    ORIGIN = "origin"
    """Rules name other applications for it, so this application does not have it."""
    NO_RULE = "no rule"
    """No rule grants it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a mode is held or not.

    ``RULE`` comes with the rule and the grantee that matches the agent; ``ORIGIN`` with a rule that
    names origins.
    """

    mode: Mode
    cause: Cause
    rule: AccessRule | None = None
    grantee: Grantee | None = None

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


def explain(applying: tuple[AccessRule, ...], requester: Requester | None) -> Explanation:
    """Why an agent, or the public, has modes under the rules that apply to a resource."""
    rules = Rules.of(tuple(rule.authorization for rule in applying))
    modes = rules.public if requester is None else agent_modes(rules, requester)
    reasons: list[Reason] = []
    for mode in Mode:
        found = _grants(mode, applying, requester)
        if mode not in modes:
            found = _obstacles(mode, applying, requester if found else None)
        reasons += found
    return Explanation(modes, tuple(reasons))


def _grants(
    mode: Mode, applying: tuple[AccessRule, ...], requester: Requester | None
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
    mode: Mode, applying: tuple[AccessRule, ...], restricted: Requester | None
) -> list[Reason]:
    """Why the mode is not held: the rules that name origins if it would be held without them."""
    if restricted is not None and restricted.origin is not None:
        return [
            Reason(mode, Cause.ORIGIN, rule)
            for rule in applying
            if mode in rule.authorization.modes and rule.authorization.origins
        ]
    return [Reason(mode, Cause.NO_RULE)]


def _matching(rule: Authorization, requester: Requester | None) -> Grantee | None:
    """The grantee of the rule that matches the agent; the most specific if several do."""
    if requester is not None:
        for name in sorted(rule.agents & requester.names):
            return agent(name)
        for iri in sorted(rule.groups & requester.groups):
            return group(iri)
        if rule.authenticated:
            return AUTHENTICATED
    return EVERYONE if rule.public else None
