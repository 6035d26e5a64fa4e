"""Creation: by PUT, PATCH and POST, under which name, and as which kind (C-1 to C-16)."""

from __future__ import annotations

import re

import pytest

from tests.conformance.agents import LDP, N3_PATCH, SPARQL_UPDATE, WRITTEN, Agent, Rule
from tests.support.rdf import JSON_LD, TURTLE

TEXT = "text/plain"
CONTAINER_LINKS = (
    f'<{LDP}BasicContainer>; rel="type"',
    f'<{LDP}Container>; rel="type"',
    f'<{LDP}Resource>; rel="type", <{LDP}BasicContainer>; rel="type"',
)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

INSERT = {
    SPARQL_UPDATE: "INSERT DATA { <#a> <http://example.org/b> 1 }",
    N3_PATCH: "@prefix solid: <http://www.w3.org/ns/solid/terms#>. "
    "_:p a solid:InsertDeletePatch; solid:inserts { <#a> <http://example.org/b> 1 }.",
}

# --- PUT --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["put-dahut", "x.ttl", "x.txt", "x/", "x.unknown", "a%20b.ttl"])
def test_c_1_put_on_a_new_url_is_201_with_location_and_type(
    alice: Agent, container: str, name: str
) -> None:
    target = container + name
    content_type = TEXT if name.endswith(".txt") else TURTLE
    made = alice.put(target, "<#a> <#b> <#c>.", content_type)
    assert made.status == 201
    assert made.header("Location") == alice.url(target)
    assert f"{LDP}Resource" in made.targets("type")
    assert made.target("acl")
    assert made.header("ETag")
    assert made.header("Last-Modified")
    read = alice.get(made.location)
    assert read.status == 200
    assert read.header("ETag") == made.header("ETag")


@pytest.mark.parametrize("name", ["x", "x.ttl", "x.txt", "x/"])
def test_c_1_put_on_what_exists_overwrites_it(alice: Agent, container: str, name: str) -> None:
    target = container + name
    content_type = TEXT if name.endswith(".txt") else TURTLE
    first = alice.put(target, "<#a> <#b> 'before'.", content_type)
    overwritten = alice.put(target, "<#a> <#b> 'after'.", content_type)
    assert overwritten.status == 204
    assert overwritten.header("Location") is None
    assert overwritten.header("ETag") not in (None, first.header("ETag"))
    read = alice.get(target)
    assert "after" in read.text
    assert "before" not in read.text
    assert read.header("ETag") == overwritten.header("ETag")


# --- containers above ---------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", [TEXT, TURTLE, JSON_LD])
def test_c_2_put_makes_the_containers_above_and_lists_them_at_once(
    alice: Agent, container: str, content_type: str
) -> None:
    target = f"{container}a/b/x.txt"
    body = "{}" if content_type == JSON_LD else ""
    assert alice.put(target, body, content_type).status == 201
    check_hierarchy(alice, container, "a/", "b/", "x.txt")


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
@pytest.mark.parametrize("name", ["x.txt", "x.ttl", "x"])
def test_c_2_patch_makes_the_containers_above_and_lists_them_at_once(
    alice: Agent, container: str, name: str, content_type: str
) -> None:
    target = f"{container}a/b/{name}"
    made = alice.patch(target, INSERT[content_type], content_type)
    assert made.status == 201
    assert made.location == alice.url(target)
    assert len(alice.read(target).triples) == 1
    check_hierarchy(alice, container, "a/", "b/", name)


def test_c_2_put_of_a_container_makes_the_containers_above(alice: Agent, container: str) -> None:
    alice.create(f"{container}a/b/c/")
    check_hierarchy(alice, container, "a/", "b/", "c/")


def test_c_2_containers_that_exist_are_kept_with_their_members(
    alice: Agent, container: str
) -> None:
    alice.create(f"{container}a/", "<> <http://example.org/note> 'mine'.")
    alice.create(f"{container}a/first.txt", "1", TEXT)
    alice.create(f"{container}a/b/second.txt", "2", TEXT)
    listing = alice.read(f"{container}a/")
    assert listing.members == [alice.url(f"{container}a/{name}") for name in ("b/", "first.txt")]
    assert "mine" in listing.text


def check_hierarchy(alice: Agent, container: str, *names: str) -> None:
    """Each container has the next one, and nothing else."""
    path = container
    for name in names:
        listing = alice.read(path)
        assert listing.media_type == TURTLE
        path += name
        assert listing.members == [alice.url(path)]
    assert alice.get(path).status == 200


# --- POST ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD, TEXT, "image/png"])
def test_c_3_post_makes_a_member_one_segment_below_the_container(
    alice: Agent, container: str, content_type: str
) -> None:
    body = {TURTLE: "<> <#b> <#c>.", JSON_LD: '{"@id": "", "http://example.org/b": 1}'}
    made = alice.post(container, body.get(content_type, "Hello"), content_type)
    assert made.status == 201
    location = made.header("Location") or ""
    assert re.fullmatch(re.escape(alice.url(container)) + "[^/]+", location)
    read = alice.get(location)
    assert (read.status, read.media_type) == (200, content_type)
    assert alice.read(container).members == [location]
    assert made.header("ETag") == read.header("ETag")
    assert made.target("acl") == read.target("acl")


@pytest.mark.parametrize("slug", ["foobar", "foobar.ttl", "Foo_Bar-1.2~", "a:b", "foobar.txt"])
def test_c_4_a_slug_that_is_free_and_valid_is_the_name(
    alice: Agent, container: str, slug: str
) -> None:
    made = alice.post(container, "<> <#b> <#c>.", TURTLE, {"Slug": slug})
    assert made.status == 201
    assert made.header("Location") == alice.url(container + slug)


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("caf%C3%A9", "caf%C3%A9"),
        ("a%20b", "a%20b"),
        ("a b", "a%20b"),
        ("%66oo", "foo"),
        ("50%", "50%25"),
        ("a?b#c", "a%3Fb%23c"),
        ("/foo/", "foo"),
        ("%2Ffoo%2F", "foo"),
        (" \tfoo\t ", "foo"),
        ("%20foo%0A", "foo"),
    ],
)
def test_c_5_a_slug_is_percent_decoded_and_stripped(
    alice: Agent, container: str, slug: str, name: str
) -> None:
    made = alice.post(container, "", TURTLE, {"Slug": slug})
    assert made.status == 201
    assert made.header("Location") == alice.url(container + name)


@pytest.mark.parametrize("slug", ["a/b", "a%2Fb", "a/../b", "%2E%2E/a", "a%0Ab", "a%01b", "a%7Fb"])
def test_c_5_slashes_and_controls_in_a_slug_make_no_further_segment(
    alice: Agent, container: str, slug: str
) -> None:
    made = alice.post(container, "", TURTLE, {"Slug": slug})
    assert made.status == 201
    name = made.location.removeprefix(alice.url(container))
    assert re.fullmatch(r"[A-Za-z0-9.\-]+", name)
    assert name.endswith(("a", "b"))


@pytest.mark.parametrize("slug", [".", "..", "%2E", "%2e%2E", "/../", "/", "", " "])
def test_c_5_a_slug_that_names_nothing_is_ignored(alice: Agent, container: str, slug: str) -> None:
    made = alice.post(container, "", TURTLE, {"Slug": slug})
    assert made.status == 201
    assert UUID.fullmatch(made.location.removeprefix(alice.url(container)))


@pytest.mark.parametrize("slug", [".acl", ".meta", "x.acl", "x.meta", "x%2Eacl", "x.acl/"])
@pytest.mark.parametrize("headers", [{}, {"Link": CONTAINER_LINKS[0]}])
def test_c_5_a_slug_that_names_an_auxiliary_resource_is_refused(
    alice: Agent, container: str, slug: str, headers: dict[str, str]
) -> None:
    alice.create(f"{container}x")
    refused = alice.post(container, "", TURTLE, {"Slug": slug, **headers})
    assert refused.status == 403
    assert alice.read(container).members == [alice.url(f"{container}x")]
    assert alice.get(f"{container}x.acl").status == 404


@pytest.mark.parametrize(("length", "status"), [(128, 201), (255, 201), (256, 400), (2000, 400)])
def test_c_5_a_slug_is_at_most_255_bytes_long(
    alice: Agent, container: str, length: int, status: int
) -> None:
    slug = "x" * length
    made = alice.post(container, "", TURTLE, {"Slug": slug})
    assert made.status == status
    expected = [alice.url(container + slug)] if status == 201 else []
    assert alice.read(container).members == expected


def test_c_5_a_slug_with_a_nul_is_refused(alice: Agent, container: str) -> None:
    assert alice.post(container, "", TURTLE, {"Slug": "a%00b"}).status == 400
    assert alice.read(container).members == []


@pytest.mark.parametrize("taken", ["foo.txt", "foo.txt/"])
@pytest.mark.parametrize("headers", [{}, {"Link": CONTAINER_LINKS[0]}])
def test_c_5_a_slug_that_is_taken_in_either_slash_form_overwrites_nothing(
    alice: Agent, container: str, taken: str, headers: dict[str, str]
) -> None:
    alice.create(container + taken, "<> <http://example.org/who> 'first'.", TURTLE)
    before = alice.get(container + taken)
    made = alice.post(container, "", TURTLE, {"Slug": "foo.txt", **headers})
    assert made.status == 201
    name = made.location.removeprefix(alice.url(container))
    assert name.rstrip("/") != "foo.txt"
    assert "foo.txt" in name
    assert alice.get(container + taken).body == before.body
    assert alice.read(container).members == sorted([before.url, made.location])


@pytest.mark.parametrize("headers", [{}, {"Link": CONTAINER_LINKS[0]}])
def test_c_5_a_long_slug_that_is_taken_still_makes_a_member(
    alice: Agent, container: str, headers: dict[str, str]
) -> None:
    slug = "%C3%A9" * 127
    made = [alice.post(container, "", TURTLE, {"Slug": slug, **headers}) for _ in range(3)]
    assert {each.status for each in made} == {201}
    assert alice.read(container).members == sorted(each.location for each in made)
    assert [alice.get(each.location).status for each in made] == [200, 200, 200]


def test_c_5_without_slug_the_name_is_a_uuid_without_extension(
    alice: Agent, container: str
) -> None:
    names = set()
    for content_type in (TURTLE, TEXT):
        made = alice.post(container, "", content_type)
        name = made.location.removeprefix(alice.url(container))
        assert UUID.fullmatch(name)
        assert alice.get(made.location).media_type == content_type
        names.add(name)
    assert len(names) == 2


def test_c_5_the_media_type_adds_no_extension_to_a_slug(alice: Agent, container: str) -> None:
    made = alice.post(container, "<> <#b> <#c>.", TURTLE, {"Slug": "note"})
    assert made.location == alice.url(f"{container}note")
    assert alice.get(made.location).media_type == TURTLE


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("missing/", TURTLE),
        ("missing/", TEXT),
        ("missing.ttl", TURTLE),
        ("missing.json", "application/json"),
        ("missing.foo", "foo/bar"),
        ("missing/deeper/", TURTLE),
    ],
)
def test_c_6_post_to_nothing_is_404_and_makes_nothing(
    alice: Agent, container: str, name: str, content_type: str
) -> None:
    target = container + name
    for headers in ({}, {"Slug": "x"}, {"Link": CONTAINER_LINKS[0]}):
        assert alice.post(target, "", content_type, headers).status == 404
        assert alice.get(target).status == 404
    assert alice.read(container).members == []


@pytest.mark.parametrize("name", ["x.ttl", "x.txt"])
@pytest.mark.parametrize("modes", ["Append", "Read Append", "Read Write"])
def test_c_7_post_to_a_document_is_405_for_whoever_may_append(
    alice: Agent, bob: Agent, container: str, name: str, modes: str
) -> None:
    target = alice.create(container + name, "", TURTLE if name == "x.ttl" else TEXT)
    alice.grant(target, Rule(bob.named, modes))
    for agent in (alice, bob):
        refused = agent.post(target, "<#a> <#b> <#c>.", TURTLE, {"Slug": "y"})
        assert refused.status == 405
        allowed = refused.listed("Allow")
        assert "POST" not in allowed
        assert {"GET", "HEAD", "OPTIONS", "PUT", "PATCH"} <= allowed
    assert alice.get(target).body == b""
    assert alice.read(container).members == [alice.url(target)]


@pytest.mark.parametrize("name", ["x.ttl", "x.txt"])
def test_c_7_post_to_a_document_is_refused_first_to_whoever_may_not_append(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", TURTLE if name == "x.ttl" else TEXT)
    alice.grant(target, Rule(bob.named, "Read"))
    assert bob.post(target, "", TURTLE).status == 403
    assert public.post(target, "", TURTLE).status == 401


@pytest.mark.parametrize("link", CONTAINER_LINKS)
@pytest.mark.parametrize("body", [None, "", "<> <http://example.org/title> 'mine'."])
def test_c_8_post_with_a_container_link_makes_a_container(
    alice: Agent, container: str, link: str, body: str | None
) -> None:
    made = alice.post(container, body, TURTLE, {"Link": link, "Slug": "new"})
    assert made.status == 201
    assert made.header("Location") == alice.url(f"{container}new/")
    listing = alice.read(made.location)
    assert f"{LDP}BasicContainer" in listing.targets("type")
    assert listing.members == []
    assert ("mine" in listing.text) == bool(body)
    assert alice.read(container).members == [made.location]
    assert alice.post(made.location, "", TURTLE).status == 201


def test_c_8_the_container_link_may_stand_in_a_line_of_its_own(
    alice: Agent, container: str
) -> None:
    lines = [("Link", f'<{LDP}{name}>; rel="type"') for name in ("Resource", "BasicContainer")]
    headers = [("Content-Type", TURTLE), ("Slug", "new"), *lines]
    assert alice.request("POST", container, "", headers).location.endswith("/new/")


def test_c_8_a_container_without_slug_has_a_slash_all_the_same(
    alice: Agent, container: str
) -> None:
    made = alice.post(container, None, TURTLE, {"Link": CONTAINER_LINKS[0]})
    name = made.location.removeprefix(alice.url(container))
    assert UUID.fullmatch(name[:-1])
    assert name.endswith("/")


def test_c_8_a_link_to_another_class_makes_a_document(alice: Agent, container: str) -> None:
    link = f'<{LDP}Resource>; rel="type"'
    made = alice.post(container, "<> <#b> <#c>.", TURTLE, {"Link": link, "Slug": "new"})
    assert made.location == alice.url(f"{container}new")


# --- content --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (TEXT, b"Hello"),
        ("text/plain; charset=ISO-8859-1", "Zoë".encode("latin-1")),
        ("text/html; charset=utf-8", b"<p>Hello"),
        ("image/png", bytes(range(256)) * 300),
        ("application/json", b'{"a":  1}\r\n'),
        ("application/octet-stream", b""),
        ("application/vnd.example.x+y; v=1", b"\x00"),
        ("video/mp4", b"\xff" * 200_000),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_c_15_bytes_of_any_type_come_back_as_they_were_sent(
    alice: Agent, container: str, content_type: str, body: bytes, method: str
) -> None:
    target = container + ("doc" if method == "PUT" else "")
    made = alice.request(method, target, body, {"Content-Type": content_type})
    assert made.status == 201
    for headers in ({}, {"Accept": "*/*"}):
        read = alice.get(made.location, headers=headers)
        assert read.status == 200
        assert read.body == body
        assert read.header("Content-Type") == content_type


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_c_16_turtle_of_no_bytes_is_a_document(alice: Agent, container: str, method: str) -> None:
    target = container + ("empty.ttl" if method == "PUT" else "")
    made = alice.request(method, target, "", {"Content-Type": TURTLE})
    assert made.status in WRITTEN
    read = alice.read(made.location)
    assert (read.media_type, read.body) == (TURTLE, b"")
    assert alice.read(made.location, JSON_LD).triples == frozenset()
    assert alice.read(container).members == [made.location]


def test_c_16_a_document_can_be_emptied(alice: Agent, container: str) -> None:
    target = alice.create(f"{container}full.ttl", "<#a> <#b> <#c>.")
    assert alice.put(target, "").status == 204
    assert alice.read(target).body == b""
