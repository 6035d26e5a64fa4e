"""Summarizes how widely a resource can be read, for lists of members.

The summary is derived from the rules that ``decision.py`` applies and decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from podstead.wac.decision import Rules
from podstead.wac.modes import Mode


class Reach(Enum):
    """How far the right to read reaches, from the narrowest to the widest."""

    OWNER = "owner"
    """Nobody but the owner of the storage."""
    PEOPLE = "people"
    """The owner and agents or groups that the rules name."""
    SIGNED_IN = "signed-in"
    """Every agent that has identified itself."""
    EVERYONE = "everyone"


def reach_of(rules: Rules, owners: Collection[str]) -> Reach:
    """How far reading reaches under these rules; ``owners`` are the names of the owner
    (:func:`podstead.wac.iris.agent_name`)."""
    if Mode.READ in rules.public:
        return Reach.EVERYONE
    if Mode.READ in rules.authenticated:
        return Reach.SIGNED_IN
    if any(Mode.READ in modes for modes in rules.members.values()):
        return Reach.PEOPLE
    named = (agent for agent, modes in rules.agents.items() if Mode.READ in modes)
    return Reach.OWNER if all(agent in owners for agent in named) else Reach.PEOPLE
