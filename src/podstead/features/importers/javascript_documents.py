"""Interprets the documents and access rules of javascript-solid-server as that server reads them.

It converts Turtle to an array of nodes with a ``@context`` in the first one only, and reads such an
array as one document: the contexts apply to all nodes. It reads access rules without their context,
node by node: properties and modes have their usual names with the prefix ``acl:`` or none, and
everything else in them has no effect.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urljoin

import msgspec

from podstead.core import vocab
from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, canonical_url
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.features.importers.folders import Unreadable, json_of
from podstead.features.importers.values import rdf_type_of
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.graph import Dataset, Graph, Iri, Triple
from podstead.wac.acl import Authorization, applies, read_acl
from podstead.wac.modes import Mode, with_entailed

_PREFIX: Final = "acl:"
_TYPES: Final = frozenset({"acl:Authorization", vocab.ACL_AUTHORIZATION, "Authorization"})
_PUBLIC: Final = frozenset({"foaf:Agent", vocab.FOAF_AGENT})
_AUTHENTICATED: Final = frozenset({"acl:AuthenticatedAgent", vocab.ACL_AUTHENTICATED_AGENT})
_MODE_IRIS: Final = {
    Mode.READ: vocab.ACL_READ,
    Mode.WRITE: vocab.ACL_WRITE,
    Mode.APPEND: vocab.ACL_APPEND,
    Mode.CONTROL: vocab.ACL_CONTROL,
}
_MODES: Final = {
    spelling: mode
    for mode, iri in _MODE_IRIS.items()
    for spelling in (iri, _PREFIX + iri.removeprefix(vocab.ACL), iri.removeprefix(vocab.ACL))
}
_AGENT_SCHEMES: Final = ("http://", "https://", "did:")
# JSON-LD takes a term as a prefix only if its meaning ends in one of these, or if it says so.
_ENDS_OF_PREFIXES: Final = tuple(":/?#[]@")


class ReadRules(msgspec.Struct, frozen=True):
    """Access rules as that server read them, an ACL that grants the same here, and its differences
    from the file."""

    rules: Sequence[Authorization]
    content: bytes
    content_type: str
    differences: Sequence[str] = ()


class OneDocument(msgspec.Struct, frozen=True):
    """JSON-LD with the meaning that it had for that server, and the names in it without a meaning.
    ``content`` is the same object as before if nothing had to be changed."""

    content: bytes
    lost: Sequence[str] = ()


def rules_there(content: bytes, *, acl_url: str) -> ReadRules:
    """The rules in an ACL. Raises RequestRefused if it is neither JSON nor Turtle."""
    subject = acl_url.removesuffix(ACL_SUFFIX)
    rules: list[Authorization] = []
    differences: list[str] = []
    for node in _authorizations(content, acl_url):
        rule, elsewhere = _rule(node, subject)
        if applies(rule):
            rules.append(rule)
        if elsewhere and not rule.default and rule.modes and rule.names_agents:
            differences.append(f"A rule is about <{elsewhere}> only ({_text(rule)}): add it there")
    content_type = rdf_type_of(content)
    stated: Sequence[Authorization] = ()
    try:
        if content_type == JSON_LD:
            content = as_one_document(content).content
        graph = parse(content, content_type, base_iri=acl_url).graph
        stated = read_acl(graph, subject_url=subject).authorizations
    except RequestRefused:
        differences.append("It is malformed, and was read in part")
    if set(stated) == set(rules) and not differences:
        return ReadRules(rules, content, content_type)
    for each in stated:
        if each.names_agents and not _is_granted(each, rules):
            differences.append(f"A rule had no effect there and is not taken ({_text(each)})")
        elif each.origins or each.conditions:
            differences.append(f"A rule had an effect for every application ({_text(each)})")
    return ReadRules(rules, _as_turtle(rules, subject, acl_url), TURTLE, differences)


def as_one_document(content: bytes) -> OneDocument:
    """The JSON-LD in a file. Raises Unreadable if it is not JSON."""
    found = json_of(content)
    nodes = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in nodes):
        return OneDocument(content)
    contexts = [each["@context"] for each in nodes if "@context" in each]
    if not all(isinstance(each, dict) for each in contexts) or 1 < len(contexts) == len(nodes):
        return OneDocument(content)
    names = {name for each in nodes for name in _names(each)}
    prefixes = {name.partition(":")[0] for name in names}
    context = {
        term: _as_prefix(meaning) if term in prefixes else meaning
        for each in contexts
        for term, meaning in each.items()
    }
    said = [dict(_said(each, context)) for each in nodes]
    whole: Any = said
    if context:
        whole = {"@context": context, "@graph": said}
        if len(said) == 1:
            whole = {"@context": context, **said[0]}
    if found not in (whole, *said):
        try:
            content = json.dumps(whole, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise Unreadable("It cannot be written") from error
    # The server has forgotten what the empty prefix meant.
    return OneDocument(content, sorted(name for name in names if name.startswith(":")))


# --- access rules -----------------------------------------------------------------------------


def _authorizations(content: bytes, acl_url: str) -> Sequence[Mapping[str, Any]]:
    try:
        found = json_of(content)
    except Unreadable:
        found = _nodes_of_turtle(parse(content, TURTLE, base_iri=acl_url))
    if isinstance(found, dict):
        found = found.get("@graph") or [found]
    nodes = found if isinstance(found, list) else []
    return [each for each in nodes if isinstance(each, dict) and _TYPES & _texts(each.get("@type"))]


def _nodes_of_turtle(document: Document) -> list[dict[str, list[str]]]:
    """Turtle with the names that the server gives to properties: with the first matching prefix, so
    that rules have no effect if that is not ``acl:``."""
    fitting = (name for name, iri in document.prefixes.items() if vocab.ACL.startswith(iri or " "))
    if next(fitting, "acl") != "acl":
        return []
    return [
        {
            "@type" if predicate.value == vocab.RDF_TYPE else
            predicate.value.replace(vocab.ACL, _PREFIX, 1):
                [each.value for each in objects if isinstance(each, Iri)]
            for predicate, objects in description.items()
        }
        for description in document.graph.by_subject().values()
    ]  # fmt: skip


def _rule(node: Mapping[str, Any], subject: str) -> tuple[Authorization, str]:
    """The grant of a node on the subject and below it, and a place below the subject that it is
    about."""
    base, place = urljoin(subject, "."), _without_slash(subject)
    about, below = (
        [_without_slash(urljoin(base, each)) for each in _property(node, name)]
        for name in ("accessTo", "default")
    )
    classes = _property(node, "agentClass")
    rule = Authorization(
        access_to=place in about,
        # Rules for what is below a container above apply to everything below this one, too.
        default=subject.endswith("/") and any(f"{place}/".startswith(f"{each}/") for each in below),
        modes=with_entailed(_MODES[each] for each in _property(node, "mode") if each in _MODES),
        agents=frozenset(
            each for each in _property(node, "agent") if each.startswith(_AGENT_SCHEMES)
        ),
        public=bool(classes & _PUBLIC),
        authenticated=bool(classes & _AUTHENTICATED),
    )
    inside = (each for each in below if subject.endswith("/") and each.startswith(f"{place}/"))
    return rule, min(inside, default="")


def _property(node: Mapping[str, Any], name: str) -> frozenset[str]:
    value = node.get(_PREFIX + name)
    # In JavaScript, an empty array or object is true.
    return _texts(value if value or isinstance(value, list | dict) else node.get(name))


def _texts(value: Any) -> frozenset[str]:  # noqa: ANN401 - any JSON
    """The names in a value, or in an array of values."""
    values = value if isinstance(value, list) else [value]
    named = (each.get("@id") if isinstance(each, dict) else each for each in values)
    return frozenset(each for each in named if isinstance(each, str) and each)


def _without_slash(url: str) -> str:
    return (canonical_url(url) or url).removesuffix("/")


def _is_granted(rule: Authorization, rules: Collection[Authorization]) -> bool:
    """Whether one of the rules grants everything that this one does."""
    return any(
        each.access_to >= rule.access_to
        and each.default >= rule.default
        and each.modes >= rule.modes
        and each.agents >= rule.agents
        and each.groups >= rule.groups
        and each.public >= rule.public
        and (each.public or each.authenticated >= rule.authenticated)
        for each in rules
    )


def _text(rule: Authorization) -> str:
    """A rule as ``read for <https://…>``."""
    modes = ", ".join(mode for mode in Mode if mode in rule.modes)
    whom = [f"<{each}>" for each in sorted(rule.agents | rule.groups)]
    whom += ["everyone"] * rule.public + ["everyone who has signed in"] * rule.authenticated
    return f"{modes} for {', '.join(whom)}"


def _as_turtle(rules: Sequence[Authorization], subject: str, acl_url: str) -> bytes:
    def triples() -> Iterator[Triple]:
        for number, rule in enumerate(dict.fromkeys(rules), start=1):
            node, about = Iri(f"{acl_url}#rule{number}"), [subject]
            objects = {
                vocab.RDF_TYPE: [vocab.ACL_AUTHORIZATION],
                vocab.ACL_ACCESS_TO: about * rule.access_to,
                vocab.ACL_DEFAULT: about * rule.default,
                vocab.ACL_MODE: [_MODE_IRIS[mode] for mode in Mode if mode in rule.modes],
                vocab.ACL_AGENT: sorted(rule.agents),
                vocab.ACL_AGENT_CLASS: [vocab.FOAF_AGENT] * rule.public
                + [vocab.ACL_AUTHENTICATED_AGENT] * rule.authenticated,
            }
            for predicate, values in objects.items():
                yield from ((node, Iri(predicate), Iri(value)) for value in values)

    prefixes = {"acl": vocab.ACL, "foaf": vocab.FOAF}
    return serialize(Document(Dataset(Graph(triples())), prefixes), TURTLE, base_iri=acl_url)


# --- documents --------------------------------------------------------------------------------


def _names(node: Mapping[str, Any]) -> Iterator[str]:
    """The names in a node that may have prefixes."""
    yield from node
    yield from _texts(node.get("@type"))
    for value in node.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from _texts(each.get("@type"))


def _as_prefix(meaning: Any) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(meaning, str) or meaning.endswith(_ENDS_OF_PREFIXES):
        return meaning
    return {"@id": meaning, "@prefix": True}


def _said(node: Mapping[str, Any], context: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if name.startswith("@") or isinstance(context.get(name), dict):
            if name != "@context":
                yield name, value
        elif isinstance(value, list):
            yield name, [_as_decimal(each) for each in value]
        else:
            yield name, _as_decimal(value)


def _as_decimal(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A number with a fraction, which is a decimal there and a double in JSON-LD."""
    if not isinstance(value, float) or value.is_integer():
        return value
    return {"@value": format(Decimal(repr(value)), "f"), "@type": vocab.XSD_DECIMAL}
