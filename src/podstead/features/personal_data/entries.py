"""Reads the things of one kind in a document, and finds what has to change in it for an edit.

Pure. An edit replaces the statements of the values that a person has changed, each in its place,
and no others: what is not understood here stays as it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, count, islice
from typing import Final

from podstead.core import vocab
from podstead.features.personal_data import kinds
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Object, Subject, Triple

MAX_VALUE_CHARACTERS: Final = 100_000
"""Longer values are not shown in whole, and not edited."""
MAX_VALUES: Final = 50
"""How many values of one field are shown and edited."""

MAX_LINES: Final = 5_000
"""How many lines of a pad are shown."""
MAX_LINES_IN_LIST: Final = 20
"""How many of them are read for a list: several pads may have the same lines."""
MAX_DEPTH: Final = 50
"""What a thing leads to goes with it, but not what is nested deeper than this."""

_TYPE: Final = Iri(vocab.RDF_TYPE)
_NEXT: Final = Iri(vocab.PIM + "next")
_CONTENT: Final = (Iri(kinds.SIOC + "content"), Iri(kinds.DC + "content"))
SCHEMES: Final = {kinds.Form.MAIL: "mailto:", kinds.Form.TELEPHONE: "tel:"}
_MOMENT: Final = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})"
    r"(?:[T ](\d{2}):?(\d{2})(?::?\d{2}(?:\.\d{1,12})?)?)?"
    r"(Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, perhaps with a time, as somebody wrote it: ``zone`` is empty if no time zone is
    stated, as for times that people type here."""

    day: str
    time: str = ""
    zone: str = ""

    @property
    def text(self) -> str:
        """The day and the time, without the zone, as forms have them."""
        return f"{self.day}T{self.time}" if self.time else self.day


def read_moment(text: str) -> Moment | None:
    """The moment that a value states; ``None`` if it states none."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, zone = found.groups()
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return None
    if hour is None:
        return Moment(f"{year}-{month}-{day}")
    if int(hour) > 23 or int(minute) > 59:
        return None
    return Moment(f"{year}-{month}-{day}", f"{hour}:{minute}", zone or "")


@dataclass(frozen=True, slots=True)
class PersonalEntry:
    """A contact, an event, a note or a bookmark, and the values of its fields. Texts are as they
    are stored, without the scheme of mail addresses and telephone numbers."""

    kind: kinds.PersonalDataKind
    iri: str
    values: Mapping[str, Sequence[str]]
    is_pad: bool = False
    """Whether its text consists of lines of their own, and is not edited here."""

    def text(self, name: str) -> str:
        """The first value of a field; empty without one."""
        return next(iter(self.values.get(name, ())), "")

    @property
    def title(self) -> str:
        """What it is called, in one line: its name, or what stands for it. Empty without both."""
        texts = (self.text(each.name) for each in self.kind.fields)
        lines = (" ".join(each.strip()[:1000].partition("\n")[0].split()) for each in texts)
        return next(filter(None, lines), "")[:200]

    def moment(self, name: str) -> Moment | None:
        """The moment of a field."""
        return read_moment(self.text(name))


@dataclass(frozen=True, slots=True)
class _Value:
    """A value and the statements that it consists of: the one that states it, and the one that
    leads to its node if it has one."""

    text: str
    statement: Triple
    link: Triple | None = None


@dataclass
class GraphEdit:
    """What an edit does with the statements of a document."""

    replaced: dict[Triple, Triple] = field(default_factory=dict)
    deletes: dict[Triple, None] = field(default_factory=dict)
    inserts: list[Triple] = field(default_factory=list)

    def applied(self, graph: Graph) -> Graph:
        """The document afterwards. What is replaced keeps its place, so that a first value stays
        the first."""
        kept = (self.replaced.get(each, each) for each in graph if each not in self.deletes)
        return Graph([*kept, *self.inserts])


def subjects_in(graph: Graph, document_url: str, kind: kinds.PersonalDataKind) -> Iterator[Iri]:
    """The things of a kind that a document is about. Others, which it only names, are not."""
    found = (each for type_ in kind.types for each in graph.subjects(_TYPE, type_))
    for each in dict.fromkeys(found):
        if isinstance(each, Iri) and _is_of(each, document_url):
            yield each


def read_entry(
    graph: Graph, subject: Iri, kind: kinds.PersonalDataKind, *, max_lines: int = MAX_LINES
) -> PersonalEntry:
    """What a document says about a thing of this kind; of a pad, so many lines."""
    values: dict[str, Sequence[str]] = {}
    for each in kind.fields:
        texts = dict.fromkeys(value.text for value in _values(graph, subject, each))
        values[each.name] = tuple(texts)[: None if each.many else 1]
    is_pad = (subject, _TYPE, kinds.NOTEPAD) in graph and "note" in values
    if is_pad:
        values["note"] = (_pad_text(graph, subject, max_lines),)
    return PersonalEntry(kind, subject.value, values, is_pad)


def _pad_lines(graph: Graph, pad: Iri, max_lines: int = MAX_LINES) -> list[Iri]:
    """The nodes of the lines of a pad, in order."""
    found: dict[Iri, None] = {}
    at = pad
    while len(found) < max_lines:
        following = (each for each in graph.objects(at, _NEXT) if isinstance(each, Iri))
        at = next(following, pad)
        if at == pad or at in found:
            break
        found[at] = None
    return list(found)


def _pad_text(graph: Graph, pad: Iri, max_lines: int) -> str:
    lines = (
        next((each.value for one in _CONTENT for each in graph.objects(line, one)), "")
        for line in _pad_lines(graph, pad, max_lines)
    )
    return "\n".join(lines)


def _is_of(subject: Iri, document_url: str) -> bool:
    url, _, _fragment = subject.value.partition("#")
    return url == document_url or not url.startswith(("http:", "https:"))


def _values(graph: Graph, subject: Subject, of: kinds.Field) -> list[_Value]:
    """The values of a field, at most MAX_VALUES, so that an edit leaves those alone that nobody has
    seen: those of preferred predicates first, texts without a language before those with one."""
    found: list[_Value] = []
    for predicate in of.predicates:
        stated = chain.from_iterable(
            _stated(graph, (subject, predicate, each), of)
            for each in graph.objects(subject, predicate)
        )
        found += sorted(
            islice(stated, MAX_VALUES),
            key=lambda each: getattr(each.statement[2], "language", "") or "",
        )
    return found[:MAX_VALUES]


def _stated(graph: Graph, statement: Triple, of: kinds.Field) -> Iterator[_Value]:
    object_ = statement[2]
    if not isinstance(object_, Literal):
        about = graph.about(object_)
        inner = ((each, value) for each in of.inner for value in about.get(each, ()))
        if first := next(inner, None):
            for predicate, value in chain([first], inner):
                if isinstance(value, Iri | Literal):
                    yield _Value(_text(value, of), (object_, predicate, value), statement)
            return
    if isinstance(object_, Iri | Literal):
        yield _Value(_text(object_, of), statement)


def _text(term: Iri | Literal, of: kinds.Field) -> str:
    scheme, text = SCHEMES.get(of.form), term.value
    if scheme is not None and text[: len(scheme)].lower() == scheme:
        return text[len(scheme) :]
    return text


def shown_in_form(text: str, of: kinds.Field) -> str:
    """A value as a form has it. Browsers remove line breaks from fields of one line."""
    if of.form is kinds.Form.LONG:
        return text.replace("\r\n", "\n")
    if of.form in (kinds.Form.MOMENT, kinds.Form.DAY):
        moment = read_moment(text)
        return "" if moment is None else moment.text if of.form is kinds.Form.MOMENT else moment.day
    return " ".join(text.split())


def _same(text: str, typed: str, of: kinds.Field) -> bool:
    """Whether a person has left a value as it was."""
    return shown_in_form(text, of).strip() == typed.replace("\r\n", "\n").strip()


def edit_of(graph: Graph, entry: PersonalEntry, wanted: Mapping[str, Sequence[str]]) -> GraphEdit:
    """What has to change for a thing to have these values. Fields that are not among them stay.

    The values fit the forms of their fields: a value of a field for links is an absolute IRI, for
    example.
    """
    editor = _Editor(graph, entry)
    for name, typed in wanted.items():
        if not (entry.is_pad and name == "note"):
            editor.edit(entry.kind.field(name), list(typed))
    return editor.change


class _Editor:
    def __init__(self, graph: Graph, entry: PersonalEntry) -> None:
        self._graph = graph
        self._subject = Iri(entry.iri)
        types = graph.objects(self._subject, _TYPE)
        self._vocabulary = next(
            (space for type_, space in entry.kind.types.items() if type_ in types), ""
        )
        taken = {each.value for triple in graph for each in triple if isinstance(each, BlankNode)}
        names = (f"value{number}" for number in count())
        self._nodes = (BlankNode(each) for each in names if each not in taken)
        self.change = GraphEdit()

    def edit(self, of: kinds.Field, typed: list[str]) -> None:
        values = _values(self._graph, self._subject, of)
        if not of.many:
            self._edit_one(of, values, typed[0] if typed else "")
            return
        left = list(dict.fromkeys(typed))
        changed: dict[str, list[_Value]] = {}
        for each in values:
            kept = [text for text in left if _same(each.text, text, of)]
            if not kept:
                changed.setdefault(each.text, []).append(each)
        known = [each.text for each in values]
        new = [text for text in left if not any(_same(each, text, of) for each in known)]
        for same in changed.values():
            text = new.pop(0) if new else ""
            for each in same:
                self._put(each, text, of)
        for text in new:
            self._add(of, text)

    def _edit_one(self, of: kinds.Field, values: Sequence[_Value], typed: str) -> None:
        if not values:
            if typed:
                self._add(of, typed)
            return
        shown = values[0].text
        if _same(shown, typed, of):
            return
        for each in values:
            if not typed or each.text == shown:
                self._put(each, typed, of)

    def _put(self, value: _Value, typed: str, of: kinds.Field) -> None:
        subject, predicate, object_ = value.statement
        if typed:
            new = _term(typed, of, object_)
            self.change.replaced[value.statement] = (subject, predicate, new)
            return
        self.change.deletes[value.statement] = None
        if value.link is not None:
            about = self._graph.about(subject)
            rest = [(subject, _TYPE, each) for each in about.get(_TYPE, ())]
            if set(about) <= {_TYPE, predicate} and len(about[predicate]) == 1:
                self.change.deletes.update(dict.fromkeys((value.link, *rest)))

    def _add(self, of: kinds.Field, typed: str) -> None:
        predicate = _preferred(of.predicates, self._vocabulary)
        object_: Object = _term(typed, of, None)
        if predicate in of.on_nodes:
            node = next(self._nodes)
            inner = _preferred(of.inner, self._vocabulary)
            self.change.inserts.append((node, inner, object_))
            object_ = node
        self.change.inserts.append((self._subject, predicate, object_))


def _preferred(predicates: Sequence[Iri], vocabulary: str) -> Iri:
    own = (each for each in predicates if vocabulary and each.value.startswith(vocabulary))
    return next(own, predicates[0])


def _term(typed: str, of: kinds.Field, old: Object | None) -> Iri | Literal:
    """A typed value as a term, in the form of the one that it replaces."""
    if of.form in (kinds.Form.MOMENT, kinds.Form.DAY):
        return _moment_term(typed, old)
    scheme = SCHEMES.get(of.form, "")
    if of.form is kinds.Form.TEXT or of.form is kinds.Form.LONG or isinstance(old, Literal):
        language = old.language if isinstance(old, Literal) else None
        has_scheme = isinstance(old, Literal) and old.value.lower().startswith(scheme)
        text = f"{scheme}{typed}" if has_scheme else typed
        return Literal(text, language=language) if language else Literal(text)
    return Iri(f"{scheme}{typed}")


def _moment_term(typed: str, old: Object | None) -> Literal:
    if "T" not in typed:
        return Literal(typed, datatype=Iri(vocab.XSD + "date"))
    known = None if old is None else read_moment(old.value)
    zone = known.zone if known is not None else ""
    return Literal(f"{typed}:00{zone}", datatype=Iri(vocab.XSD_DATE_TIME))


def new_entry(kind: kinds.PersonalDataKind, iri: str, wanted: Mapping[str, Sequence[str]]) -> Graph:
    """The statements of a new thing."""
    subject = Iri(iri)
    graph = Graph([(subject, _TYPE, next(iter(kind.types)))])
    return edit_of(graph, read_entry(graph, subject, kind), wanted).applied(graph)


def without(graph: Graph, entry: PersonalEntry) -> Graph:
    """The document without a thing, and without the nodes that only the thing leads to."""
    gone: set[Object] = {Iri(entry.iri)}
    parts = _parts(graph, entry)
    for _ in range(MAX_DEPTH):
        left = [each for each in graph if each[0] not in gone]
        named = {each[2] for each in left if each[0] not in parts}
        nodes = {
            each[2]
            for each in graph
            if each[0] in gone
            and (isinstance(each[2], BlankNode) or each[2] in parts)
            and each[2] not in named
        }
        if nodes <= gone:
            break
        gone |= nodes
    return Graph([each for each in graph if each[0] not in gone])


def is_only_thing(graph: Graph, entry: PersonalEntry, document_url: str) -> bool:
    """Whether a document is about nothing else, so that it goes with the thing."""
    own = {Iri(entry.iri), Iri(document_url), *_parts(graph, entry)}
    return all(isinstance(each, BlankNode) or each in own for each in graph.subjects())


def _parts(graph: Graph, entry: PersonalEntry) -> set[Object]:
    """The named nodes that belong to a thing: those of its values, and the lines of a pad."""
    subject = Iri(entry.iri)
    about = graph.about(subject)
    found: set[Object] = set(_pad_lines(graph, subject)) if entry.is_pad else set()
    for each in entry.kind.fields:
        if each.inner:
            found.update(node for one in each.predicates for node in about.get(one, ()))
    things = {type_ for kind in kinds.KINDS.values() for type_ in kind.types}
    return {
        each
        for each in found
        if isinstance(each, Iri) and things.isdisjoint(graph.objects(each, _TYPE))
    }
