"""Conditions of access rules: rules, conditions and requesters in all combinations, against a plain
model and against the SPARQL query of the editor's draft, evaluated by another RDF library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph, URIRef

from podstead.core.date_times import write_time
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.wac.modes import Mode, Modes
from tests.support.wac_world import BASE, BOB, CAROL, PREFIXES, World, path

SUBJECT = f"{BASE}/pod/doc"
CLIENTS = ["https://app.example/id", "https://other.example/id"]
ISSUERS = ["https://idp.example", "https://idp2.example"]
NAMED_ISSUERS = [*ISSUERS, f"{ISSUERS[1]}/"]
GROUPS = {
    f"{BASE}/pod/groups#apps": {CLIENTS[0]},
    f"{BASE}/pod/groups#issuers": {f"{ISSUERS[0]}/", CLIENTS[1]},
    f"{BASE}/pod/groups#none": set[str](),
}
TIMES_MS = [1_000_000, 2_000_000, 3_000_000]
NOW_MS = [999_999, 1_000_000, 1_500_000, 2_000_000, 2_999_999, 3_000_000]
PREFIX = f"{PREFIXES}@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>.\n"
XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True)
class Condition:
    """A condition as it will be written; each field is Turtle."""

    types: tuple[str, ...] = ()
    statements: tuple[tuple[str, str], ...] = ()

    @property
    def turtle(self) -> str:
        said = [("a", each) for each in self.types] + list(self.statements)
        return "[ " + "; ".join(f"{predicate} {object_}" for predicate, object_ in said) + " ]"

    def objects(self, predicate: str) -> list[str]:
        return [object_.strip("<>") for name, object_ in self.statements if name == predicate]


@dataclass(frozen=True)
class Rule:
    """An authorization on the subject."""

    who: str
    mode: str
    conditions: tuple[Condition, ...] = ()

    @property
    def turtle(self) -> str:
        said = f"[] a acl:Authorization; acl:accessTo <{SUBJECT}>; {self.who}; acl:mode {self.mode}"
        named = "".join(f"; acl:condition {each.turtle}" for each in self.conditions)
        return f"{said}{named}."


@dataclass(frozen=True)
class Request:
    agent: str | None
    client: str | None
    issuer: str | None
    now_ms: int

    @property
    def identity(self) -> Identity | None:
        if self.agent is None:
            return None
        return Identity(
            self.agent, AuthenticationMethod.DPOP, client_id=self.client, issuer=self.issuer
        )


def time(at_ms: int) -> str:
    return f'"{write_time(at_ms)}"^^<{XSD}dateTime>'


def iris(names: Iterable[str]) -> list[str]:
    return [f"<{name}>" for name in names]


statements = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["acl:client"]), st.sampled_from(iris(CLIENTS))),
        st.tuples(st.just("acl:issuer"), st.sampled_from(iris(NAMED_ISSUERS))),
        st.tuples(
            st.sampled_from(["acl:clientGroup", "acl:issuerGroup"]), st.sampled_from(iris(GROUPS))
        ),
        st.tuples(
            st.sampled_from(["acl:clientClass", "acl:issuerClass"]),
            st.sampled_from(["foaf:Agent", "ex:Trusted"]),
        ),
        st.tuples(
            st.sampled_from(["access:begins", "access:ends"]),
            st.sampled_from([*map(time, TIMES_MS), '"tomorrow"']),
        ),
        st.just(("ex:note", '"kept"')),
    ),
    max_size=3,
    unique=True,
).map(tuple)
types = st.sampled_from(
    [
        ("acl:ClientCondition",),
        ("acl:IssuerCondition",),
        ("access:PeriodCondition",),
        ("acl:ClientCondition", "acl:IssuerCondition"),
        ("acl:Condition", "acl:ClientCondition"),
        ("ex:WeatherCondition",),
        (),
    ]
)
conditions = st.builds(Condition, types, statements)
fitting = st.one_of(
    st.sampled_from(iris(CLIENTS)).map(
        lambda each: Condition(("acl:ClientCondition",), (("acl:client", each),))
    ),
    st.sampled_from(iris(ISSUERS)).map(
        lambda each: Condition(("acl:IssuerCondition",), (("acl:issuer", each),))
    ),
)
WHO = [
    f"acl:agent <{BOB}>",
    f"acl:agent <{CAROL}>",
    "acl:agentClass acl:AuthenticatedAgent",
    "acl:agentClass foaf:Agent",
]
MODES = {"acl:Read": {"read"}, "acl:Write": {"write", "append"}, "acl:Append": {"append"}}


def rules(condition: st.SearchStrategy[Condition]) -> st.SearchStrategy[list[Rule]]:
    some = st.lists(condition, max_size=2).map(tuple)
    return st.lists(
        st.builds(Rule, st.sampled_from(WHO), st.sampled_from([*MODES]), some), max_size=4
    )


requests = st.builds(
    Request,
    agent=st.sampled_from([BOB, CAROL]),
    client=st.sampled_from([None, *CLIENTS]),
    issuer=st.sampled_from([None, *ISSUERS, f"{ISSUERS[0]}/"]),
    now_ms=st.sampled_from(NOW_MS),
) | st.builds(Request, st.none(), st.none(), st.none(), st.sampled_from(NOW_MS))


# --- the plain model ---------------------------------------------------------------------------


def slashless(name: str | None) -> str | None:
    return None if name is None else name.removesuffix("/")


def holds(condition: Condition, request: Request) -> bool:
    """What the draft and the page of the vocabulary say, for one condition."""
    checks = {
        "acl:ClientCondition": client_holds,
        "acl:IssuerCondition": issuer_holds,
        "access:PeriodCondition": period_holds,
    }
    return all(checks[each](condition, request) for each in condition.types if each in checks)


def client_holds(condition: Condition, request: Request) -> bool:
    groups = condition.objects("acl:clientGroup")
    return (
        "foaf:Agent" in condition.objects("acl:clientClass")
        or request.client in condition.objects("acl:client")
        or any(request.client in GROUPS[group] for group in groups)
    )


def issuer_holds(condition: Condition, request: Request) -> bool:
    issuer = slashless(request.issuer)
    groups = condition.objects("acl:issuerGroup")
    named = {slashless(each) for each in condition.objects("acl:issuer")}
    members = {slashless(each) for group in groups for each in GROUPS[group]}
    return "foaf:Agent" in condition.objects("acl:issuerClass") or (
        issuer is not None and issuer in named | members
    )


def period_holds(condition: Condition, request: Request) -> bool:
    said = condition.objects("access:begins") + condition.objects("access:ends")
    known = {time(each).strip("<>"): each for each in TIMES_MS}
    if not said or any(each not in known for each in said):
        return False
    return all(known[each] <= request.now_ms for each in condition.objects("access:begins")) and (
        all(request.now_ms < known[each] for each in condition.objects("access:ends"))
    )


def model(document: list[Rule], request: Request) -> set[str]:
    held = set[str]()
    for rule in document:
        _, _, named = rule.who.partition(" ")
        matches = named == "foaf:Agent" or (
            request.agent is not None and named in ("acl:AuthenticatedAgent", f"<{request.agent}>")
        )
        if matches and all(holds(each, request) for each in rule.conditions):
            held |= MODES[rule.mode]
    return held


# --- ours --------------------------------------------------------------------------------------


def world_with(document: list[Rule]) -> World:
    world = World()
    world.owners[path("/pod/")] = f"{BASE}/pod/#me"
    members = (
        f"<{group}> vcard:hasMember <{member}>."
        for group, known in GROUPS.items()
        for member in sorted(known)
    )
    world.store("/pod/groups", "\n".join(members))
    world.store("/pod/doc")
    prefix = "@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>.\n"
    world.acl("/pod/doc", prefix + "\n".join(rule.turtle for rule in document))
    return world


async def ours(world: World, request: Request) -> Modes:
    world.clock.time_ms = request.now_ms
    return (await world.grant("/pod/doc", request.identity)).user


def names(modes: Modes) -> set[str]:
    return {mode.value for mode in modes}


@given(rules(conditions | fitting), requests)
@settings(max_examples=150)
async def test_decisions_agree_with_a_plain_model(document: list[Rule], request: Request) -> None:
    """W-9."""
    world = world_with(document)
    assert names(await ours(world, request)) == model(document, request)


@given(rules(conditions | fitting), requests, st.sampled_from(NOW_MS))
@settings(max_examples=60)
async def test_a_decision_holds_until_it_says(
    document: list[Rule], request: Request, later_ms: int
) -> None:
    """Time changes no decision before ``until_ms``."""
    world = world_with(document)
    world.clock.time_ms = request.now_ms
    grant = await world.grant("/pod/doc", request.identity)
    if later_ms < request.now_ms or (grant.until_ms is not None and later_ms >= grant.until_ms):
        return
    later = await ours(world, replace(request, now_ms=later_ms))
    assert later == grant.user


@given(rules(conditions | fitting), requests)
@settings(max_examples=60)
async def test_a_condition_never_grants_more(document: list[Rule], request: Request) -> None:
    bare = [replace(rule, conditions=()) for rule in document]
    assert await ours(world_with(document), request) <= await ours(world_with(bare), request)


@given(rules(conditions | fitting), requests)
@settings(max_examples=60)
async def test_the_public_holds_nothing_that_an_agent_does_not(
    document: list[Rule], request: Request
) -> None:
    """W-52."""
    world = world_with(document)
    world.clock.time_ms = request.now_ms
    grant = await world.grant("/pod/doc", request.identity)
    public = await world.grant("/pod/doc", None)
    assert grant.public == public.user
    assert grant.public <= grant.user


# --- the draft's query -------------------------------------------------------------------------

_PREFIXES = """\
PREFIX acl: <http://www.w3.org/ns/auth/acl#>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
"""
_AS_PRINTED = """
ASK {
  ?authorization
    a acl:Authorization ;
    acl:accessTo $resource ;
    acl:agent $agent ;
    acl:mode $mode ;
    acl:condition
      [ a acl:ClientCondition ; acl:client $client ] ,
      [ a acl:IssuerCondition ; acl:issuer $issuer ] .
}
"""
"""The query of the draft's section "Authorization Matching", on the default graph."""

_EVERY_CONDITION = """
ASK {
  ?authorization a acl:Authorization ; acl:accessTo $resource ; acl:agent $agent ; acl:mode $mode .
  FILTER NOT EXISTS {
    ?authorization acl:condition ?condition . ?condition a acl:ClientCondition .
    FILTER NOT EXISTS { ?condition acl:client $client }
  }
  FILTER NOT EXISTS {
    ?authorization acl:condition ?condition . ?condition a acl:IssuerCondition .
    FILTER NOT EXISTS { ?condition acl:issuer $issuer }
  }
}
"""
"""The same for any number of conditions of each type: no condition that fails."""

_NOBODY = "https://nobody.example/"


def asks(query: str, document: list[Rule], request: Request, mode: str) -> bool:
    graph = Graph().parse(
        data=PREFIX + "\n".join(rule.turtle for rule in document),
        format="turtle",
        publicID=f"{SUBJECT}.acl",
    )
    bindings = {
        "resource": URIRef(SUBJECT),
        "agent": URIRef(request.agent or _NOBODY),
        "mode": URIRef("http://www.w3.org/ns/auth/acl#" + mode.removeprefix("acl:")),
        "client": URIRef(request.client or _NOBODY),
        "issuer": URIRef(request.issuer or _NOBODY),
    }
    return bool(graph.query(_PREFIXES + query, initBindings=bindings).askAnswer)


named_rules = st.lists(
    st.builds(
        Rule,
        st.sampled_from(WHO[:2]),
        st.sampled_from(["acl:Read", "acl:Append"]),
        st.lists(fitting, max_size=3).map(tuple),
    ),
    max_size=4,
)
named_requests = st.builds(
    Request,
    agent=st.sampled_from([BOB, CAROL]),
    client=st.sampled_from([None, *CLIENTS]),
    issuer=st.sampled_from([None, *ISSUERS]),
    now_ms=st.just(0),
)
_MODES = {"acl:Read": Mode.READ, "acl:Append": Mode.APPEND}


@given(named_rules, named_requests)
@settings(max_examples=60)
async def test_decisions_agree_with_the_draft_s_query(
    document: list[Rule], request: Request
) -> None:
    """W-9: what the query as printed matches is granted where no other condition is beside, and
    what is granted is what the query for every condition matches."""
    held = await ours(world_with(document), request)
    both = [rule for rule in document if _is_one_of_each(rule)]
    held_by_both = await ours(world_with(both), request)
    for name, mode in _MODES.items():
        assert asks(_EVERY_CONDITION, document, request, name) == (mode in held)
        assert asks(_AS_PRINTED, both, request, name) == (mode in held_by_both)


def _is_one_of_each(rule: Rule) -> bool:
    types = [each.types for each in rule.conditions]
    return sorted(types) == [("acl:ClientCondition",), ("acl:IssuerCondition",)]
