"""Reads and evaluates the conditions of authorizations (WAC, editor's draft of April 2026, "Access
Conditions" and "Condition Evaluation").

Pure. A condition narrows an authorization, which has an effect only while all of its conditions
hold. There are three kinds: the client that acts for the agent, the issuer that vouches for the
agent, and the period in which the request is made. This server announces them (:data:`SUPPORTED`).
A condition of any other kind, or of none, is not evaluated: the draft has the authorization apply
as if the condition were absent. A condition of a known kind that cannot be understood never holds.

The period is a kind of this server's own (``docs/build/conditions.md``, decision 0044).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from podstead.core import vocab
from podstead.core.date_times import read_time
from podstead.core.value import Value
from podstead.rdf.graph import Description, Graph, Iri, Literal

SUPPORTED: Final = (
    vocab.ACL_CLIENT_CONDITION,
    vocab.ACL_ISSUER_CONDITION,
    vocab.ACCESS_PERIOD_CONDITION,
)
"""The types of conditions that are announced and evaluated."""

_TYPE: Final = Iri(vocab.RDF_TYPE)
_CONDITION: Final = Iri(vocab.ACL_CONDITION)
_FINAL_SLASH: Final = "/"


class Circumstances(Value):
    """What conditions are evaluated against.

    ``client`` is the identifier of the application and ``issuer`` that of the provider of the
    token; ``None`` if there is none. The groups are those in the conditions that have it as a
    member. ``now_ms`` is Unix time.
    """

    now_ms: int
    client: str | None = None
    issuer: str | None = None
    client_groups: frozenset[str] = frozenset()
    issuer_groups: frozenset[str] = frozenset()


class _Parties(Value):
    """Parties by name and by group; ``anyone`` if there is no restriction."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    anyone: bool = False

    def contains(self, name: str | None, groups: frozenset[str]) -> bool:
        return self.anyone or name in self.names or not self.groups.isdisjoint(groups)


class ClientCondition(_Parties):
    """The applications that may act for the agent."""

    def holds(self, circumstances: Circumstances) -> bool:
        return self.contains(circumstances.client, circumstances.client_groups)


class IssuerCondition(_Parties):
    """The providers whose word about the agent is accepted. Names have no final slash, in which the
    names of one provider may differ."""

    def holds(self, circumstances: Circumstances) -> bool:
        issuer = circumstances.issuer
        name = None if issuer is None else issuer.removesuffix(_FINAL_SLASH)
        return self.contains(name, circumstances.issuer_groups)


class PeriodCondition(Value):
    """The time from ``begins_ms`` on and before ``ends_ms``; ``None`` for no limit. It never holds
    if what it states is no time (``is_valid``)."""

    begins_ms: int | None = None
    ends_ms: int | None = None
    is_valid: bool = True

    def holds(self, circumstances: Circumstances) -> bool:
        now_ms = circumstances.now_ms
        return (
            self.is_valid
            and (self.begins_ms is None or self.begins_ms <= now_ms)
            and (self.ends_ms is None or now_ms < self.ends_ms)
        )


ALWAYS: Final = PeriodCondition()
"""The period of a rule without one."""

Condition: TypeAlias = ClientCondition | IssuerCondition | PeriodCondition


def all_periods_hold(conditions: Iterable[Condition], now_ms: int) -> bool:
    """Whether all periods among the conditions hold."""
    now = Circumstances(now_ms)
    return all(each.holds(now) for each in conditions if isinstance(each, PeriodCondition))


def next_change_ms(conditions: Iterable[Condition], now_ms: int) -> int | None:
    """When time changes whether one of the conditions holds; ``None`` if it never does again."""
    return min(
        (
            limit_ms
            for condition in conditions
            if isinstance(condition, PeriodCondition)
            for limit_ms in (condition.begins_ms, condition.ends_ms)
            if limit_ms is not None and limit_ms > now_ms
        ),
        default=None,
    )


def first_end_ms(conditions: Iterable[Condition]) -> int | None:
    """When the first of the periods among the conditions ends; ``None`` if none does."""
    ends = (each.ends_ms for each in conditions if isinstance(each, PeriodCondition))
    return min((each for each in ends if each is not None), default=None)


def earliest(one_ms: int | None, other_ms: int | None) -> int | None:
    """The earlier of two times; ``None`` stands for never."""
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return min(one_ms, other_ms)


def read_conditions(graph: Graph, authorization: Description) -> tuple[Condition, ...]:
    """The conditions of an authorization that are evaluated. A node of several types is a condition
    of each."""
    return tuple(
        condition
        for types, description in _nodes(graph, authorization)
        for condition in _conditions(types, description)
    )


def unknown_conditions(graph: Graph, authorization: Description) -> tuple[str, ...]:
    """The types of the conditions of an authorization that are not evaluated; an empty text for one
    without a type."""
    unknown: dict[str, None] = {}
    for types, _ in _nodes(graph, authorization):
        if not any(type_ in SUPPORTED for type_ in types):
            unknown |= dict.fromkeys(types or ("",))
    return tuple(unknown)


def _nodes(
    graph: Graph, authorization: Description
) -> Iterator[tuple[tuple[str, ...], Description]]:
    """The types of each condition of an authorization, and what the ACL states about it."""
    for node in authorization.get(_CONDITION, ()):
        description: Description = {} if isinstance(node, Literal) else graph.about(node)
        types = {each.value for each in description.get(_TYPE, ()) if isinstance(each, Iri)}
        yield tuple(sorted(types - {vocab.ACL_CONDITION_CLASS})), description


def _conditions(types: tuple[str, ...], description: Description) -> Iterator[Condition]:
    if vocab.ACL_CLIENT_CONDITION in types:
        yield ClientCondition(
            _iris(description, vocab.ACL_CLIENT),
            _iris(description, vocab.ACL_CLIENT_GROUP),
            vocab.FOAF_AGENT in _iris(description, vocab.ACL_CLIENT_CLASS),
        )
    if vocab.ACL_ISSUER_CONDITION in types:
        issuers = _iris(description, vocab.ACL_ISSUER)
        yield IssuerCondition(
            frozenset(issuer.removesuffix(_FINAL_SLASH) for issuer in issuers),
            _iris(description, vocab.ACL_ISSUER_GROUP),
            vocab.FOAF_AGENT in _iris(description, vocab.ACL_ISSUER_CLASS),
        )
    if vocab.ACCESS_PERIOD_CONDITION in types:
        yield _period(description)


def _period(description: Description) -> PeriodCondition:
    """A period that states no limit never holds: a misspelt property must not lift a limit. Of
    several limits, the narrowest applies."""
    try:
        begins_ms = _times_ms(description, vocab.ACCESS_BEGINS)
        ends_ms = _times_ms(description, vocab.ACCESS_ENDS)
    except ValueError:
        return PeriodCondition(is_valid=False)
    return PeriodCondition(
        max(begins_ms, default=None), min(ends_ms, default=None), bool(begins_ms or ends_ms)
    )


def _times_ms(description: Description, predicate: str) -> list[int]:
    """The times that are stated. Raises ValueError for anything but ``xsd:dateTime``."""
    times_ms = []
    for each in description.get(Iri(predicate), ()):
        if not isinstance(each, Literal) or each.datatype.value != vocab.XSD_DATE_TIME:
            raise ValueError("No date and time")
        times_ms.append(read_time(each.value))
    return times_ms


def _iris(description: Description, predicate: str) -> frozenset[str]:
    return frozenset(
        each.value for each in description.get(Iri(predicate), ()) if isinstance(each, Iri)
    )
