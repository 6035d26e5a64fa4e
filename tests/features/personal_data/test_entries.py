"""What is read in documents, and what edits leave alone; rdflib is the judge."""

from __future__ import annotations

import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib.compare import isomorphic

from podstead.core.media_types import N_TRIPLES, TURTLE
from podstead.features.personal_data.entries import (
    MAX_DEPTH,
    MAX_VALUES,
    PersonalEntry,
    edit_of,
    is_only_thing,
    new_entry,
    read_entry,
    read_moment,
    shown_in_form,
    subjects_in,
    without,
)
from podstead.features.personal_data.kinds import (
    BOOKMARKS,
    CALENDAR,
    CONTACTS,
    KINDS,
    NOTEPAD,
    NOTES,
    Form,
    PersonalDataKind,
)
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.graph import BlankNode, Dataset, Graph, Iri, Literal, Triple
from tests.features.personal_data import documents
from tests.support import rdf_oracle as oracle
from tests.support.rdf_strategies import TRIPLES

URL = "http://localhost:3000/alice/things.ttl"
VCARD = rdflib.Namespace("http://www.w3.org/2006/vcard/ns#")
SCHEMA = rdflib.Namespace("http://schema.org/")
THIS = rdflib.URIRef(f"{URL}#this")


def graph_of(turtle: str) -> Graph:
    return parse(turtle.encode(), TURTLE, base_iri=URL).graph


def judged(graph: Graph) -> rdflib.Graph:
    """What rdflib reads in the graph, once it is written."""
    content = serialize(Document(Dataset(graph)), N_TRIPLES, base_iri=URL)
    return oracle.read(content, N_TRIPLES)


def entries_in(graph: Graph, url: str, kind: PersonalDataKind) -> list[PersonalEntry]:
    return [read_entry(graph, each, kind) for each in subjects_in(graph, url, kind)]


def entries(turtle: str, kind: PersonalDataKind) -> list[PersonalEntry]:
    return entries_in(graph_of(turtle), URL, kind)


def test_contacts_are_read_as_applications_write_them() -> None:
    (carla,) = entries(documents.CONTACT, CONTACTS)
    assert carla.title == "Carla Diaz"
    assert set(carla.values["email"]) == {"carla@example.org", "carla@work.example"}
    assert carla.values["telephone"] == ("+491234",)
    assert carla.values["birthday"] == ("1980-05-12",)
    (person,) = entries(
        '@prefix s: <https://schema.org/>. <#p> a s:Person; s:name "Dan"; s:email "d@example.org".',
        CONTACTS,
    )
    assert (person.title, person.values["email"]) == ("Dan", ("d@example.org",))


def test_events_are_read_in_several_vocabularies() -> None:
    found = {each.title: each for each in entries(documents.EVENTS, CALENDAR)}
    assert {*found} == {"Picnic", "Dentist", "Concert"}
    assert found["Picnic"].text("location") == "The park"
    moments = {title: each.moment("start") for title, each in found.items()}
    assert {title: each and (each.text, each.zone) for title, each in moments.items()} == {
        "Picnic": ("2099-06-01T12:30", "+02:00"),
        "Dentist": ("2099-05-01T08:00", "Z"),
        "Concert": ("2001-01-01", ""),
    }


def test_notes_and_bookmarks_are_read() -> None:
    assert {each.title for each in entries(documents.NOTES, NOTES)} == {"Milk", "Idea"}
    assert {
        (each.title, each.text("link")) for each in entries(documents.BOOKMARKS, BOOKMARKS)
    } == {
        ("Example", "https://example.org/"),
        ("As text", "https://example.net/a"),
        ("An action", "https://example.com/b"),
    }


def test_things_of_other_documents_are_not_shown_as_theirs() -> None:
    turtle = (
        '@prefix v: <http://www.w3.org/2006/vcard/ns#>. </bob/x.ttl#i> a v:Individual; v:fn "B".'
    )
    assert entries(turtle, CONTACTS) == []


def test_an_edit_changes_the_value_in_its_place_and_nothing_else() -> None:
    graph = graph_of(documents.CONTACT)
    (carla,) = entries_in(graph, URL, CONTACTS)
    wanted = {"name": ["Carla Dia"], "email": ["carla@work.example", "new@example.org"]}
    after = judged(edit_of(graph, carla, wanted).applied(graph))
    expected = judged(graph)
    expected.remove((THIS, VCARD.fn, None))
    expected.add((THIS, VCARD.fn, rdflib.Literal("Carla Dia")))
    home = rdflib.URIRef(f"{URL}#id1")  # the address at home is another one now
    expected.remove((home, VCARD.value, None))
    expected.add((home, VCARD.value, rdflib.URIRef("mailto:new@example.org")))
    assert isomorphic(after, expected)


def test_a_removed_value_goes_with_its_node() -> None:
    graph = graph_of(documents.CONTACT)
    (carla,) = entries_in(graph, URL, CONTACTS)
    after = judged(edit_of(graph, carla, {"email": [], "telephone": []}).applied(graph))
    expected = judged(graph_of(documents.CONTACT))
    for link in (VCARD.hasEmail, VCARD.hasTelephone):
        for node in list(expected.objects(THIS, link)):
            expected.remove((node, None, None))
        expected.remove((THIS, link, None))
    assert isomorphic(after, expected)


def test_a_moment_keeps_its_time_zone() -> None:
    graph = graph_of(documents.EVENTS)
    picnic = next(each for each in entries_in(graph, URL, CALENDAR) if each.title == "Picnic")
    after = judged(edit_of(graph, picnic, {"start": ["2099-06-02T09:00"]}).applied(graph))
    (start,) = after.objects(rdflib.URIRef(f"{URL}#a"), SCHEMA.startDate)
    assert str(start) == "2099-06-02T09:00:00+02:00"
    assert edit_of(graph, picnic, {"start": ["2099-06-01T12:30"]}).applied(graph) == graph


def test_a_shared_document_keeps_what_else_it_has() -> None:
    graph = graph_of(documents.EVENTS)
    picnic = next(each for each in entries_in(graph, URL, CALENDAR) if each.title == "Picnic")
    assert not is_only_thing(graph, picnic, URL)
    left = without(graph, picnic)
    assert {each.title for each in entries_in(left, URL, CALENDAR)} == {"Dentist", "Concert"}
    assert "The park" not in {each.value for *_, each in left}
    contact = graph_of(documents.CONTACT)
    (carla,) = entries_in(contact, URL, CONTACTS)
    assert is_only_thing(contact, carla, URL)
    assert without(contact, carla).subjects() == [Iri(URL)]


def test_things_that_a_thing_names_are_not_parts_of_it() -> None:
    graph = graph_of(
        "@prefix v: <http://www.w3.org/2006/vcard/ns#>. @prefix e: <https://e.example/>."
        '<#a> a v:Individual; v:fn "A"; v:url <#b>; e:knows <#c>.'
        '<#b> a v:Individual; v:fn "B". <#c> e:name "C".'
    )
    first, _ = entries_in(graph, URL, CONTACTS)
    assert not is_only_thing(graph, first, URL)
    assert set(without(graph, first).subjects()) == {Iri(f"{URL}#b"), Iri(f"{URL}#c")}


def test_the_lines_of_a_pad_are_its_text_and_are_not_edited() -> None:
    graph = graph_of(documents.PAD)
    (pad,) = entries_in(graph, URL, NOTES)
    assert (pad.title, pad.text("note")) == ("Shared notes", "Alfa\nBravo")
    after = edit_of(graph, pad, {"name": ["Ours"], "note": ["Other"]}).applied(graph)
    expected = judged(graph)
    expected.remove((THIS, rdflib.DC.title, None))
    expected.add((THIS, rdflib.DC.title, rdflib.Literal("Ours")))
    assert isomorphic(judged(after), expected)
    assert is_only_thing(graph, pad, URL)
    endless = graph_of(documents.PAD.replace("<#l2> dc", "<#l2> pim:next <#l1>; dc"))
    assert entries_in(endless, URL, NOTES)[0].text("note") == "Alfa\nBravo"


def test_malformed_moments_are_none() -> None:
    for text in ("", "tomorrow", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00", "9" * 50):
        assert read_moment(text) is None
    assert read_moment("20260203T101500Z") == read_moment("2026-02-03T10:15:00Z")


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12)
VALUES = {
    Form.TEXT: TEXTS,
    Form.LONG: TEXTS,
    Form.MAIL: st.from_regex(r"[a-z]{1,5}@[a-z]{1,5}", fullmatch=True),
    Form.TELEPHONE: st.from_regex(r"\+[0-9]{2,9}", fullmatch=True),
    Form.LINK: st.from_regex(r"https://[a-z]{1,8}/[a-z]{0,4}", fullmatch=True),
    Form.DAY: st.dates().map(str),
    Form.MOMENT: st.dates().map(str)
    | st.datetimes().map(lambda each: each.isoformat(timespec="minutes")),
}


@st.composite
def edits(draw: st.DrawFn) -> tuple[PersonalDataKind, Graph, dict[str, list[str]]]:
    """A document with a thing and other statements, some of them about it, and an edit."""
    kind = draw(st.sampled_from(list(KINDS.values())))
    subject = Iri(f"{URL}#this")
    types = [each for each in kind.types if each != NOTEPAD]
    triples: list[Triple] = [(subject, Iri(str(rdflib.RDF.type)), draw(st.sampled_from(types)))]
    for field in kind.fields:
        for number in range(draw(st.integers(0, 3))):
            text, predicate = draw(VALUES[field.form]), draw(st.sampled_from(field.predicates))
            language = draw(st.sampled_from([None, None, "en"]))
            value = Literal(text, language=language) if language else Literal(text)
            if draw(st.booleans()) and field.inner:
                node = BlankNode(f"{field.name}{number}")
                triples += [(subject, predicate, node), (node, field.inner[0], value)]
            else:
                triples.append((subject, predicate, value))
    triples += draw(st.lists(TRIPLES, max_size=6))
    wanted: dict[str, list[str]] = {}
    for field in draw(st.lists(st.sampled_from(kind.fields), unique_by=lambda each: each.name)):
        most = 3 if field.many else 1
        values = st.lists(VALUES[field.form], min_size=1, max_size=most, unique=True)
        wanted[field.name] = draw(values)
    return kind, Graph(triples), wanted


@settings(deadline=None)
@given(edits())
def test_what_was_edited_is_read_and_all_else_remains(
    case: tuple[PersonalDataKind, Graph, dict[str, list[str]]],
) -> None:
    kind, graph, wanted = case
    subject = Iri(f"{URL}#this")
    change = edit_of(graph, read_entry(graph, subject, kind), wanted)
    after = change.applied(graph)
    entry, before = read_entry(after, subject, kind), read_entry(graph, subject, kind)
    for name, values in wanted.items():
        read, field = entry.values[name], kind.field(name)
        typed = [shown_in_form(each, field) for each in read]
        assert set(typed) == set(values) if field.many else typed == values
    edits_of = {each for name in wanted for each in kind.field(name).predicates}
    inner = {each for name in wanted for each in kind.field(name).inner}
    for triple in graph:
        is_value = triple[1] in inner or (triple[0] == subject and triple[1] in edits_of)
        of_node = isinstance(triple[0], BlankNode)
        assert triple in after or is_value or of_node
    touched = {each for each in edits_of if each in {p for s, p, _ in graph if s == subject}}
    for field in kind.fields:
        if field.name not in wanted and not touched & set(field.predicates):
            assert entry.values[field.name] == before.values[field.name]
    unchanged = {name: before.values[name] for name in before.values}
    assert edit_of(graph, before, unchanged).applied(graph) == graph


@settings(deadline=None)
@given(edits())
def test_new_things_are_as_they_were_typed(
    case: tuple[PersonalDataKind, Graph, dict[str, list[str]]],
) -> None:
    kind, _, wanted = case
    graph = new_entry(kind, f"{URL}#this", wanted)
    types = set(judged(graph).objects(THIS, rdflib.RDF.type))
    assert types == {rdflib.URIRef(next(iter(kind.types)).value)}
    (entry,) = entries_in(graph, URL, kind)
    for name, values in wanted.items():
        assert [shown_in_form(each, kind.field(name)) for each in entry.values[name]] == values


def test_values_that_nobody_has_seen_are_left_alone() -> None:
    numbers = " ".join(f"vcard:hasTelephone <tel:+49{number}>;" for number in range(60))
    graph = graph_of(
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>."
        f'<#this> a vcard:Individual; {numbers} vcard:fn "Ann".'
    )
    (entry,) = entries_in(graph, URL, CONTACTS)
    shown = entry.values["telephone"]
    assert len(shown) == MAX_VALUES
    after = edit_of(graph, entry, {"name": ["Bea"], "telephone": shown[1:]}).applied(graph)
    judge = judged(after)
    assert str(judge.value(THIS, VCARD.fn)) == "Bea"
    assert len(list(judge.objects(THIS, VCARD.hasTelephone))) == 59


def test_what_a_thing_leads_to_is_followed_a_bounded_way() -> None:
    chain = "".join(f"_:n{number} <#next> _:n{number + 1}. " for number in range(200))
    graph = graph_of(
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>."
        f'<#this> a vcard:Individual; vcard:fn "Ann"; <#next> _:n0. <#other> <#is> 1. {chain}'
    )
    (entry,) = entries_in(graph, URL, CONTACTS)
    judge = judged(without(graph, entry))
    assert (THIS, None, None) not in judge
    assert len(judge) == 1 + 200 - MAX_DEPTH
