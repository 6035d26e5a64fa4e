"""Turns texts into the terms that an index stores, and what people type into questions about them.

The terms of a text are its words: maximal runs of letters, marks and digits as Unicode has them, by
compatibility and case folding and without accents. Scripts that put no space between words, and
Korean, whose words have endings for which there is no stemmer, are divided into trigrams instead:
one term begins at each character and has up to three, so that each part of a run is found.

Words of a text whose language is known are also indexed by their stems, which carry a tag of the
language and so never equal a word (``·en·hous``). A question does not know the languages of the
texts: a single word of it matches itself and the stems that it has in all of them. A phrase, a
prefix, and what consists of several terms, such as ``snake_case``, match the words as they are.

Pure: strings in, values out. The engines index :func:`index_text`, terms separated by spaces, which
consist of ASCII letters and digits and of characters outside ASCII.
"""

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

import icu

MAX_TERM_CHARACTERS: Final = 64
"""What is longer is hardly a word; it is found by its beginning."""
MAX_QUESTION_CHARACTERS: Final = 500
MAX_CLAUSES: Final = 24
SNIPPET_CHARACTERS: Final = 200
_MAX_LANGUAGES: Final = 4
MAX_STEMS: Final = 30_000
"""So many stems are made in one analysis; further words have none."""
_GRAM: Final = 3
_PART_CHARACTERS: Final = 400
_ANALYSED_CHARACTERS: Final = 10_000
"""How much of a text is analysed for a snippet, in parts."""

_STEMMERS: Final = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
STEMMED_LANGUAGES: Final = frozenset(_STEMMERS)
"""The primary subtags of the languages whose words have stems."""
_SAME_LANGUAGE: Final = {"nb": "no", "nn": "no"}
_WITHOUT_LATIN: Final = frozenset({"ar", "el", "fa", "hi", "hy", "ne", "ru", "ta", "yi"})
"""Languages whose stemmers leave Latin letters alone."""
_CHANGED_BEGINNINGS: Final = frozenset({"ar", "ga", "id", "pl", "sr", "st"})
"""Languages whose stemmers change the beginnings of words."""


def _class(pattern: str) -> str:
    """A set of characters of ICU as the inside of a character class of ``re``."""
    characters = icu.UnicodeSet(pattern)
    return "".join(
        f"{re.escape(characters.getRangeStart(index))}-{re.escape(characters.getRangeEnd(index))}"
        for index in range(characters.getRangeCount())
    )


_LETTERS: Final = "[[:L:][:M:][:N:]]"
_ASCII_SEPARATOR: Final = r"[\0-/:-@[-`{-\x7f]"
_SPACE_OF_NO_WIDTH: Final = "\N{ZERO WIDTH SPACE}"
_LONG_VOWEL: Final = "\N{KATAKANA-HIRAGANA PROLONGED SOUND MARK}"
_HALF_WIDTH_MARKS: Final = (
    "\N{HALFWIDTH KATAKANA VOICED SOUND MARK}\N{HALFWIDTH KATAKANA SEMI-VOICED SOUND MARK}"
)
_UNSPACED: Final = "".join(
    f"[:scx={script}:]"
    for script in (
        "Bopo",
        "Hang",
        "Hani",
        "Hira",
        "Kana",
        "Khmr",
        "Laoo",
        "Mymr",
        "Thai",
        "Tibt",
    )
)


class _Patterns(NamedTuple):
    """Patterns of classes that ICU has."""

    word: re.Pattern[str]
    """What has no space and no punctuation in it."""
    piece: re.Pattern[str]
    """A run of a script without spaces, which is the group ``run``, or a word."""
    run: re.Pattern[str]
    cluster: re.Pattern[str]
    """A character with what may be composed with it."""
    accent: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """Made when a text is first analysed, since that takes a while."""
    letters, marks = _class(_LETTERS), _class("[:M:]")
    # Characters that nobody sees, such as soft hyphens, end no word, except the space of width 0.
    hidden = _class(f"[[:Cf:]-[{_SPACE_OF_NO_WIDTH}]]")
    # The marks of many scripts belong to some of these as well, and begin no run.
    unspaced = _class(f"[[{_UNSPACED}]&{_LETTERS}-[[:sc=Zinh:][:sc=Zyyy:]]{_LONG_VOWEL}]")
    jamo = _class("[[:hst=V:][:hst=T:]]")
    return _Patterns(
        # The same as its last alternative, but fast for ASCII.
        word=re.compile(
            f"(?!{_ASCII_SEPARATOR})"
            rf"(?:[0-9A-Za-z]+(?={_ASCII_SEPARATOR}|\Z)|[{letters}][{letters}{hidden}]*)"
        ),
        piece=re.compile(f"(?P<run>[{unspaced}]+)|(?:(?![{unspaced}])[{letters}])+"),
        run=re.compile(f"[{unspaced}]"),
        cluster=re.compile(f".[{marks}{jamo}{_HALF_WIDTH_MARKS}]*", re.DOTALL),
        accent=re.compile(f"[{_class('[[:M:]&[[:sc=Zinh:][:sc=Arab:][:sc=Hebr:][:sc=Cyrl:]]]')}]"),
    )


_VOICED: Final = "\u3099\u309a"
"""The marks that make other syllables of Japanese ones."""
_PLAIN: Final = str.maketrans(
    {
        "æ": "ae",
        "ð": "d",
        "ø": "o",
        "þ": "th",
        "đ": "d",
        "ħ": "h",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
        "ł": "l",
        "ŋ": "n",
        "œ": "oe",
    }
)
"""Letters that people who do not have them on a keyboard write otherwise."""
_CASE_FOLDING: Final = icu.Normalizer2.getNFKCCasefoldInstance()


class Stemmer(Protocol):
    """A stemmer of snowballstemmer."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - its name there
        """The stem of a word in lower case."""


class Term(NamedTuple):
    """One term: ``text[start:end]`` of the analysed text, and its stems in the languages of it."""

    text: str
    start: int
    end: int
    stems: tuple[str, ...] = ()


def terms(text: str, language: str | None = None) -> list[Term]:
    """The terms of a text, in their order.

    ``language`` holds the BCP 47 tags of the languages of the text, with commas between them, as
    Content-Language does. Languages without a stemmer are ignored.
    """
    return list(_scan(text, languages_of(language), _Stemmers()))


def index_text(found: Iterable[Term]) -> str:
    """What an engine indexes: all terms in their order, and then each stem once."""
    words: list[str] = []
    stems: dict[str, None] = {}
    for term in found:
        words.append(term.text)
        stems.update(dict.fromkeys(term.stems))
    return " ".join((*words, *stems))


def languages_of(language: str | None) -> tuple[str, ...]:
    """The stemmed languages that a list of language tags names, as primary subtags."""
    tags = (tag.strip().lower() for tag in (language or "").replace("_", "-").split(","))
    primary = (tag.partition("-")[0] for tag in tags)
    known = (_SAME_LANGUAGE.get(subtag, subtag) for subtag in primary)
    return tuple(dict.fromkeys(subtag for subtag in known if subtag in _STEMMERS))[:_MAX_LANGUAGES]


def fold(text: str) -> str:
    """A text as it is compared: in compatibility and case folding, without accents."""
    return _without_accents(_case_folded(text))


def _case_folded(text: str) -> str:
    return text.lower() if text.isascii() else str(_CASE_FOLDING.normalize(text))


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.translate(_PLAIN))
    plain = _patterns().accent.sub(lambda mark: mark[0] if mark[0] in _VOICED else "", decomposed)
    return unicodedata.normalize("NFC", plain)


def _scan(text: str, languages: Sequence[str], stemmers: "_Stemmers") -> Iterator[Term]:
    known: dict[str, list[Term]] = {}
    for match in _patterns().word.finditer(text):
        word, start = match[0], match.start()
        found = known.get(word)
        if found is None:
            found = list(_terms_of(word, languages, stemmers))
            if len(word) < MAX_TERM_CHARACTERS:
                known[word] = found
        for term in found:
            yield Term(term.text, start + term.start, start + term.end, term.stems)


def _terms_of(word: str, languages: Sequence[str], stemmers: "_Stemmers") -> Iterator[Term]:
    """The terms of what has no space and no punctuation in it."""
    if word.isascii():
        lower = word.lower()
        yield Term(lower[:MAX_TERM_CHARACTERS], 0, len(word), stemmers.stems(lower, languages))
        return
    folded, places = _folded_with_places(word)
    for match in _patterns().piece.finditer(folded):
        begin, end = match.span()
        if match["run"] is None:
            piece = match[0][:MAX_TERM_CHARACTERS]
            # The stems are those of the word with its accents.
            whole = end - begin == len(folded)
            stems = stemmers.stems(_case_folded(word) if whole else piece, languages)
            yield Term(piece, places[begin][0], places[end - 1][1], stems)
            continue
        for first in range(begin, end):
            last = min(first + _GRAM, end)
            yield Term(folded[first:last], places[first][0], places[last - 1][1])


def _folded_with_places(word: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """A word as it is compared, and where each character of that comes from."""
    folded = fold(word)
    if folded == word.lower() and len(folded) == len(word):
        return folded, [(index, index + 1) for index in range(len(word))]
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    for match in _patterns().cluster.finditer(word):
        part = fold(match[0])
        parts.append(part)
        places.extend([match.span()] * len(part))
    return "".join(parts), places


class _Stemmers:
    """The stemmers of one analysis, which must not share them with another thread."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Stemmer] = {}
        self._left = MAX_STEMS

    def stems(self, word: str, languages: Sequence[str]) -> tuple[str, ...]:
        """The stems of a folded word, with the tags of their languages."""
        if not languages or not any(map(str.isalpha, word)):
            return ()
        chosen = (
            language
            for language in languages
            if not (language in _WITHOUT_LATIN and word.isascii())
        )
        stems = ((language, self._stem(word, language)) for language in chosen)
        return tuple(f"·{language}·{stem}" for language, stem in stems if stem)

    def _stem(self, word: str, language: str) -> str:
        if self._left == 0:
            return ""
        self._left -= 1
        stemmer = self._stemmers.get(language)
        if stemmer is None:
            import snowballstemmer

            stemmer = self._stemmers[language] = snowballstemmer.stemmer(_STEMMERS[language])
        return _without_accents(stemmer.stemWord(word[:MAX_TERM_CHARACTERS]))


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that a question looks for, or does not want.

    A text matches if its terms have ``words`` one behind the other, the last of them as a prefix if
    ``is_prefix``, or if it has one of the ``stems``.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    stems: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody looks for: all of ``wanted``, none of ``excluded``, and within the filters.

    Of several types, folders or authors, one is enough; they stand as they were typed. ``after_ms``
    is inclusive, ``before_ms`` is not, both in Unix time.
    """

    wanted: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()
    types: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    after_ms: int | None = None
    before_ms: int | None = None


_QUOTES: Final = str.maketrans(
    dict.fromkeys("“”„‟«»\N{FULLWIDTH QUOTATION MARK}", '"') | {"\N{IDEOGRAPHIC SPACE}": " "}
)
_PART: Final = re.compile(
    r"(?P<minus>-?)(?:(?P<filter>type|in|by|after|before):)?"
    r'(?:"(?P<quoted>[^"]*)(?:"(?P<star>\*?)|\Z)|(?P<bare>[^\s"]+))',
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)


def parse_question(text: str, languages: Iterable[str] = STEMMED_LANGUAGES) -> Question:
    """Read what somebody typed: words, ``"a phrase"``, ``prefix*``, ``-not``, and the filters
    ``type:``, ``in:``, ``by:``, ``after:`` and ``before:``.

    Nothing is an error: what is no filter is looked for as words, and what has neither letters nor
    digits is ignored, as is what is more than the limits of this module. ``languages`` are the
    primary subtags of the languages that the texts may have.
    """
    chosen = sorted(set(languages) & STEMMED_LANGUAGES)
    stemmers = _Stemmers()
    wanted: list[Clause] = []
    excluded: list[Clause] = []
    filters: dict[str, list[str]] = {"type": [], "in": [], "by": []}
    moments: dict[str, int] = {}
    for match in _PART.finditer(text[:MAX_QUESTION_CHARACTERS].translate(_QUOTES)):
        if len(wanted) + len(excluded) == MAX_CLAUSES:  # a clause takes up to 2 ms
            break
        name = (match["filter"] or "").lower()
        phrase = match["quoted"]
        value = match["bare"] if phrase is None else phrase
        if name and not match["minus"]:
            if name in filters:
                filters[name].append(value)
                continue
            moment = _moment_ms(value)
            if moment is not None:
                moments[name] = moment
                continue
        if name:
            value = f"{name} {value}"
        is_prefix = value.endswith("*") or match["star"] == "*"
        clause = _clause(value, chosen, stemmers, is_prefix=is_prefix, is_phrase=phrase is not None)
        if clause is not None:
            (excluded if match["minus"] else wanted).append(clause)
    return Question(
        wanted=tuple(dict.fromkeys(wanted)),
        excluded=tuple(dict.fromkeys(excluded)),
        types=tuple(filters["type"]),
        folders=tuple(filters["in"]),
        authors=tuple(filters["by"]),
        after_ms=moments.get("after"),
        before_ms=moments.get("before"),
    )


def _moment_ms(value: str) -> int | None:
    """When a year, a month or a day begins."""
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return round(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None


def _clause(
    text: str, languages: Sequence[str], stemmers: _Stemmers, *, is_prefix: bool, is_phrase: bool
) -> Clause | None:
    found = list(_scan(text, languages, stemmers))
    # A run is found in the middle of others: the shorter terms at its end are not looked for, and
    # a run that is no longer than these begins a term.
    while len(found) > 1 and _is_rest(found[-2], found[-1]):
        found.pop()
    if not found:
        return None
    words = tuple(term.text for term in found)
    last = words[-1]
    if _patterns().run.match(last):
        return Clause(words, is_prefix=len(last) < _GRAM)
    stems = () if is_phrase or is_prefix or len(words) > 1 else found[0].stems
    return Clause(words, is_prefix, frozenset(stems))


def _is_rest(before: Term, last: Term) -> bool:
    """Whether a term begins one character after another in a run, and ends with it."""
    return before.text[1:] == last.text and _patterns().run.match(last.text) is not None


def snippet(question: Question, text: str, language: str | None = None) -> list[tuple[str, bool]]:
    """The passage of a text that has most of what a question looks for, or else its beginning.

    In parts, each with whether it is a hit. A long text is looked at only where a quick search
    finds something, and only up to a limit.
    """
    hits = list(_hits(question.wanted, text, languages_of(language)))
    start, end = _best_passage(sorted(hits), len(text))
    return _marked(text, start, end, hits)


class _Hit(NamedTuple):
    """Where a clause is found, and which one it is."""

    start: int
    end: int
    number: int


def _hits(clauses: Sequence[Clause], text: str, languages: Sequence[str]) -> Iterator[_Hit]:
    """Where the clauses are found, in the order of the ends; until all were found close together,
    and a little further."""
    sought = _Sought(clauses, languages)
    last_terms: deque[Term] = deque(
        maxlen=max((len(clause.words) for clause in clauses), default=0)
    )
    starts = [-SNIPPET_CHARACTERS] * len(clauses)
    stop = len(text)
    for term in _promising_terms(text, sought.beginnings):
        if term.start > stop:
            return
        last_terms.append(term)
        for number in sought.ending_with(term, text):
            place = _place(clauses[number], last_terms)
            if place is not None:
                starts[number] = place[0]
                yield _Hit(*place, number)
                if term.end - min(starts) <= SNIPPET_CHARACTERS:
                    stop = min(stop, term.end + SNIPPET_CHARACTERS)


def _promising_terms(text: str, beginnings: Collection[str]) -> Iterator[Term]:
    """The terms of those parts of a text in which a term may have one of some beginnings. An empty
    term stands for what is left out."""
    left, start, stemmers = _ANALYSED_CHARACTERS, 0, _Stemmers()
    while beginnings and start < len(text) and left > 0:
        end = start + _PART_CHARACTERS
        space = text.rfind(" ", start + 1, end)
        if end < len(text) and space > 0:
            end = space
        part = text[start : end + MAX_TERM_CHARACTERS]  # the last term begins before the end
        folded = fold(part)
        if any(beginning in folded for beginning in beginnings):
            left -= end - start
            for term in _scan(part, (), stemmers):
                if start + term.start < end:
                    yield Term(term.text, start + term.start, start + term.end)
        else:
            yield Term("", start, start)
        start = end


class _Sought:
    """Tells quickly which clauses may end with a term."""

    def __init__(self, clauses: Sequence[Clause], languages: Sequence[str]) -> None:
        self._languages = languages
        self._stemmers = _Stemmers()
        self._clauses = clauses
        self._whole: dict[str, list[int]] = {}
        self._beginnings: list[tuple[str, int]] = []
        """Of a prefix, and of a word and all its stems: other forms mostly begin like that."""
        self.beginnings: set[str] = set()
        for number, clause in enumerate(clauses):
            last = clause.words[-1]
            self.beginnings.update((clause.words[0], last))
            stems = [
                stem.rpartition("·")[2] for stem in clause.stems if stem.split("·")[1] in languages
            ]
            if clause.is_prefix:
                self._beginnings.append((last, number))
            else:
                self._whole.setdefault(last, []).append(number)
            if stems:
                changes_beginnings = not _CHANGED_BEGINNINGS.isdisjoint(languages)
                beginning = "" if changes_beginnings else _common_beginning([last, *stems])
                self._beginnings.append((beginning, number))
                self.beginnings.add(beginning)
        endings = (*self._whole, *(beginning for beginning, _ in self._beginnings))
        self._letters = tuple({ending[:1] for ending in endings})

    def ending_with(self, term: Term, text: str) -> Iterable[int]:
        """The numbers of clauses of which a term of the text may be the last word."""
        if not term.text.startswith(self._letters):
            return ()
        numbers = set(self._whole.get(term.text, ()))
        stems: Sequence[str] | None = None
        for beginning, number in self._beginnings:
            if number in numbers or not term.text.startswith(beginning):
                continue
            if self._clauses[number].is_prefix:
                numbers.add(number)
                continue
            if stems is None:
                word = text[term.start : term.end]
                analysed = _scan(word, self._languages, self._stemmers)
                stems = [stem for each in analysed for stem in each.stems]
            if not self._clauses[number].stems.isdisjoint(stems):
                numbers.add(number)
        return numbers


def _common_beginning(words: Sequence[str]) -> str:
    """What the words begin with, but for the last letter, which may be another one in other forms,
    as in the Dutch “huis” and “huizen”."""
    first, last = min(words), max(words)
    same = (one == other for one, other in zip(first, last, strict=False))
    return first[: max(1, sum(takewhile(bool, same)) - 1)]


def _place(clause: Clause, last_terms: deque[Term]) -> tuple[int, int] | None:
    """Where a clause is found, if it ends with the last of some terms, which may end it."""
    last, count = last_terms[-1], len(clause.words)
    if count > len(last_terms) or any(
        last_terms[index - count].text != clause.words[index] for index in range(count - 1)
    ):
        return None
    sought = clause.words[-1]
    is_part = clause.is_prefix and _patterns().run.match(sought) is not None
    end = min(last.end, last.start + len(sought)) if is_part else last.end
    return last_terms[-count].start, end


def _best_passage(hits: Sequence[_Hit], length: int) -> tuple[int, int]:
    """The window with the most clauses, then the most hits; the first of equals.

    ``hits`` stand in the order of their beginnings.
    """
    best, best_score = (0, 0), (0, 0)
    within: deque[_Hit] = deque()
    counts: Counter[int] = Counter()
    for hit in hits:
        within.append(hit)
        counts[hit.number] += 1
        while within and hit.end - within[0].start > SNIPPET_CHARACTERS:
            left = within.popleft()
            counts[left.number] -= 1
            if not counts[left.number]:
                del counts[left.number]
        score = len(counts), len(within)
        if score > best_score:
            best, best_score = (within[0].start, max(each.end for each in within)), score
    start, end = best
    start = max(0, start - max(0, SNIPPET_CHARACTERS - (end - start)) // 3)
    return start, min(length, max(end, start + SNIPPET_CHARACTERS))


_SPACE: Final = re.compile(r"\s+")


def _marked(text: str, start: int, end: int, hits: Iterable[_Hit]) -> list[tuple[str, bool]]:
    """A passage in parts, without words that are cut, and with single spaces."""
    inside = [(first, last) for first, last, _ in sorted(hits) if first >= start and last <= end]
    if start:  # after the first space, unless a hit comes before it
        limit = min([first for first, _ in inside] + [end])
        space = _SPACE.search(text, start - 1, limit)
        start = space.end() if space else start
    if end < len(text):
        limit = max([last for _, last in inside] + [start])
        before = text.rfind(" ", limit, end + 1)
        end = before if before > start else end
    parts: list[tuple[str, bool]] = [("…", False)] if start else []
    place = start
    for first, last in inside:
        if last <= place:
            continue
        parts += [(text[place:first], False), (text[max(first, place) : last], True)]
        place = last
    parts += [(text[place:end], False)]
    if end < len(text):
        parts.append(("…", False))
    joined: list[tuple[str, bool]] = []
    for part, is_hit in parts:
        shown = _SPACE.sub(" ", part)
        if joined and joined[-1][1] == is_hit:
            joined[-1] = joined[-1][0] + shown, is_hit
        elif shown:
            joined.append((shown, is_hit))
    return joined
