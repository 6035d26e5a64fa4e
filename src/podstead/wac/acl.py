"""Parses the triples of an ACL into the authorizations about its subject.

WAC, "Authorization Rule" and "Authorization Conformance". Pure. An authorization applies if it has
the class, a known mode and a known subject, and if its object is the resource that the ACL belongs
to (W-11, W-12). Everything else in the document is ignored without error: unknown modes, classes
and predicates never widen access (W-16).

An authorization whose object is a fragment of a container, such as the WebID ``./#me`` of a pod,
covers the container's own statements. It can grant only Read, which allows reading the container
without its members. Other servers and programs ignore it, so it never opens the list of members.

The conditions of an authorization are evaluated with each request (W-9).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from podstead.core import vocab
from podstead.core.date_times import read_time
from podstead.core.errors import BadRequest, Conflict
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.core.value import Value
from podstead.rdf.codes import RdfCodes
from podstead.rdf.errors import RdfTooLarge
from podstead.rdf.graph import Description, Graph, Iri, Literal, Subject
from podstead.wac.codes import WacCodes
from podstead.wac.modes import NO_MODES, Mode, Modes, with_entailed

NOSTR_DID: Final = "did:nostr:"
"""What the DIDs of Nostr keys begin with: agents that rules may name, whether or not requests can
be signed with such keys here."""


def origin_of(iri: str) -> str | None:
    """A web origin as browsers serialize it (RFC 6454 section 6.2); ``None`` if the IRI is anything
    else, such as the opaque origin ``null``."""
    url = canonical_url(iri)
    if url is None or url.count("/") != 3 or not url.endswith("/"):
        return None
    return url[:-1]


def local_path(iri: str, base_url: str) -> ResourcePath | None:
    """The canonical path of the resource that the IRI names on this server, whose origin is
    ``base_url``; ``None`` if it names none."""
    url, own = canonical_url(iri), canonical_url(base_url)
    if url is None or own is None or not url.startswith(own):
        return None
    return ResourcePath(url[len(own) - 1 :])


def agent_name(iri: str) -> str:
    """The form in which an agent's IRI is compared: unchanged, except that the hexadecimal key of a
    ``did:nostr`` is case-insensitive (A-150)."""
    return iri.lower() if iri.startswith(NOSTR_DID) else iri


MAX_GROUPS = 32
"""How many agent groups one ACL may name: a decision may have to look up or fetch each of them."""

MAX_ACL_BYTES = 512 * 1024
"""The maximum size of an ACL that is written, about 2,500 rules: to read more of them would keep
other requests waiting."""

UNMATCHABLE_ORIGIN = ""
"""Stands for an object of ``acl:origin`` that is not an origin: it still restricts (W-17)."""

TYPE: Final = Iri(vocab.RDF_TYPE)
AUTHORIZATION: Final = Iri(vocab.ACL_AUTHORIZATION)
ACCESS_TO: Final = Iri(vocab.ACL_ACCESS_TO)
DEFAULT: Final = Iri(vocab.ACL_DEFAULT)
MODE: Final = Iri(vocab.ACL_MODE)
AGENT: Final = Iri(vocab.ACL_AGENT)
AGENT_CLASS: Final = Iri(vocab.ACL_AGENT_CLASS)
AGENT_GROUP: Final = Iri(vocab.ACL_AGENT_GROUP)
ORIGIN: Final = Iri(vocab.ACL_ORIGIN)

_MODE_IRIS: Final = {
    Mode.READ: vocab.ACL_READ,
    Mode.APPEND: vocab.ACL_APPEND,
    Mode.WRITE: vocab.ACL_WRITE,
    Mode.CONTROL: vocab.ACL_CONTROL,
}
MODES: Final = {iri: mode for mode, iri in _MODE_IRIS.items()}
"""The modes by their IRIs."""


class Authorization(Value):
    """One authorization about the ACL's subject.

    ``access_to`` is true if it is about the subject itself, ``default`` if it is about everything
    below the subject, and ``description`` if it is about a fragment of a container.
    ``modes`` include the entailed ones. ``public`` and ``authenticated`` stand
    for the agent classes ``foaf:Agent`` and ``acl:AuthenticatedAgent``. An authorization that names
    only ``origins`` grants nothing to any agent. Agent names and origins are canonical. An
    authorization has an effect only while all ``conditions`` hold.
    """

    access_to: bool
    default: bool
    modes: Modes
    agents: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    public: bool = False
    authenticated: bool = False
    origins: frozenset[str] = frozenset()
    description: bool = False
    conditions: tuple["Condition", ...] = ()

    def holds(self, circumstances: "ConditionContext") -> bool:
        """Whether all conditions hold."""
        return all(condition.holds(circumstances) for condition in self.conditions)

    @property
    def names_agents(self) -> bool:
        return self.public or self.authenticated or bool(self.agents or self.groups)


@dataclass(frozen=True, slots=True)
class AclDocument:
    """What an ACL says about its subject and about everything below it."""

    authorizations: tuple[Authorization, ...]

    def about_subject(self) -> tuple[Authorization, ...]:
        """The authorizations that apply to the subject of the ACL."""
        return tuple(rule for rule in self.authorizations if rule.access_to)

    def about_contents(self) -> tuple[Authorization, ...]:
        """The authorizations that apply to everything below without a closer ACL."""
        return tuple(rule for rule in self.authorizations if rule.default)

    def about_description(self) -> tuple[Authorization, ...]:
        """The authorizations that apply to a container without its members."""
        return tuple(rule for rule in self.authorizations if rule.description)

    def groups(self) -> frozenset[str]:
        """The IRIs of all groups named, those in conditions included."""
        return frozenset[str]().union(
            *(rule.groups for rule in self.authorizations),
            *(
                condition.groups
                for rule in self.authorizations
                for condition in rule.conditions
                if isinstance(condition, ClientCondition | IssuerCondition)
            ),
        )


DENYING_ACL = AclDocument(())
"""Grants nothing; stands for an ACL that cannot be parsed (W-7)."""


def read_acl(graph: Graph, *, subject_url: str) -> AclDocument:
    """What a stored ACL says about the resource at ``subject_url``.

    An ACL that names too many groups grants nothing.
    """
    document = _document(graph, subject_url)
    return document if len(document.groups()) <= MAX_GROUPS else DENYING_ACL


def check_acl_size(size_bytes: int) -> None:
    """Raise RdfTooLarge if an ACL has too many bytes."""
    if size_bytes > MAX_ACL_BYTES:
        raise RdfTooLarge(RdfCodes.TOO_MANY_BYTES, limit_bytes=MAX_ACL_BYTES)


def check_storable(graph: Graph, *, subject_url: str, of_storage_root: bool) -> None:
    """Refuse an ACL that must not be stored for ``subject_url``.

    Raises BadRequest if it names too many groups, and Conflict if it belongs to the root of a
    storage and grants nobody Control there (W-4), or only for a time. The caller has already parsed
    it (W-6).
    """
    document = _document(graph, subject_url)
    if len(document.groups()) > MAX_GROUPS:
        raise BadRequest(WacCodes.TOO_MANY_GROUPS, number=MAX_GROUPS)
    if of_storage_root and not any(
        Mode.CONTROL in rule.modes
        and rule.names_agents
        and not any(isinstance(each, PeriodCondition) for each in rule.conditions)
        for rule in document.about_subject()
    ):
        raise Conflict(WacCodes.OWNER_WITHOUT_CONTROL)


def authorizations_by_node(graph: Graph, *, subject_url: str) -> Mapping[Subject, Authorization]:
    """Every authorization of an ACL by its node, including those that do not apply
    (:func:`applies`)."""
    subject = canonical_url(subject_url)
    if subject is None:
        raise ValueError("The subject of an ACL must be an http URL without query or fragment")
    nodes = graph.subjects(TYPE, AUTHORIZATION)
    return {node: _authorization(graph, node, subject) for node in nodes}


def ignored_conditions(graph: Graph) -> tuple[str, ...]:
    """The types of conditions in an ACL that are not evaluated; an empty text for those without a
    type."""
    found: dict[str, None] = {}
    for node in graph.subjects(TYPE, AUTHORIZATION):
        found |= dict.fromkeys(unknown_conditions(graph, graph.about(node)))
    return tuple(found)


def _document(graph: Graph, subject_url: str) -> AclDocument:
    rules = authorizations_by_node(graph, subject_url=subject_url).values()
    return AclDocument(tuple(rule for rule in rules if applies(rule) or opens_description(rule)))


def _authorization(graph: Graph, node: Subject, subject: str) -> Authorization:
    description = graph.about(node)
    classes = set(_iris(description, AGENT_CLASS))
    return Authorization(
        access_to=_names(description, ACCESS_TO, subject),
        default=subject.endswith("/") and _names(description, DEFAULT, subject),
        modes=modes_of(_iris(description, MODE)),
        agents=frozenset(map(agent_name, _iris(description, AGENT))),
        groups=frozenset(_iris(description, AGENT_GROUP)),
        public=vocab.FOAF_AGENT in classes,
        authenticated=vocab.ACL_AUTHENTICATED_AGENT in classes,
        origins=_origins(description),
        description=subject.endswith("/") and _names_fragment(description, subject),
        conditions=read_conditions(graph, description),
    )


def applies(rule: Authorization) -> bool:
    """Whether the authorization has an effect: it is about the subject of the ACL or what is below
    it, and names modes and agents or origins."""
    return (
        (rule.access_to or rule.default)
        and rule.modes != NO_MODES
        and (rule.names_agents or bool(rule.origins))
    )


def opens_description(rule: Authorization) -> bool:
    """Whether the authorization lets agents read a container without its members."""
    return rule.description and Mode.READ in rule.modes and rule.names_agents


def _names_fragment(description: Description, subject: str) -> bool:
    """Whether an object of ``acl:accessTo`` is a fragment of exactly the subject."""
    return any(
        canonical_url(document) == subject and fragment != ""
        for document, _, fragment in (iri.partition("#") for iri in _iris(description, ACCESS_TO))
    )


def _names(description: Description, predicate: Iri, subject: str) -> bool:
    """Whether one of the predicate's objects is exactly the subject. A prefix does not match, and a
    URL with a trailing slash names another resource (W-11)."""
    return any(canonical_url(iri) == subject for iri in _iris(description, predicate))


def modes_of(iris: Iterable[str]) -> Modes:
    """The modes that the IRIs state, with what they entail; others are ignored."""
    return with_entailed(MODES[iri] for iri in iris if iri in MODES)


def iris_of(modes: Modes) -> list[str]:
    """The IRIs that state the modes, without Append if Write entails it."""
    stated = modes - {Mode.APPEND} if Mode.WRITE in modes else modes
    return [iri for mode, iri in _MODE_IRIS.items() if mode in stated]


def _origins(description: Description) -> frozenset[str]:
    """Objects that are not origins are included: ignoring one would lift a restriction."""
    return frozenset(
        (origin_of(term.value) if isinstance(term, Iri) else None) or UNMATCHABLE_ORIGIN
        for term in description.get(ORIGIN, ())
    )


def _iris(description: Description, predicate: Iri) -> list[str]:
    return [term.value for term in description.get(predicate, ()) if isinstance(term, Iri)]


# Reads and evaluates the conditions of authorizations (WAC, editor's draft of April 2026, "Access
# Conditions" and "Condition Evaluation").
#
# Pure. A condition narrows an authorization, which has an effect only while all of its conditions
# hold. There are three kinds: the client that acts for the agent, the issuer that vouches for the
# agent, and the period in which the request is made. This server announces them
# (:data:`SUPPORTED`). A condition of any other kind, or of none, is not evaluated: the draft has
# the authorization apply as if the condition were absent. A condition of a known kind that cannot
# be understood never holds.
#
# The period is a kind of this server's own (``docs/build/conditions.md``, decision 0044).

SUPPORTED: Final = (
    vocab.ACL_CLIENT_CONDITION,
    vocab.ACL_ISSUER_CONDITION,
    vocab.ACCESS_PERIOD_CONDITION,
)
"""The types of conditions that are announced and evaluated."""

_CONDITION: Final = Iri(vocab.ACL_CONDITION)
_FINAL_SLASH: Final = "/"


class ConditionContext(Value):
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

    def holds(self, circumstances: ConditionContext) -> bool:
        return self.contains(circumstances.client, circumstances.client_groups)


class IssuerCondition(_Parties):
    """The providers whose word about the agent is accepted. Names have no final slash, in which the
    names of one provider may differ."""

    def holds(self, circumstances: ConditionContext) -> bool:
        issuer = circumstances.issuer
        name = None if issuer is None else issuer.removesuffix(_FINAL_SLASH)
        return self.contains(name, circumstances.issuer_groups)


class PeriodCondition(Value):
    """The time from ``begins_ms`` on and before ``ends_ms``; ``None`` for no limit. It never holds
    if what it states is no time (``is_valid``)."""

    begins_ms: int | None = None
    ends_ms: int | None = None
    is_valid: bool = True

    def holds(self, circumstances: ConditionContext) -> bool:
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
    now = ConditionContext(now_ms)
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
        types = {each.value for each in description.get(TYPE, ()) if isinstance(each, Iri)}
        yield tuple(sorted(types - {vocab.ACL_CONDITION_CLASS})), description


def _conditions(types: tuple[str, ...], description: Description) -> Iterator[Condition]:
    if vocab.ACL_CLIENT_CONDITION in types:
        yield ClientCondition(
            _named(description, vocab.ACL_CLIENT),
            _named(description, vocab.ACL_CLIENT_GROUP),
            vocab.FOAF_AGENT in _named(description, vocab.ACL_CLIENT_CLASS),
        )
    if vocab.ACL_ISSUER_CONDITION in types:
        issuers = _named(description, vocab.ACL_ISSUER)
        yield IssuerCondition(
            frozenset(issuer.removesuffix(_FINAL_SLASH) for issuer in issuers),
            _named(description, vocab.ACL_ISSUER_GROUP),
            vocab.FOAF_AGENT in _named(description, vocab.ACL_ISSUER_CLASS),
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


def _named(description: Description, predicate: str) -> frozenset[str]:
    return frozenset(
        each.value for each in description.get(Iri(predicate), ()) if isinstance(each, Iri)
    )
