"""Preconditions, entity tags, ranges and caching (P-21 to P-28)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.agents import EVERYONE, Agent, Response, Rule
from tests.conformance.conformance_places import EXISTING, PLACES
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE

READS = ("GET", "HEAD")
DIGITS = b"0123456789"
INSERT = "INSERT DATA { <#a> <#b> <#c> . }"
LONG_AGO = "Mon, 01 Jan 2001 00:00:00 GMT"
WRITES = ("PUT", "PATCH")

_FOR_CACHES = ("ETag", "Last-Modified", "Cache-Control", "Vary", "Link", "WAC-Allow")


def write(agent: Agent, method: str, target: str, **fields: str) -> Response:
    """A sound PUT or PATCH with preconditions: ``If_Match`` is ``If-Match``."""
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    if method == "PATCH":
        return agent.patch(target, INSERT, headers=headers)
    if method == "POST":
        return agent.post(target, "<> <#is> <#new>.", headers=headers)
    if method == "DELETE":
        return agent.request("DELETE", target, headers=headers)
    return agent.put(target, "<> <#is> <#new>.", headers=headers)


@pytest.fixture
def document(alice: Agent, container: str) -> str:
    """A Turtle document with one triple."""
    return alice.create(f"{container}x.ttl", "<> <#is> <#old>.")


@pytest.fixture
def numbers(alice: Agent, container: str) -> str:
    """A document of ten bytes that is not RDF."""
    return alice.create(f"{container}numbers.bin", DIGITS, "application/octet-stream")


# --- P-21, P-22: preconditions of writes ------------------------------------------------------


@pytest.mark.parametrize("method", WRITES)
def test_p_21_what_exists_is_not_written_if_it_must_not_be_there(
    alice: Agent, document: str, method: str
) -> None:
    before = alice.get(document)
    assert write(alice, method, document, If_None_Match="*").status == 412
    after = alice.get(document)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


@pytest.mark.parametrize("method", [*WRITES, "POST"])
def test_p_21_an_existing_container_is_not_written_if_it_must_not_be_there(
    alice: Agent, container: str, method: str
) -> None:
    before = alice.get(container)
    assert write(alice, method, container, If_None_Match="*").status == 412
    after = alice.get(container)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


@pytest.mark.parametrize("name", ["new.ttl", "new/", "deep/new.ttl"])
@pytest.mark.parametrize("method", WRITES)
def test_p_21_what_is_missing_is_created_if_it_must_not_be_there(
    alice: Agent, container: str, method: str, name: str
) -> None:
    assert write(alice, method, container + name, If_None_Match="*").status == 201
    assert alice.get(container + name).status == 200


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_p_22_an_entity_tag_that_is_not_current_fails(
    alice: Agent, document: str, method: str
) -> None:
    old = alice.head(document).header("ETag") or ""
    alice.put(document, "<> <#is> <#newer>.")
    before = alice.get(document)
    for tag in (old, '"x"', f'{old}, "x"'):
        assert write(alice, method, document, If_Match=tag).status == 412
    after = alice.get(document)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_p_22_a_weak_entity_tag_never_matches(alice: Agent, document: str, method: str) -> None:
    tag = alice.head(document).header("ETag")
    assert write(alice, method, document, If_Match=f"W/{tag}").status == 412
    assert alice.get(document).status == 200


@pytest.mark.parametrize("name", ["new.ttl", "new/"])
@pytest.mark.parametrize("method", WRITES)
def test_p_22_what_is_missing_matches_nothing(
    alice: Agent, container: str, method: str, name: str
) -> None:
    for tag in ("*", '"x"'):
        assert write(alice, method, container + name, If_Match=tag).status == 412
    assert alice.get(container + name).status == 404


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
@pytest.mark.parametrize("how", ["current", "among others", "any"])
def test_p_22_the_current_entity_tag_lets_a_write_through(
    alice: Agent, document: str, method: str, how: str
) -> None:
    tag = alice.head(document).header("ETag")
    value = {"current": f"{tag}", "among others": f'"x", {tag}', "any": "*"}[how]
    assert write(alice, method, document, If_Match=value).status == 204


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_p_22_a_document_modified_since_is_not_written(
    alice: Agent, document: str, method: str
) -> None:
    assert write(alice, method, document, If_Unmodified_Since=LONG_AGO).status == 412
    modified = alice.head(document).header("Last-Modified") or ""
    assert write(alice, method, document, If_Unmodified_Since=modified).status == 204


@pytest.mark.parametrize("method", READS)
def test_p_22_a_read_whose_condition_fails_is_refused(
    alice: Agent, document: str, method: str
) -> None:
    tag = alice.head(document).header("ETag") or ""
    for fields, status in (
        ({"If-Match": '"x"'}, 412),
        ({"If-Match": f"W/{tag}"}, 412),
        ({"If-Match": tag}, 200),
        ({"If-Unmodified-Since": LONG_AGO}, 412),
        ({"If-Unmodified-Since": LONG_AGO, "If-Match": tag}, 200),
    ):
        assert alice.request(method, document, None, fields).status == status


# --- P-23: 304 --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({*EXISTING} - {"storage description"}))
@pytest.mark.parametrize("method", READS)
def test_p_23_who_has_the_current_representation_gets_304_with_its_headers(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    origin = {"Origin": "https://app.example"}
    full = alice.request(method, places[kind], None, origin)
    tag = full.header("ETag") or ""
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        fields = {**origin, "If-None-Match": known}
        response = alice.request(method, places[kind], None, fields)
        assert (response.status, response.body) == (304, b"")
        for name in (*_FOR_CACHES, *cors_names(full)):
            assert response.header(name) == full.header(name), name


def cors_names(response: Response) -> list[str]:
    names = [name for name, _ in response.lines if name.startswith("access-control-")]
    assert names
    return names


@pytest.mark.parametrize("method", READS)
def test_p_23_dates_count_only_without_entity_tags(
    alice: Agent, places: dict[str, str], method: str
) -> None:
    modified = alice.head(places["rdf"]).header("Last-Modified") or ""
    for fields, status in (
        ({"If-Modified-Since": modified}, 304),
        ({"If-Modified-Since": LONG_AGO}, 200),
        ({"If-Modified-Since": modified, "If-None-Match": '"x"'}, 200),
    ):
        assert alice.request(method, places["rdf"], None, fields).status == status


@pytest.mark.parametrize("method", READS)
def test_p_23_the_representation_is_chosen_first(
    alice: Agent, places: dict[str, str], method: str
) -> None:
    tag = alice.head(places["rdf"]).header("ETag") or ""
    fields = {"If-None-Match": tag, "Accept": JSON_LD}
    response = alice.request(method, places["rdf"], None, fields)
    assert (response.status, response.media_type) == (200, JSON_LD)


# --- P-24, P-25: entity tags ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["root", "container", "rdf", "ACL", "description"])
def test_p_24_each_representation_has_a_strong_entity_tag_of_its_own(
    alice: Agent, places: dict[str, str], kind: str
) -> None:
    tags = [
        alice.read(places[kind], accept).header("ETag") or ""
        for accept in (TURTLE, JSON_LD, N_TRIPLES)
    ]
    assert len(set(tags)) == 3
    assert all(tag.startswith('"') and tag.endswith('"') for tag in tags)


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
@pytest.mark.parametrize("accept", [TURTLE, JSON_LD, N_TRIPLES])
def test_p_24_the_tag_of_any_current_representation_lets_a_write_through(
    alice: Agent, document: str, method: str, accept: str
) -> None:
    tag = alice.read(document, accept).header("ETag") or ""
    assert write(alice, method, document, If_Match=tag).status == 204


def test_p_24_a_compressed_representation_would_have_a_tag_of_its_own(
    alice: Agent, places: dict[str, str]
) -> None:
    """The same tag stands for the same bytes."""
    plain = alice.get(places["rdf"])
    asked = alice.get(places["rdf"], headers={"Accept-Encoding": "gzip"})
    same_tag = asked.header("ETag") == plain.header("ETag")
    assert same_tag == (asked.body == plain.body)
    assert same_tag == (asked.header("Content-Encoding") is None)


@pytest.mark.parametrize("kind", ["rdf", "text", "container"])
def test_p_25_a_write_returns_the_new_tag_and_date(alice: Agent, container: str, kind: str) -> None:
    target = container + {"rdf": "x.ttl", "text": "x.txt", "container": "x/"}[kind]
    content_type = "text/plain" if kind == "text" else TURTLE
    steps: list[Callable[[], Response]] = [
        lambda: alice.put(target, "", content_type),
        lambda: alice.put(target, "<> <#is> <#new>.", content_type),
    ]
    if kind != "text":
        steps.append(lambda: alice.patch(target, INSERT))
    for step in steps:
        written = step()
        assert written.status in {201, 204}
        read = alice.get(target)
        assert written.header("ETag") == read.header("ETag") is not None
        assert written.header("Last-Modified") == read.header("Last-Modified") is not None


def test_p_25_a_post_returns_the_tag_of_what_it_made(alice: Agent, container: str) -> None:
    posted = alice.post(container, "<> <#is> <#new>.")
    read = alice.get(posted.location)
    assert posted.header("ETag") == read.header("ETag") is not None
    assert posted.header("Last-Modified") == read.header("Last-Modified") is not None


@pytest.mark.parametrize("method", WRITES)
def test_p_25_the_tag_changes_with_every_write(alice: Agent, document: str, method: str) -> None:
    """Also with writes in one second, and ones that store the same again."""
    tags = [alice.head(document).header("ETag")]
    for number in range(10):
        if method == "PUT":
            response = alice.put(document, "<> <#is> <#same>.")
        else:
            response = alice.patch(document, f"INSERT DATA {{ <#n> <#is> {number} . }}")
        assert response.status == 204
        tags.append(response.header("ETag"))
    assert len(set(tags)) == len(tags)


def test_p_25_a_deleted_state_never_returns(alice: Agent, document: str) -> None:
    before = alice.get(document)
    alice.delete(document)
    again = alice.put(document, before.body)
    assert again.header("ETag") != before.header("ETag")


# --- P-27: ranges -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("2-5", 2, 5), ("0-0", 0, 0), ("7-", 7, 9), ("7-99", 7, 9), ("-3", 7, 9), ("-99", 0, 9)],
)
def test_p_27_a_range_of_bytes_is_served(
    alice: Agent, numbers: str, asked: str, first: int, last: int
) -> None:
    response = alice.get(numbers, headers={"Range": f"bytes={asked}"})
    assert (response.status, response.body) == (206, DIGITS[first : last + 1])
    assert response.header("Content-Range") == f"bytes {first}-{last}/10"
    assert response.header("Content-Length") == str(last - first + 1)


@pytest.mark.parametrize("asked", ["10-", "99-100", "-0"])
def test_p_27_a_range_beyond_the_end_is_refused_with_the_size(
    alice: Agent, numbers: str, asked: str
) -> None:
    response = alice.get(numbers, headers={"Range": f"bytes={asked}"})
    assert response.status == 416
    assert response.header("Content-Range") == "bytes */10"


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "lines=0-1", "bytes=5-2", "bytes=x", "nothing"])
def test_p_27_other_ranges_get_the_whole(alice: Agent, numbers: str, asked: str) -> None:
    response = alice.get(numbers, headers={"Range": asked})
    assert (response.status, response.body) == (200, DIGITS)
    assert response.header("Accept-Ranges") == "bytes"


def test_p_27_if_range_decides_between_the_range_and_the_whole(alice: Agent, numbers: str) -> None:
    tag = alice.head(numbers).header("ETag") or ""
    for known, status in ((tag, 206), ('"x"', 200), (f"W/{tag}", 200)):
        fields = {"Range": "bytes=2-5", "If-Range": known}
        assert alice.get(numbers, headers=fields).status == status


def test_p_27_head_ignores_ranges(alice: Agent, numbers: str) -> None:
    response = alice.head(numbers, headers={"Range": "bytes=2-5"})
    assert (response.status, response.header("Content-Length")) == (200, "10")


@pytest.mark.parametrize(
    ("kind", "accept"), [("container", TURTLE), ("root", JSON_LD), ("rdf", JSON_LD)]
)
def test_p_27_what_is_rendered_has_no_ranges(
    alice: Agent, places: dict[str, str], kind: str, accept: str
) -> None:
    fields = {"Range": "bytes=2-5", "Accept": accept}
    response = alice.get(places[kind], headers=fields)
    assert (response.status, response.header("Accept-Ranges")) == (200, "none")
    assert response.body == alice.read(places[kind], accept).body


# --- P-28: caching ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
def test_p_28_every_response_varies_in_one_line(
    alice: Agent,
    bob: Agent,
    public: Agent,
    places: dict[str, str],
    who: str,
    method: str,
    kind: str,
) -> None:
    if who == "alice" and method not in {"GET", "HEAD", "OPTIONS"}:
        fields = {"Content-Type": "text/plain", "If-Match": '"x"'}  # whatever it is, it is refused
    else:
        fields = {"Content-Type": "text/plain"}
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    body = "x" if method in {"PUT", "POST", "PATCH"} else None
    response = agent.request(method, places[kind], body, fields)
    [vary] = response.values("Vary")
    assert {"Accept", "Authorization", "Origin"} <= set(vary.split(", "))


@pytest.mark.parametrize("kind", ["container", "rdf", "text", "ACL", "description"])
@pytest.mark.parametrize("method", READS)
def test_p_28_what_is_private_is_kept_by_no_shared_cache(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind])
    assert {"private", "no-cache"} <= response.listed("Cache-Control")


@pytest.mark.parametrize("method", READS)
def test_p_28_public_responses_are_revalidated(
    public: Agent, alice: Agent, document: str, method: str
) -> None:
    alice.grant(document, Rule(EVERYONE, "Read"))
    assert public.request(method, document).listed("Cache-Control") == {"no-cache"}


def test_p_28_what_one_agent_may_read_is_kept_by_no_shared_cache(
    alice: Agent, bob: Agent, document: str
) -> None:
    alice.grant(document, Rule(bob.named, "Read"))
    assert "private" in bob.get(document).listed("Cache-Control")
