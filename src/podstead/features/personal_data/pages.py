"""``/.pages/collections`` lists contacts, events, notes and bookmarks; with the path of a document
behind it, it shows one of them, to be edited."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import quote, urlencode

from podstead.app.services import Services
from podstead.core import errors as core_errors
from podstead.core.date_times import DAY_MS, day_of, read_day
from podstead.core.identifiers import ResourcePath
from podstead.features import WorkerFeature
from podstead.features.personal_data import entries, finder, kinds, months
from podstead.resources.sharing.documents import AgentDocuments, ReadDocument
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode
from podstead.web.codes import WebCodes
from podstead.web.files.documents import DocumentOffer, DocumentOffers, ShownDocument
from podstead.web.files.editing import Mistyped, mail_address, telephone_number, web_address
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import FOLDERS_FOR_APPS, PREFIX, files_url
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import date_text, day_text, month_text, name_sort_key
from podstead.web.pages.kinds import Kind as ContentKind
from podstead.web.pages.links import Address, Links
from podstead.web.pages.rendering import NavigationRow, refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, route

COLLECTIONS: Final = f"{PREFIX}/collections"
NEW: Final = f"{COLLECTIONS}/new"
MAX_ROWS: Final = 500
MAX_FORM_BYTES: Final = 1024 * 1024
_MAX_LINE_CHARACTERS: Final = 2_000
_KEY_BYTES: Final = 8
_MONTHS_A_YEAR: Final = 12
_EPOCH: Final = date(1970, 1, 1)
_MONDAY: Final = 4
"""The first Monday after the epoch, in days."""

FOLDERS_FOR_APPS.update(each.folder.removesuffix("/") for each in kinds.KINDS.values())
add_flash_messages(
    Tone.DONE,
    entry_saved=N_("“%(subject)s” was saved."),
    entry_added=N_("“%(subject)s” was added."),
    entry_deleted=N_("“%(subject)s” was deleted."),
)


@dataclass(frozen=True, slots=True)
class KindTexts:
    """What the pages say about a kind."""

    title: str
    add: str
    open: str
    edit: str
    delete: str
    empty: str
    icon: str


TEXTS: Final[Mapping[str, KindTexts]] = {
    "contacts": KindTexts(
        N_("Contacts"),
        N_("New contact"),
        N_("Open as contact"),
        N_("Edit contact"),
        N_("Delete this contact?"),
        N_("No contacts yet"),
        "book",
    ),
    "calendar": KindTexts(
        N_("Calendar"),
        N_("New event"),
        N_("Open as event"),
        N_("Edit event"),
        N_("Delete this event?"),
        N_("No events yet"),
        "calendar",
    ),
    "notes": KindTexts(
        N_("Notes"),
        N_("New note"),
        N_("Open as note"),
        N_("Edit note"),
        N_("Delete this note?"),
        N_("No notes yet"),
        "note",
    ),
    "bookmarks": KindTexts(
        N_("Bookmarks"),
        N_("New bookmark"),
        N_("Open as bookmark"),
        N_("Edit bookmark"),
        N_("Delete this bookmark?"),
        N_("No bookmarks yet"),
        "bookmark",
    ),
}
LABELS: Final[Mapping[str, str]] = {
    "name": N_("Name"),
    "email": N_("E-mail"),
    "telephone": N_("Telephone"),
    "organization": N_("Organization"),
    "birthday": N_("Birthday"),
    "website": N_("Website"),
    "note": N_("Note"),
    "start": N_("Begins"),
    "end": N_("Ends"),
    "location": N_("Place"),
    "link": N_("Address"),
}
_REQUIRED: Final = {
    "contacts": ("name",),
    "calendar": ("name", "start"),
    "notes": (),
    "bookmarks": ("name", "link"),
}


def collection_url(kind: kinds.PersonalDataKind, **query: str) -> str:
    """The list of things of a kind."""
    return f"{COLLECTIONS}?{urlencode({'view': kind.name, **query})}"


def entry_url(path: ResourcePath, iri: str, base_url: str, *, do: str = "") -> str:
    """The page about a thing in a document."""
    thing = iri.removeprefix(base_url + path) or iri
    return f"{COLLECTIONS}{path}?thing={quote(thing, safe='')}{f'&do={do}' if do else ''}"


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A value as a page shows it."""

    text: str
    link: Address | None = None
    day: str = ""
    time: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A line of a list."""

    title: str
    address: str
    about: ShownValue | None
    time: str = ""
    clock: str = ""
    """When an event of one day begins, as the grid of a month shows it."""
    person: str = ""
    """The WebID of a contact, if one is among the websites; empty without one."""


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """The rows of one day; of a list without days, all of them."""

    title: str
    rows: Sequence[EntryRow]


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form, as it was typed, with what is wrong with it."""

    name: str
    label: str
    form: str
    many: bool
    required: bool
    value: str
    time: str
    zone: str
    """The time zone that stays as it is."""
    error: str | None


@dataclass(frozen=True, slots=True)
class CollectionPages:
    """The lists, and the pages about one thing."""

    site: Site
    services: Services
    collections: finder.Collections

    # --- lists

    @route(COLLECTIONS, "GET")
    async def get(self, page: PageRequest) -> Response:
        person, kind = page.signed_in(), _kind(page)
        found = await self.collections.find(person.identity, person.pods, kind)
        typed = " ".join(page.query_text("q").split())[:200]
        shown = [each for each in found.places.values() if _has(each.entry, typed)]
        today = day_of(self.services.clock.now_ms())
        month = page.query_text("month")
        if kind is kinds.CALENDAR:
            period = None if typed else _month(month) or (today, "")
            groups, number = self._days(shown, period)
        else:
            key = name_sort_key()
            shown.sort(key=lambda each: key(each.entry.title))
            rows = [self._row(each) for each in shown[:MAX_ROWS]]
            groups, number = [EntryGroup("", rows)] if rows else [], len(shown)
        weeks = self._weeks(shown, month, today) if kind is kinds.CALENDAR and not typed else ()
        before, after = _months_beside(month or today[:7])
        return self.site.page(
            page,
            "personal_data/list.html",
            kind=kind,
            texts=TEXTS[kind.name],
            tabs=[
                (collection_url(each), _(TEXTS[name].title), each is kind)
                for name, each in kinds.KINDS.items()
            ],
            list_address=COLLECTIONS,
            new_address=f"{NEW}?view={kind.name}",
            can_add=bool(person.pods),
            q=typed,
            groups=groups,
            is_empty=not found.places,
            hidden=max(0, number - sum(len(each.rows) for each in groups)),
            found=found,
            month=_month_text(month) if kind is kinds.CALENDAR else "",
            weeks=weeks,
            weekdays=[day_text((_MONDAY + each) * DAY_MS, "EEE") for each in range(7)],
            this_month=collection_url(kind, month=today[:7]),
            agenda=collection_url(kind),
            before=collection_url(kind, month=before),
            after=collection_url(kind, month=after),
        )

    def _row(self, place: finder.PlacedEntry) -> EntryRow:
        entry = place.entry
        fields = [each for each in entry.kind.fields[1:] if each.form is not kinds.Form.MOMENT]
        about = next(
            (shown for each in fields for shown in self._values(place, each, row=True)), None
        )
        title, start = entry.title, entry.moment("start")
        if about is not None and about.text == title:
            about = None
        return EntryRow(
            title or _("Without a name"),
            entry_url(place.document, entry.iri, self.site.base_url),
            about,
            _times(entry),
            "" if start is None or _last_day(entry, start) != start.day else start.time,
            next((each for each in entry.values.get("website", ()) if "#" in each), ""),
        )

    def _weeks(
        self, places: Iterable[finder.PlacedEntry], month: str, today: str
    ) -> Sequence[Sequence[months.MonthDay[EntryRow]]]:
        """The grid of a month; nothing for what is none."""
        if _month(month) is None:
            return ()
        dated = [
            (start.day, _last_day(each.entry, start), self._row(each), start.time)
            for each in places
            if (start := each.entry.moment("start")) is not None
        ]
        dated.sort(key=lambda each: (each[0], each[3]))
        with suppress(ValueError, OverflowError):  # a month at the end of all years
            return months.weeks_of(month, (each[:3] for each in dated), today=today)
        return ()

    def _days(
        self, places: Iterable[finder.PlacedEntry], period: tuple[str, str] | None
    ) -> tuple[list[EntryGroup], int]:
        """The events of a period by day, those without a day last; and how many there are."""
        dated: list[tuple[str, str, EntryRow]] = []
        undated: list[EntryRow] = []
        for each in places:
            row, start = self._row(each), each.entry.moment("start")
            if start is None:
                undated.append(row)
                continue
            last = _last_day(each.entry, start)
            if period is None or (last >= period[0] and (not period[1] or start.day < period[1])):
                dated.append((start.day, start.time, row))
        dated.sort(key=lambda each: each[:2])
        days: dict[str, list[EntryRow]] = {}
        for day, _time, row in dated[:MAX_ROWS]:
            days.setdefault(day, []).append(row)
        groups = [EntryGroup(_day_text(day), rows) for day, rows in days.items()]
        if undated and (period is None or not period[1]):
            groups.append(EntryGroup(_("Without a date"), undated[:MAX_ROWS]))
            return groups, len(dated) + len(undated)
        return groups, len(dated)

    def _values(
        self, place: finder.PlacedEntry, of: kinds.Field, *, row: bool = False
    ) -> list[ShownValue]:
        links = Links(self.site.base_url, place.document)
        shown = []
        for text in place.entry.values[of.name]:
            scheme = entries.SCHEMES.get(of.form, "")
            link = links.of(scheme + text) if scheme or of.form is kinds.Form.LINK else None
            moment = (
                entries.read_moment(text)
                if of.form in (kinds.Form.MOMENT, kinds.Form.DAY)
                else None
            )
            limit = 200 if row else entries.MAX_VALUE_CHARACTERS
            cut = " ".join(text[: limit + 1].split()) if row else text
            shown.append(
                ShownValue(
                    cut[:limit] + ("…" if len(cut) > limit else ""),
                    link,
                    "" if moment is None else _day_text(moment.day),
                    "" if moment is None else _clock(moment),
                    len(text) > limit,
                )
            )
        return [each for each in shown if each.text.strip()]

    # --- new things

    @route(NEW, "GET")
    async def get_new(self, page: PageRequest) -> Response:
        """The form. Raises NotAuthenticated, NotFound, BadRequest."""
        page.signed_in()
        return self._new_form(page, _kind(page), {}, {})

    @route(NEW, "POST")
    async def post_new(self, page: PageRequest) -> Response:
        sent = await page.form(max_bytes=MAX_FORM_BYTES)
        person, kind = page.signed_in(), _kind(page)
        wanted, errors = _typed(sent, kind, kind.fields, {})
        if errors:
            return self._new_form(page, kind, _as_typed(sent), errors, status=422)
        key = self.site.randomness.token_hex(_KEY_BYTES)
        try:
            await self.collections.add(person.identity, person.pods, kind, wanted, key=key)
        except core_errors.Conflict as error:
            return self._new_form(
                page, kind, _as_typed(sent), {"": refusal_text(error)}, status=409
            )
        title = next((each for value in wanted.values() for each in value if each), "")
        notice = FlashMessage("entry-added", " ".join(title[:100].split()))
        return self.site.see_other(collection_url(kind), notice)

    def _new_form(
        self,
        page: PageRequest,
        kind: kinds.PersonalDataKind,
        typed: Mapping[str, str],
        errors: Mapping[str, str],
        *,
        status: int = 200,
    ) -> Response:
        return self.site.page(
            page,
            "personal_data/form.html",
            status=status,
            title=_(TEXTS[kind.name].add),
            fields=_form_fields(kind, kind.fields, typed, errors),
            action=f"{NEW}?view={kind.name}",
            back=collection_url(kind),
            etag="",
            problem=errors.get(""),
        )

    # --- one thing

    @route(COLLECTIONS + REST, "GET")
    async def get_entry(self, page: PageRequest) -> Response:
        """The page about a thing. Raises NotAuthenticated, AccessDenied, NotFound."""
        place, read = await self._read(page)
        may_write = await self._may_write(page, place)
        do = page.query_text("do")
        if do == "edit" and may_write:
            return self._edit_form(page, place, read, _stored(place.entry), {})
        return self._shown(page, place, read, may_write=may_write, asks=do == "delete")

    @route(COLLECTIONS + REST, "POST")
    async def post_entry(self, page: PageRequest) -> Response:
        """Save or delete a thing. Raises NotAuthenticated, WrongFormToken, and what refuses a
        write."""
        sent = await page.form(max_bytes=MAX_FORM_BYTES)
        page.signed_in()
        place, read = await self._read(page)
        kind, change = place.entry.kind, sent.text("change")
        if change not in ("save", "delete"):
            raise core_errors.BadRequest(WebCodes.FORM_MALFORMED)
        if not await self._may_write(page, place):
            raise core_errors.AccessDenied
        if read.etag != sent.text("etag"):
            return await self._changed(page, place, read, sent)
        if change == "delete":
            try:
                await self.collections.remove(page.identity, place, read)
            except core_errors.PreconditionFailed:
                return await self._changed(page, *await self._read(page), sent)
            await self._list_by_name(page, place, None)
            title = place.entry.title or _("Without a name")
            return self.site.see_other(collection_url(kind), FlashMessage("entry-deleted", title))
        wanted, errors = _typed(sent, kind, _editable(place.entry), place.entry.values)
        if errors:
            return self._edit_form(page, place, read, _as_typed(sent), errors, status=422)
        try:
            await self.collections.save(page.identity, place, read, wanted)
        except core_errors.PreconditionFailed:
            return await self._changed(page, *await self._read(page), sent)
        name = next(iter(wanted.get("name", ())), "")
        if name and name != place.entry.text("name"):
            await self._list_by_name(page, place, name)
        address = entry_url(place.document, place.entry.iri, self.site.base_url)
        notice = FlashMessage("entry-saved", name or place.entry.title)
        return self.site.see_other(address, notice)

    async def _read(self, page: PageRequest) -> tuple[finder.PlacedEntry, ReadDocument]:
        path, thing = page.target, page.query_text("thing")
        iri = self.site.base_url + path + thing if thing.startswith("#") else thing
        entry, read = await self.collections.read(page.identity, path, iri)
        return finder.PlacedEntry(entry, path), read

    async def _may_write(self, page: PageRequest, place: finder.PlacedEntry) -> bool:
        grant, _ = await self.services.gate.current_grant(page.identity, None, place.document)
        return page.person is not None and grant.allows(Mode.WRITE)

    async def _list_by_name(
        self, page: PageRequest, place: finder.PlacedEntry, name: str | None
    ) -> None:
        """Let address books list a contact by its new name, where the person may write them."""
        if place.entry.kind is kinds.CONTACTS:
            person, iri = page.signed_in(), place.entry.iri
            with suppress(core_errors.RequestRefused):  # the contact itself is stored already
                await self.collections.rename_in_books(person.identity, person.pods, iri, name)

    async def _changed(
        self,
        page: PageRequest,
        place: finder.PlacedEntry,
        read: ReadDocument,
        sent: FormSubmission,
    ) -> Response:
        problem = {"": _("Somebody else has changed this meanwhile. Look at it, and do it again.")}
        if sent.text("change") == "delete":
            may_write = await self._may_write(page, place)
            return self._shown(
                page, place, read, may_write=may_write, asks=True, problem=problem[""], status=409
            )
        return self._edit_form(page, place, read, _as_typed(sent), problem, status=409)

    def _shown(
        self,
        page: PageRequest,
        place: finder.PlacedEntry,
        read: ReadDocument,
        *,
        may_write: bool,
        asks: bool,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        kind, base_url = place.entry.kind, self.site.base_url
        shown = [(each, self._values(place, each)) for each in kind.fields[1:]]
        return self.site.page(
            page,
            "personal_data/entry.html",
            status=status,
            kind=kind,
            texts=TEXTS[kind.name],
            title=place.entry.title or _("Without a name"),
            values=[
                (_(LABELS[each.name]), each.form.value, values) for each, values in shown if values
            ],
            action=entry_url(place.document, place.entry.iri, base_url),
            edit=entry_url(place.document, place.entry.iri, base_url, do="edit"),
            delete=entry_url(place.document, place.entry.iri, base_url, do="delete"),
            list_address=collection_url(kind),
            document=files_url(place.document),
            may_write=may_write,
            asks=asks and may_write,
            etag=read.etag,
            problem=problem,
        )

    def _edit_form(
        self,
        page: PageRequest,
        place: finder.PlacedEntry,
        read: ReadDocument,
        typed: Mapping[str, str],
        errors: Mapping[str, str],
        *,
        status: int = 200,
    ) -> Response:
        kind = place.entry.kind
        address = entry_url(place.document, place.entry.iri, self.site.base_url)
        return self.site.page(
            page,
            "personal_data/form.html",
            status=status,
            title=_(TEXTS[kind.name].edit),
            fields=_form_fields(kind, _editable(place.entry), typed, errors, place.entry),
            action=address,
            back=address,
            etag=read.etag,
            problem=errors.get(""),
        )


def _kind(page: PageRequest) -> kinds.PersonalDataKind:
    return kinds.KINDS.get(page.query_text("view"), kinds.CONTACTS)


def _has(entry: entries.PersonalEntry, typed: str) -> bool:
    """Whether a thing has a text in one of its values."""
    wanted = typed.casefold()
    texts = (each for values in entry.values.values() for each in values)
    return not wanted or any(wanted in each.casefold() for each in texts)


def _clock(moment: entries.Moment) -> str:
    """A time of day, with its time zone if one is stated."""
    return " ".join(filter(None, (moment.time, _zone(moment))))


def _times(entry: entries.PersonalEntry) -> str:
    """When an event is on its day; empty for what is no event."""
    start, end = entry.moment("start"), entry.moment("end")
    if start is None:
        return ""
    if not start.time:
        return _("All day")
    ends = end is not None and end.day == start.day and end.time
    return (
        f"{_clock(start)} \N{EN DASH} {_clock(end)}" if end is not None and ends else _clock(start)
    )


def _last_day(entry: entries.PersonalEntry, start: entries.Moment) -> str:
    end = entry.moment("end")
    return start.day if end is None else max(end.day, start.day)


def _day_text(day: str) -> str:
    return date_text((date.fromisoformat(day) - _EPOCH).days * DAY_MS)


def _month_text(month: str) -> str:
    """The month as people read it; empty if it is none."""
    try:
        return month_text(read_day(f"{month}-01"))
    except ValueError:
        return ""


def _month(month: str) -> tuple[str, str] | None:
    """The first day of a month such as ``2026-11``, and that of the next one."""
    if entries.read_moment(f"{month}-01") is None or len(month) != len("2026-11"):
        return None
    return f"{month}-01", f"{_months_beside(month)[1]}-01"


def _months_beside(month: str) -> tuple[str, str]:
    """The months before and after one."""
    try:
        at = int(month[:4]) * _MONTHS_A_YEAR + int(month[5:7]) - 1
    except ValueError:
        return "", ""
    beside = (divmod(each, _MONTHS_A_YEAR) for each in (at - 1, at + 1))
    before, after = (f"{year:04}-{number + 1:02}" for year, number in beside)
    return before, after


def _editable(entry: entries.PersonalEntry) -> Sequence[kinds.Field]:
    """The fields that a form has: texts that are too long are left as they are."""
    return [
        each
        for each in entry.kind.fields
        if sum(map(len, entry.values[each.name])) <= entries.MAX_VALUE_CHARACTERS
        and not (entry.is_pad and each.name == "note")
    ]


def _stored(entry: entries.PersonalEntry) -> Mapping[str, str]:
    """The values of a thing as its form has them."""
    found = {}
    for each in entry.kind.fields:
        values = [entries.shown_in_form(text, each) for text in entry.values[each.name]]
        found[each.name] = "\n".join(values)
        if each.form is kinds.Form.MOMENT and values:
            found[each.name], _t, found[f"{each.name}-time"] = values[0].partition("T")
    return found


def _as_typed(sent: FormSubmission) -> Mapping[str, str]:
    return {name: value for name, value in sent.fields.items() if isinstance(value, str)}


def _zone(moment: entries.Moment | None) -> str:
    zone = "" if moment is None else moment.zone
    return f"UTC{zone.removeprefix('Z')}" if zone else ""


def _form_fields(
    kind: kinds.PersonalDataKind,
    fields: Sequence[kinds.Field],
    typed: Mapping[str, str],
    errors: Mapping[str, str],
    entry: entries.PersonalEntry | None = None,
) -> list[FormField]:
    return [
        FormField(
            each.name,
            _(LABELS[each.name]),
            each.form.value,
            each.many,
            each.name in _REQUIRED[kind.name],
            typed.get(each.name, ""),
            typed.get(f"{each.name}-time", ""),
            _zone(entry.moment(each.name)) if entry is not None else "",
            errors.get(each.name),
        )
        for each in fields
    ]


def _typed(
    sent: FormSubmission,
    kind: kinds.PersonalDataKind,
    fields: Sequence[kinds.Field],
    stored: Mapping[str, Sequence[str]],
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The values of a form, and what is wrong with them, by field. What is ``stored`` may stay."""
    values: dict[str, list[str]] = {}
    errors: dict[str, str] = {}
    for each in fields:
        text = sent.text(each.name)
        known = {entries.shown_in_form(value, each) for value in stored.get(each.name, ())}
        try:
            values[each.name] = list(filter(None, _values_of(sent, each, text, known)))
            if each.name in _REQUIRED[kind.name] and not values[each.name]:
                errors[each.name] = _("This is needed.")
        except core_errors.BadRequest as error:
            errors[each.name] = refusal_text(error)
    if not errors and not any(values.values()):
        errors[fields[0].name] = _("Type something.")
    if _ends_too_early(values, stored):
        errors["end"] = _("The end is before the beginning.")
    return values, errors


def _ends_too_early(
    values: Mapping[str, Sequence[str]], stored: Mapping[str, Sequence[str]]
) -> bool:
    """Whether an event ends before it begins. Times count if both are stated, in one time zone."""
    start, end = (
        entries.read_moment(next(iter(values.get(each, ())), "")) for each in ("start", "end")
    )
    if start is None or end is None:
        return False
    before = [
        entries.read_moment(next(iter(stored.get(each, ())), "")) for each in ("start", "end")
    ]
    if [each and each.text for each in before] == [start.text, end.text]:
        return False
    one_zone = len({each.zone if each else "" for each in before}) == 1
    if start.day == end.day and start.time and end.time and one_zone:
        return end.time < start.time
    return end.day < start.day


def _values_of(sent: FormSubmission, of: kinds.Field, text: str, known: set[str]) -> list[str]:
    """The typed values of a field. Raises BadRequest."""
    if of.form is kinds.Form.LONG:
        if len(text) > entries.MAX_VALUE_CHARACTERS:
            raise core_errors.BadRequest(_("This text is too long."))
        return [text.replace("\r\n", "\n")] if text.strip() else []
    if of.form is kinds.Form.MOMENT:
        time = sent.text(f"{of.name}-time").strip()[:5]
        text = f"{text.strip()}T{time}" if time else text.strip()
    lines = [" ".join(each.split()) for each in (text.splitlines() if of.many else [text])]
    if len(lines) > entries.MAX_VALUES:
        raise core_errors.BadRequest(_("At most %(count)s lines.", count=entries.MAX_VALUES))
    return [each if each in known else _line(each, of) for each in lines if each]


_CHECKS: Final = {
    kinds.Form.MAIL: mail_address,
    kinds.Form.TELEPHONE: telephone_number,
    kinds.Form.LINK: web_address,
}


def _line(typed: str, of: kinds.Field) -> str:
    """One typed value as it is stored. Raises BadRequest."""
    if len(typed) > _MAX_LINE_CHARACTERS:
        raise core_errors.BadRequest(_("This text is too long."))
    if of.form in (kinds.Form.MOMENT, kinds.Form.DAY):
        moment = entries.read_moment(typed)
        if moment is None or (of.form is kinds.Form.DAY and moment.time):
            raise core_errors.BadRequest(_("This is not a day, or not a time."))
        return moment.text
    try:
        return _CHECKS[of.form](typed) if of.form in _CHECKS else typed
    except Mistyped as mistyped:
        raise core_errors.BadRequest(str(mistyped)) from mistyped


@dataclass(frozen=True, slots=True)
class OpenAs(DocumentOffers):
    """Offers to open a document with contacts, events, notes or bookmarks as such."""

    collections: finder.Collections
    base_url: str

    async def of(
        self, page: PageRequest, document: ShownDocument, stored: Metadata | None
    ) -> Sequence[DocumentOffer]:
        """Nothing for large documents, and for those that cannot be read. Raises ServerTrouble."""
        is_large = stored is None or stored.size_bytes > finder.MAX_DOCUMENT_BYTES
        if document.kind is not ContentKind.LINKED_DATA or is_large:
            return ()
        path = document.target
        try:
            read = await self.collections.documents.read(page.identity, path)
        except core_errors.RequestRefused:
            return ()
        found = finder.things_in(read.document.graph, self.base_url + path)
        return [
            DocumentOffer(entry_url(path, each.value, self.base_url), _(TEXTS[kind.name].open))
            for kind, each in islice(found, 1)
        ]


class PersonalDataInWorker(WorkerFeature):
    """The pages in one worker."""

    navigation: Sequence[NavigationRow] = ((COLLECTIONS, "book", N_("Contacts & more")),)

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def _collections(self) -> finder.Collections:
        services = self._services
        return finder.Collections(AgentDocuments(services.resources, services.documents))

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        services = self._services
        return (CollectionPages(services.pages.site, services, self._collections),)

    @cached_property
    def document_offers(self) -> DocumentOffers:  # type: ignore[override]
        return OpenAs(self._collections, self._services.base_url)
