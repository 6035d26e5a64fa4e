"""Edits the plain rules of an ACL: from a graph and changes to a new graph.

Pure. Only plain rules (:mod:`podstead.wac.sharing.rules`) that name the grantee are changed, and
only as far as the change concerns them. All other statements stay as they are. A special rule goes
on granting whatever it grants to the grantee.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.core.date_times import write_time
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Object, Subject, Triple
from podstead.wac import acl
from podstead.wac.acl import ALWAYS, PeriodCondition
from podstead.wac.modes import NO_MODES, Modes, with_entailed
from podstead.wac.sharing import rules

_NEW_RULE: Final = "share-"


@dataclass(frozen=True, slots=True)
class AccessChange:
    """The modes that a grantee is to have by plain rules: on the subject of the ACL itself
    (``here``) and on everything inside. ``None`` leaves them as they are. They apply during the
    ``period``, and replace what rules with one of the periods ``replaced`` grant, ``None`` for all
    of them."""

    grantee: rules.Grantee
    here: Modes | None = None
    inside: Modes | None = None
    period: PeriodCondition = ALWAYS
    replaced: frozenset[PeriodCondition] | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    """The ACL that is edited, and its subject."""

    acl_url: str
    subject_url: str


def with_changes(
    graph: Graph, changes: Iterable[AccessChange], *, acl_url: str, subject_url: str
) -> Graph:
    """The ACL after the changes, which are made in order."""
    target = _Target(acl_url, subject_url)
    for change in changes:
        graph = _changed(graph, change, target)
    return graph


def as_own_rules(graph: Graph, *, from_url: str, acl_url: str, subject_url: str) -> Graph:
    """An ACL for the subject that grants what it inherits from the container at ``from_url``, whose
    ACL is ``graph``.

    Every authorization that applies to the contents of the container is copied with all its
    statements, special or not; only its object is replaced.
    """
    inherited = [
        rule.node
        for rule in rules.read_rules(graph, subject_url=from_url).rules
        if rule.authorization.default
    ]
    conditions = [
        node
        for rule in inherited
        for node in graph.objects(rule, rules.CONDITION)
        if isinstance(node, Iri) and graph.about(node)
    ]
    names = _copied_names(graph, [*inherited, *conditions], acl_url)
    subject = Iri(subject_url)
    predicates = (acl.ACCESS_TO, acl.DEFAULT) if subject_url.endswith("/") else (acl.ACCESS_TO,)
    triples: list[Triple] = []
    for node in inherited:
        triples += [
            _renamed(triple, names)
            for triple in _statements(graph, node)
            if not (triple[0] in inherited and triple[1] in (acl.ACCESS_TO, acl.DEFAULT))
        ]
        triples += [(names.get(node, node), predicate, subject) for predicate in predicates]
    return Graph(triples)


def _changed(graph: Graph, change: AccessChange, target: _Target) -> Graph:
    plain = [
        rule
        for rule in rules.read_rules(graph, subject_url=target.subject_url).plain
        if change.grantee in rules.grantees_of(rule.authorization)
        and (change.replaced is None or rule.period in change.replaced)
    ]
    edits_here = _differs(change.here, change.period, _granted(plain, access_to=True))
    edits_inside = _differs(change.inside, change.period, _granted(plain, access_to=False))
    if not (edits_here or edits_inside):
        return graph
    here = _wanted(change.here if edits_here else None, change.period)
    inside = _wanted(change.inside if edits_inside else None, change.period)
    removed: set[Triple] = set()
    for rule in plain:
        authorization = rule.authorization
        if not (
            (edits_here and authorization.access_to) or (edits_inside and authorization.default)
        ):
            continue
        removed.update(_without(graph, rule, change.grantee))
        # Restate what the rule says about the part that does not change.
        if authorization.access_to and not edits_here:
            _add(here, rule)
        if authorization.default and not edits_inside:
            _add(inside, rule)
    kept = [triple for triple in graph if triple not in removed]
    return Graph([*kept, *_new_rules(graph, change.grantee, here, inside, target)])


_ByPeriod = dict[PeriodCondition, Modes]


def _granted(rules: Iterable[rules.AccessRule], *, access_to: bool) -> _ByPeriod:
    granted: _ByPeriod = {}
    for rule in rules:
        if rule.authorization.access_to if access_to else rule.authorization.default:
            _add(granted, rule)
    return granted


def _add(modes: _ByPeriod, rule: rules.AccessRule) -> None:
    modes[rule.period] = modes.get(rule.period, NO_MODES) | rule.authorization.modes


def _wanted(modes: Modes | None, period: PeriodCondition) -> _ByPeriod:
    return {period: with_entailed(modes)} if modes else {}


def _differs(wanted: Modes | None, period: PeriodCondition, held: _ByPeriod) -> bool:
    return wanted is not None and _wanted(wanted, period) != held


def _without(graph: Graph, rule: rules.AccessRule, grantee: rules.Grantee) -> Iterator[Triple]:
    """The statements to remove so that a plain rule no longer names the grantee: all of them if it
    names nobody else."""
    names_others = len(rules.grantees_of(rule.authorization)) > 1
    predicate, _ = grantee.statement
    for statement, objects in graph.about(rule.node).items():
        for each in objects:
            if not names_others or (statement == predicate and _names(each, grantee)):
                yield (rule.node, statement, each)
            if not names_others and statement == rules.CONDITION and isinstance(each, BlankNode):
                for predicate_, said in graph.about(each).items():
                    yield from ((each, predicate_, value) for value in said)


def _names(term: Object, grantee: rules.Grantee) -> bool:
    if grantee.kind is rules.GranteeKind.AGENT:
        return isinstance(term, Iri) and acl.agent_name(term.value) == grantee.iri
    return term == grantee.statement[1]


def _new_rules(
    graph: Graph, grantee: rules.Grantee, here: _ByPeriod, inside: _ByPeriod, target: _Target
) -> Iterator[Triple]:
    """One rule for each period if the same modes are granted on the subject and inside, else
    two."""
    names = _free_names(graph, target.acl_url)
    for period in dict.fromkeys((*here, *inside)):
        this = with_entailed(here.get(period, NO_MODES))
        below = with_entailed(inside.get(period, NO_MODES))
        both = this == below
        parts = [(this, (acl.ACCESS_TO, acl.DEFAULT) if both else (acl.ACCESS_TO,))]
        if not both:
            parts.append((below, (acl.DEFAULT,)))
        for modes, about in parts:
            if modes:
                node = next(names)
                yield from _new_rule(node, grantee, modes, about, target)
                if period != ALWAYS:
                    yield from _condition(graph, node, period)


def _new_rule(
    node: Iri, grantee: rules.Grantee, modes: Modes, about: tuple[Iri, ...], target: _Target
) -> Iterator[Triple]:
    subject = Iri(target.subject_url)
    yield (node, acl.TYPE, acl.AUTHORIZATION)
    yield (node, *grantee.statement)
    for predicate in about:
        yield (node, predicate, subject)
    for iri in acl.iris_of(modes):
        yield (node, acl.MODE, Iri(iri))


def _condition(graph: Graph, rule: Iri, period: PeriodCondition) -> Iterator[Triple]:
    """The condition that a rule applies during a period, in a blank node that is new to the
    graph."""
    name = rule.value.rpartition("#")[2].replace("-", "")
    taken = {term.value for triple in graph for term in triple if isinstance(term, BlankNode)}
    while name in taken:
        name += "x"
    node = BlankNode(name)
    yield (rule, rules.CONDITION, node)
    yield (node, acl.TYPE, rules.PERIOD_CONDITION)
    for predicate, at_ms in ((rules.BEGINS, period.begins_ms), (rules.ENDS, period.ends_ms)):
        if at_ms is not None:
            yield (node, predicate, Literal(write_time(at_ms), datatype=Iri(vocab.XSD_DATE_TIME)))


def _free_names(graph: Graph, acl_url: str) -> Iterator[Iri]:
    """Names for new rules that do not occur in the document."""
    taken = {
        term.value
        for subject, _, object_ in graph
        for term in (subject, object_)
        if isinstance(term, Iri)
    }
    number = 0
    while True:
        number += 1
        name = f"{acl_url}#{_NEW_RULE}{number}"
        if name not in taken:
            yield Iri(name)


def _copied_names(graph: Graph, nodes: Iterable[Subject], acl_url: str) -> dict[Subject, Subject]:
    """The names of copied rules in their new document, each different; blank nodes keep theirs."""
    names: dict[Subject, Subject] = {}
    taken: set[Subject] = set()
    free = _free_names(graph, acl_url)
    for node in nodes:
        if isinstance(node, Iri):
            fragment = node.value.partition("#")[2]
            name = Iri(f"{acl_url}#{fragment}") if fragment else next(free)
            while name in taken:
                name = next(free)
            names[node] = name
            taken.add(name)
    return names


def _statements(graph: Graph, node: Subject) -> list[Triple]:
    """All statements about a node, about the blank nodes that it leads to, and about its
    conditions, without which it would grant more."""
    found: dict[Triple, None] = {}
    pending: list[Subject] = [node]
    seen: set[Subject] = {node}
    while pending:
        subject = pending.pop()
        for predicate, objects in graph.about(subject).items():
            for each in objects:
                found[(subject, predicate, each)] = None
                follows = isinstance(each, BlankNode) or predicate == rules.CONDITION
                if follows and not isinstance(each, Literal) and each not in seen:
                    seen.add(each)
                    pending.append(each)
    return list(found)


def _renamed(triple: Triple, names: Mapping[Subject, Subject]) -> Triple:
    subject, predicate, object_ = triple
    renamed: Object = object_
    if isinstance(object_, Iri | BlankNode):
        renamed = names.get(object_, object_)
    return (names.get(subject, subject), predicate, renamed)
