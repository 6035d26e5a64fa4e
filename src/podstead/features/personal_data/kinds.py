"""What contacts, events, notes and bookmarks are in linked data: their types, and the statements in
which applications write their fields.

Applications use several vocabularies for the same thing. What is read may be in any of them; what
is added is written in the vocabulary of the thing's own type. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.core import vocab
from podstead.rdf.graph import Iri

ICAL: Final = "http://www.w3.org/2002/12/cal/ical#"
NCAL: Final = "http://www.semanticdesktop.org/ontologies/2007/04/02/ncal#"
BOOKMARK: Final = "http://www.w3.org/2002/01/bookmark#"
DC: Final = "http://purl.org/dc/elements/1.1/"
SIOC: Final = "http://rdfs.org/sioc/ns#"
_SCHEMAS: Final = (vocab.SCHEMA_HTTP, vocab.SCHEMA)


class Form(Enum):
    """How the values of a field look."""

    TEXT = "text"
    LONG = "long"
    """Text of several lines."""
    MAIL = "mail"
    TELEPHONE = "telephone"
    LINK = "link"
    DAY = "day"
    MOMENT = "moment"
    """A day, with or without a time."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that people see and edit."""

    name: str
    form: Form
    predicates: tuple[Iri, ...]
    """All that state it, the preferred ones first."""
    many: bool = False
    inner: tuple[Iri, ...] = ()
    """What states the value where a predicate leads to a node of its own, as vCard's do."""
    on_nodes: frozenset[Iri] = frozenset()
    """The predicates that lead to such a node when a value is added."""


@dataclass(frozen=True, slots=True)
class PersonalDataKind:
    """One kind of things."""

    name: str
    types: Mapping[Iri, str]
    """The types, each with the namespace of its vocabulary; the first one is that of new things."""
    fields: tuple[Field, ...]
    folder: str
    """Where new things are kept in a pod that has no place for them yet."""
    prefixes: Mapping[str, str]

    def field(self, name: str) -> Field:
        """The field of that name."""
        return next(each for each in self.fields if each.name == name)


def _iris(*names: str) -> tuple[Iri, ...]:
    """The terms of names with their namespaces; ``schema:`` stands for both that are in use."""
    found: list[Iri] = []
    for name in names:
        short = name.removeprefix("schema:")
        spaces = ("",) if short == name else _SCHEMAS
        found += (Iri(space + short) for space in spaces)
    return tuple(found)


def _types(*pairs: tuple[str, str]) -> dict[Iri, str]:
    """Types with their vocabularies."""
    found: dict[Iri, str] = {}
    for name, space in pairs:
        for each in _SCHEMAS if space == "schema:" else (space,):
            found[Iri(each + name)] = each
    return found


_AS, _VCARD, _TERMS = vocab.AS, vocab.VCARD, vocab.DCTERMS
_VALUE: Final = _iris(_VCARD + "value")
_TIMES: Final = ("dateTime", "date")

CONTACTS: Final = PersonalDataKind(
    "contacts",
    _types(("Individual", _VCARD), ("Person", "schema:")),
    (
        Field("name", Form.TEXT, _iris(_VCARD + "fn", "schema:name", vocab.FOAF_NAME)),
        Field(
            "email",
            Form.MAIL,
            _iris(_VCARD + "hasEmail", _VCARD + "email", "schema:email"),
            many=True,
            inner=_VALUE,
            on_nodes=frozenset(_iris(_VCARD + "hasEmail")),
        ),
        Field(
            "telephone",
            Form.TELEPHONE,
            _iris(_VCARD + "hasTelephone", _VCARD + "tel", "schema:telephone"),
            many=True,
            inner=_VALUE,
            on_nodes=frozenset(_iris(_VCARD + "hasTelephone")),
        ),
        Field("organization", Form.TEXT, _iris(_VCARD + "organization-name")),
        Field("birthday", Form.DAY, _iris(_VCARD + "bday", "schema:birthDate")),
        Field(
            "website",
            Form.LINK,
            _iris(_VCARD + "url", _VCARD + "hasURL", "schema:url"),
            many=True,
            inner=_VALUE,
            on_nodes=frozenset(_iris(_VCARD + "url")),
        ),
        Field("note", Form.LONG, _iris(_VCARD + "note", "schema:description")),
    ),
    "contacts/",
    {"vcard": _VCARD},
)
CALENDAR: Final = PersonalDataKind(
    "calendar",
    _types(("Event", "schema:"), ("Vevent", ICAL), ("Event", NCAL), ("Event", _AS)),
    (
        Field(
            "name",
            Form.TEXT,
            _iris("schema:name", ICAL + "summary", NCAL + "summary", _AS + "name"),
        ),
        *(
            Field(
                name,
                Form.MOMENT,
                _iris(
                    f"schema:{name}Date",
                    f"schema:{name}Time",
                    f"{ICAL}dt{name}",
                    f"{NCAL}dt{name}",
                    f"{_AS}{name}Time",
                ),
                inner=_iris(*(space + each for space in (ICAL, NCAL) for each in _TIMES)),
            )
            for name in ("start", "end")
        ),
        Field(
            "location",
            Form.TEXT,
            _iris("schema:location", ICAL + "location", NCAL + "location", _AS + "location"),
            inner=_iris("schema:name", _AS + "name"),
            on_nodes=frozenset(_iris(_AS + "location")),
        ),
        Field(
            "note",
            Form.LONG,
            _iris(
                "schema:description",
                ICAL + "description",
                ICAL + "comment",
                NCAL + "description",
                _AS + "content",
                _AS + "summary",
            ),
        ),
    ),
    "calendar/",
    {"schema": vocab.SCHEMA_HTTP},
)
NOTEPAD: Final = Iri(vocab.PIM + "Notepad")
"""A pad of SolidOS, whose lines are a chain of nodes. It is shown and not edited."""
NOTES: Final = PersonalDataKind(
    "notes",
    {
        **_types(
            ("TextDigitalDocument", "schema:"),
            ("NoteDigitalDocument", "schema:"),
            ("Note", _AS),
            ("Article", _AS),
        ),
        NOTEPAD: DC,
    },
    (
        Field(
            "name",
            Form.TEXT,
            _iris("schema:name", "schema:headline", _AS + "name", _TERMS + "title", DC + "title"),
        ),
        Field(
            "note",
            Form.LONG,
            _iris("schema:text", "schema:articleBody", _AS + "content", SIOC + "content"),
        ),
    ),
    "notes/",
    {"schema": vocab.SCHEMA_HTTP},
)
BOOKMARKS: Final = PersonalDataKind(
    "bookmarks",
    {Iri(BOOKMARK + "Bookmark"): _TERMS, **_types(("BookmarkAction", "schema:"))},
    (
        Field(
            "name",
            Form.TEXT,
            _iris(
                _TERMS + "title",
                BOOKMARK + "title",
                DC + "title",
                vocab.RDFS + "label",
                "schema:name",
            ),
        ),
        Field(
            "link",
            Form.LINK,
            _iris(BOOKMARK + "recalls", "schema:object", "schema:target", "schema:url"),
            inner=_iris("schema:url"),
        ),
        Field("note", Form.LONG, _iris(_TERMS + "description", "schema:description")),
    ),
    "bookmarks/",
    {"bookmark": BOOKMARK, "dcterms": _TERMS},
)
KINDS: Final[Mapping[str, PersonalDataKind]] = {
    each.name: each for each in (CONTACTS, CALENDAR, NOTES, BOOKMARKS)
}
