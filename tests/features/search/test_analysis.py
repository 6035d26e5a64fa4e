"""The terms of texts and questions, against plain definitions of what is found."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import icu
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podstead.features.search import analysis
from podstead.features.search.analysis import (
    Clause,
    Question,
    Term,
    fold,
    index_text,
    parse_question,
    snippet,
    terms,
)
from tests.features.search.plain_search import matches

# ruff: noqa: RUF001 - the letters that people write

WORDS = ("house", "houses", "Häuser", "straße", "北京", "x_1", "l’homme", "3.14", "ΣΊΣΥΦΟΣ")
repeatable = settings(derandomize=True)
SEPARATORS = (" ", "  ", "\n", ", ", "-", "“", "。")
UNSPACED = "日本語東京都はカタカナ我爱北京한국어ภาษาไทย"
any_text = st.text(max_size=60) | st.lists(
    st.sampled_from(WORDS + SEPARATORS) | st.text(alphabet="aåÉßñ\u0301\u00ad東ｶﾞ가ไ٠١", max_size=4),
    max_size=20,
).map("".join)
languages = st.sampled_from([None, "de", "en-GB", "nl, en", "zz", "sr", "", "EN_us"])


def found(text: str, sought: str, language: str | None = None) -> bool:
    question = parse_question(sought, analysis.languages_of(language))
    return matches(question, index_text(terms(text, language)))


@repeatable
@given(any_text, languages)
@example("ﷺ ㈱ ½ ﾎﾟﾝﾄﾞ İstanbul", "tr")
def test_the_offsets_of_a_term_point_to_what_it_is_made_of(text: str, language: str | None) -> None:
    for term in terms(text, language):
        assert 0 <= term.start < term.end <= len(text)
        assert term.text in fold(text[term.start : term.end])


@repeatable
@given(any_text, languages)
def test_terms_stand_in_the_order_of_the_text(text: str, language: str | None) -> None:
    for first, second in pairwise(terms(text, language)):
        assert (first.start, first.end) <= (second.start, second.end)


@repeatable
@given(any_text, languages)
def test_terms_are_what_both_engines_keep_as_one_token(text: str, language: str | None) -> None:
    for term in terms(text, language):
        assert term.text
        assert len(term.text) <= analysis.MAX_TERM_CHARACTERS
        for part in (term.text, *term.stems):
            assert all(not char.isascii() or char.isalnum() for char in part)
            assert not any(map(str.isspace, part))
            assert part == part.casefold()
        assert "·" not in term.text
        assert all(stem.startswith("·") for stem in term.stems)


def characters(*categories: str) -> st.SearchStrategy[str]:
    """Of scripts with spaces, without what is punctuation once it is in compatibility folding."""
    chosen = st.characters(categories=categories, max_codepoint=0x0DFF)  # type: ignore[arg-type]
    return chosen.filter(lambda char: "·" not in fold(char))


LETTERS_AND_PUNCTUATION = st.lists(
    characters("Zs", "Po")
    | st.builds(str.__add__, characters("Ll", "Lu", "Nd"), characters("Mn", "Mc") | st.just("")),
    max_size=40,
).map("".join)


@repeatable
@given(LETTERS_AND_PUNCTUATION)
@example("The quick (“brown”) fox can’t jump 32.3 feet, right? हिन्दी में")
def test_words_are_those_of_unicode_divided_at_punctuation(text: str) -> None:
    breaks = icu.BreakIterator.createWordInstance(icu.Locale.getRoot())
    breaks.setText(text)
    expected: list[str] = []
    for start, end in pairwise((0, *breaks)):  # no character of the test is outside the basic plane
        spaced = (c if unicodedata.category(c)[0] in "LMN" else " " for c in text[start:end])
        expected += fold("".join(spaced)).split()
    assert [term.text for term in terms(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick-brown FOX", ["the", "quick", "brown", "fox"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Ærøskøbing Łódź İstanbul ıssız", ["aeroskobing", "lodz", "istanbul", "issiz"]),
        ("ｆｕｌｌ ﬁne ①", ["full", "fine", "1"]),
        ("l’homme can't snake_case a.b", ["l", "homme", "can", "t", "snake", "case", "a", "b"]),
        ("soft\u00adhyphen zero\u200bspace", ["softhyphen", "zero", "space"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("מְנוֹרָה مُحَمَّد", ["מנורה", "محمد"]),
        ("ёлка Σίσυφος", ["елка", "σισυφοσ"]),
        ("東京2020", ["東京", "京", "2020"]),
        ("日本語で", ["日本語", "本語で", "語で", "で"]),
        ("ｶﾞｲﾄﾞ", ["ガイド", "イド", "ド"]),
        ("か\u3099", ["が"]),
        ("한국어를", ["한국어", "국어를", "어를", "를"]),
        ("… — !?", []),
        ("", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert [term.text for term in terms(text)] == expected


def test_a_term_of_several_characters_points_to_all_of_them() -> None:
    assert terms("a ｶﾞｲﾄﾞ")[1] == Term("ガイド", 2, 7)
    assert [term[:3] for term in terms("x ﷺ")][1:] == [
        (word, 2, 3) for word in ("صلى", "الله", "عليه", "وسلم")
    ]


@repeatable
@given(any_text)
def test_what_is_written_in_canonically_equal_ways_has_the_same_terms(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    decomposed = unicodedata.normalize("NFD", text)
    assert [term.text for term in terms(composed)] == [term.text for term in terms(decomposed)]


@repeatable
@given(st.text(alphabet=UNSPACED, min_size=1, max_size=30), st.data())
def test_each_part_of_a_run_is_found(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    assert found(f"x {run}, y", run[start:end])
    assert found(f"x{run}2020", f'"{run[start:end]}"')


@repeatable
@given(st.text(alphabet="日本語", max_size=12), st.text(alphabet="日本語", min_size=1, max_size=5))
def test_a_part_is_found_in_a_run_only_if_it_is_in_it(run: str, sought: str) -> None:
    assert found(run, sought) == (sought in run)


def plain_hit(words: list[str], sought: list[str], *, prefix: bool) -> bool:
    folded = [fold(word) for word in words]
    wanted = [fold(word) for word in sought]
    for start in range(len(folded) - len(wanted) + 1):
        window = folded[start : start + len(wanted)]
        if window == wanted:
            return True
        if prefix and window[:-1] == wanted[:-1] and window[-1].startswith(wanted[-1]):
            return True
    return False


few_words = st.lists(st.text(alphabet="aäB", min_size=1, max_size=3), min_size=1, max_size=8)


@repeatable
@given(few_words, few_words.map(lambda words: words[:3]), st.booleans())
def test_a_phrase_is_found_where_its_words_stand_together(
    words: list[str], sought: list[str], prefix: bool
) -> None:
    star = "*" if prefix else ""
    expected = plain_hit(words, sought, prefix=prefix)
    assert found(" ".join(words), f'"{" ".join(sought)}"{star}') == expected
    assert found(", ".join(words), f'"{" ".join(sought)}{star}"') == expected
    assert found(" ".join(words), f'-"{" ".join(sought)}"{star}') != expected


@repeatable
@given(few_words, few_words)
def test_all_words_are_wanted_in_any_order(words: list[str], sought: list[str]) -> None:
    folded = {fold(word) for word in words}
    assert found(" ".join(words), " ".join(sought)) == all(fold(word) in folded for word in sought)


def test_a_phrase_does_not_go_from_one_field_to_the_next_nor_to_stems() -> None:
    name, body = (index_text(terms(text, "en")) for text in ("big", "houses"))
    assert matches(parse_question("big houses"), name, body)
    assert not matches(parse_question('"big houses"'), name, body)
    assert not matches(parse_question('"houses en hous"'), body)
    assert not matches(parse_question("en*"), body)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "connection", "connected"),
        ("en-GB", "houses", "house"),
        ("de", "Häuser", "Haus"),
        ("de-AT", "aufgaben", "Aufgabe"),
        ("es", "canciones", "canción"),
        ("nl", "vergaderingen", "vergadering"),
        ("fr", "chevaux", "cheval"),
        ("it", "bambini", "bambino"),
        ("pt-BR", "casas", "casa"),
        ("sv", "bilarna", "bil"),
        ("nb", "bilene", "bil"),
        ("da", "husene", "hus"),
        ("fi", "taloissa", "talo"),
        ("hu", "házak", "ház"),
        ("tr", "evler", "ev"),
        ("ru", "книги", "книга"),
        ("pl", "kotami", "kotach"),
        ("cs", "hradech", "hrad"),
        ("el", "δρόμοι", "δρόμος"),
        ("ar", "الكتاب", "كتابة"),
        ("sr", "кућа", "kuća"),
        ("nl, de", "Häuser", "Haus"),
        ("EN_us", "houses", "house"),
    ],
)
def test_other_forms_of_a_word_are_found_where_the_language_is_known(
    language: str, one: str, other: str
) -> None:
    assert found(f"x {one} y", other, language)
    assert found(f"x {other} y", one, language)
    assert not found(f"x {one} y", other)
    assert not found(f"x {one} y", f'"{other}"', language)
    assert not found(f"x {one} y", f"-{other}", language)


def test_a_stem_of_one_language_is_not_that_of_another() -> None:
    indexed = index_text(terms("houses", "en"))
    assert matches(parse_question("house", ["en", "fi"]), indexed)
    assert not matches(parse_question("house", ["de", "fi"]), indexed)


@repeatable
@given(any_text, languages)
def test_each_word_of_a_text_finds_the_text(text: str, language: str | None) -> None:
    indexed = index_text(terms(text, language))
    for term in terms(text):
        assert matches(parse_question(term.text, ["nl"]), indexed)
        assert matches(parse_question(f"{term.text[:2]}*", []), indexed)


@repeatable
@given(st.text(max_size=80) | any_text)
def test_whatever_is_typed_is_a_question(text: str) -> None:
    question = parse_question(text, ["en", "ru"])
    snippet(question, text)
    for clause in question.wanted + question.excluded:
        assert clause.words
        assert all(clause.words)


MAY_2024, JUNE_2024 = 1_714_521_600_000, 1_717_200_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Question()),
        ('- -- " * : -"" \'\'', Question()),
        ("type:pdf TYPE:image", Question(types=("pdf", "image"))),
        ('in:/a/ in:"My folder"', Question(folders=("/a/", "My folder"))),
        ("by:alice", Question(authors=("alice",))),
        ("by:https://a.example/#me", Question(authors=("https://a.example/#me",))),
        ("after:2024-05 before:2024-06-01", Question(after_ms=MAY_2024, before_ms=JUNE_2024)),
        ("after:2024-13", Question(wanted=(Clause(("after", "2024", "13")),))),
        ("after:party", Question(wanted=(Clause(("after", "party")),))),
        ("-type:pdf", Question(excluded=(Clause(("type", "pdf")),))),
        ("a.b “c d” „e f", Question(wanted=tuple(Clause(tuple(w)) for w in ("ab", "cd", "ef")))),
        ('"c d"* -"e f*"', Question((Clause(("c", "d"), True),), (Clause(("e", "f"), True),))),
        ("東京　日本語", Question((Clause(("東京",), True), Clause(("日本語",))))),
        ('"東 東京都"', Question((Clause(("東", "東京都")),))),
        ("x:y", Question(wanted=(Clause(("x", "y")),))),
        ("type:", Question(wanted=parse_question("type", []).wanted)),
    ],
)
def test_questions(text: str, expected: Question) -> None:
    assert parse_question(text, []) == expected


def test_a_question_has_the_stems_of_the_languages_that_it_is_told() -> None:
    assert parse_question("houses", ["en", "ru", "zz"]).wanted == (
        Clause(("houses",), stems=frozenset({"·en·hous"})),
    )
    assert "·no·bil" in parse_question("bilene").wanted[0].stems


def test_a_question_is_bounded() -> None:
    question = parse_question(" ".join(f"w{number}" for number in range(1000)), [])
    assert len(question.wanted) == analysis.MAX_CLAUSES
    assert parse_question("x" * 10_000, []).wanted[0].words == ("x" * 64,)
    assert found("x" * 10_000, "x" * 300)


def marks(parts: list[tuple[str, bool]]) -> list[str]:
    return [text for text, is_hit in parts if is_hit]


def test_a_snippet_shows_the_passage_with_most_of_what_is_sought() -> None:
    text = "dog " + "filler " * 100 + "The houses of\n the Dog, " + "more " * 100 + "house"
    parts = snippet(parse_question("house dog"), text, "en")
    assert marks(parts) == ["houses", "Dog"]
    assert parts[0][0].startswith("…filler")
    assert parts[-1][0].endswith("more…")
    assert "houses of the Dog" in "".join(part for part, _ in parts)


@pytest.mark.parametrize(
    ("sought", "text", "expected"),
    [
        ('"the dog"', "dog the dog", ["the dog"]),
        ("do*", "A dog does", ["dog", "does"]),
        ("東", "大東京", ["東"]),
        ("東京タワー", "大東京タワーへ", ["東京タワー"]),
        ("cafe", "Le CAFÉ", ["CAFÉ"]),
        ("-dog cat", "dog cat", ["cat"]),
        ("none", "dog", []),
        ("", "dog", []),
    ],
)
def test_hits_are_marked(sought: str, text: str, expected: list[str]) -> None:
    parts = snippet(parse_question(sought), text)
    assert marks(parts) == expected
    assert "".join(part for part, _ in parts) == text


def test_a_snippet_of_a_long_text_is_looked_for_where_it_may_be() -> None:
    for sought, language in (("häusern", "de"), ('"the Häuser"', None), ("haus* small", None)):
        text = "big filler " * 50_000 + "the Häuser are small" + " more" * 50_000
        question = parse_question(sought, analysis.languages_of(language))
        assert "Häuser" in "".join(marks(snippet(question, text, language)))
    long = "filler東" * 20_000 + "大東京タワーへ行く"
    assert marks(snippet(parse_question("京タワー", []), long)) == ["京タワー"]


@pytest.mark.parametrize("separator", ["", "x", " ", " x ", "\n"])
def test_a_hit_is_found_wherever_the_parts_of_a_text_end(separator: str) -> None:
    for length in range(380, 420):
        filler = ("y" * 9 + separator) * (length // (9 + len(separator)))
        text = f"{filler} the big Houses {filler}"
        for sought in ("houses", "house", '"the big houses"', "house*"):
            assert marks(snippet(parse_question(sought, ["en"]), text, "en"))
        text = f"{'日' * length}東京タワー{'日' * 200}"
        assert marks(snippet(parse_question("東京タワー", []), text)) == ["東京タワー"]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("nl", "huizen", "huis"),
        ("ar", "الكتاب", "كتابة"),
        ("sr", "кућа", "kuća"),
        ("en", "studies", "study"),
        ("tr", "kitapları", "kitap"),
        ("de", "Häuser", "haus"),
    ],
)
def test_other_forms_are_marked(language: str, one: str, other: str) -> None:
    assert marks(snippet(parse_question(other, [language]), f"x {one} y", language)) == [one]


def test_hits_that_overlap_are_bounded_and_stay_within_the_passage() -> None:
    question = parse_question('"a a a a" a* "a b" a', [])
    parts = snippet(question, "a " * 100_000)
    assert len("".join(part for part, _ in parts)) <= analysis.SNIPPET_CHARACTERS + 2
    assert snippet(parse_question(f'"{"word " * 90}"', []), "word " * 200)[0][0].startswith("word")


@repeatable
@given(any_text, any_text, languages)
def test_a_snippet_is_a_short_part_of_its_text(
    text: str, sought: str, language: str | None
) -> None:
    text = f"{text} {'filler ' * 40}{text}"
    parts = snippet(parse_question(sought, ["de"]), text, language)
    shown = "".join(part for part, _ in parts)
    assert shown.strip("…").strip() in " ".join(text.split())
    assert len(shown) <= analysis.SNIPPET_CHARACTERS + 2
    assert all(one[1] != other[1] for one, other in pairwise(parts))


@repeatable
@given(few_words, few_words.map(lambda words: words[:3]))
def test_a_text_that_is_found_has_marks(words: list[str], sought: list[str]) -> None:
    question = parse_question(" ".join(sought), [])
    text = " ".join(words)
    assert (set(marks(snippet(question, text))) != set()) == any(
        plain_hit(words, [word], prefix=False) for word in sought
    )
