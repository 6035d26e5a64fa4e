"""``POST /.pods`` to the letter, and everything that a new pod holds, seen by everybody."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from podstead.config import Settings
from podstead.pods.names import NAME_RULE, RESERVED_NAMES
from podstead.web.forms import MAX_JSON_BYTES
from tests.support.application import BASE, Server, Start, running
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.rdf import JSON_LD, TURTLE, said

JSON = "application/json"
FOAF = "http://xmlns.com/foaf/0.1/"
LDP = "http://www.w3.org/ns/ldp#"
PIM = "http://www.w3.org/ns/pim/space#"
SOLID = "http://www.w3.org/ns/solid/terms#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


async def create(client: Client, name: object) -> Answer:
    return await client.post("/.pods", json.dumps({"name": name}), JSON)


# --- creating ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["carol", "Carol", "a", "x" * 64, "A-b_9", "-", "_", "0"])
async def test_a_new_pod_is_answered_with_its_four_facts(server: Server, name: str) -> None:
    """A-30, C-1: WebID and URI are spelled as the name was."""
    answer = await create(server.public, name)
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/{name}/"
    assert answer.header("content-type") == JSON
    assert answer.header("cache-control") == "no-store"
    created = answer.json()
    assert list(created) == ["name", "webId", "podUri", "token"]
    assert created["name"] == name
    assert created["webId"] == f"{BASE}/{name}/#me"
    assert created["podUri"] == f"{BASE}/{name}/"
    assert re.fullmatch(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}", created["token"])
    owner = server.public.with_token(created["token"])
    assert (await owner.get(f"/{name}/private/")).status == 200


async def test_without_simple_tokens_there_are_three_facts(
    settings: Settings, server: Server
) -> None:
    """A-34: and the tokens that there are do not work."""
    async with running(replace(settings, simple_tokens=False)) as application:
        answer = await create(server.public.asking(application), "carol")
        assert answer.status == 201
        assert list(answer.json()) == ["name", "webId", "podUri"]
        assert (await server.alice.asking(application).get("/alice/")).status == 401
    assert (await server.alice.get("/alice/private/")).status == 200


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "Application/JSON"]
)
async def test_any_json_content_type_will_do(server: Server, content_type: str) -> None:
    """A-90."""
    answer = await server.public.post("/.pods", '{"name": "carol"}', content_type)
    assert answer.status == 201


async def test_further_members_of_the_body_are_ignored(server: Server) -> None:
    """A-90: clients send e-mail and password where no accounts are asked for."""
    body = '{"name": "carol", "email": "c@example.org", "password": "password123", "x": {}}'
    assert (await server.public.post("/.pods", body, JSON)).status == 201


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["{}", '{"name": ""}', *(
    f'{{"name": {other}}}' for other in ("null", "5", "true", '["carol"]', '{"a": 1}')
)])  # fmt: skip
async def test_a_name_must_be_there_and_a_string(server: Server, body: str) -> None:
    """A-90."""
    answer = await server.public.post("/.pods", body, JSON)
    assert answer.status == 400
    assert answer.json() == {
        "error": "Pod name required",
        "message": 'Send the name of the pod: {"name": "alice"}',
    }


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b", "a space"),
        ("a/b", "'/'"),
        ("../x", "'.'"),
        (".well-known", "'.'"),
        ("a.b", "'.'"),
        ("ä", "'ä'"),
        ("a%20", "'%'"),
        (" a", "a space"),
        ("a\n", "the character U+000A"),
        ("\x00", "the character U+0000"),
        ("a#", "'#'"),
        ("\u0663", "'\u0663'"),
        ("\u017f", "'\u017f'"),
    ],
)
async def test_a_name_has_letters_digits_dashes_and_underscores(
    server: Server, name: str, shown: str
) -> None:
    """A-90."""
    answer = await create(server.public, name)
    assert answer.status == 400
    assert answer.json() == {
        "error": "Invalid pod name. Use alphanumeric, dash, or underscore only.",
        "message": f"{NAME_RULE}; it must not contain {shown}",
    }


@pytest.mark.parametrize(
    "name",
    [
        *sorted(name for name in RESERVED_NAMES if "." not in name),
        "IDP", "Admin", "LocalHost", "wWw", "x" * 65, "x" * 1000,
    ],
)  # fmt: skip
async def test_reserved_and_overlong_names_are_not_pods(server: Server, name: str) -> None:
    """A-90, A-91: in any case of letters."""
    answer = await create(server.public, name)
    assert answer.status == 400
    assert answer.json() == {
        "error": "Reserved pod name",
        "message": f"{NAME_RULE}; this one has {len(name)} characters"
        if len(name) > 64
        else "The server reserves this name; choose another",
    }
    assert (await server.public.get(f"/{name}/")).status in (401, 404)


def test_every_name_of_the_table_is_reserved() -> None:
    """A-91."""
    table = (
        "idp auth login logout register account api admin static assets relay inbox outbox "
        "well-known pods notifications mashlib solidos-ui favicon.ico robots.txt health metrics "
        "www localhost"
    )
    assert set(table.split()) == RESERVED_NAMES


@pytest.mark.parametrize("name", ["alice", "Alice", "ALICE"])
async def test_a_taken_name_is_409_in_any_case_and_the_pod_untouched(
    server: Server, name: str
) -> None:
    """A-90, A-91."""
    before = await server.public.get("/alice/")
    answer = await create(server.public, name)
    assert answer.status == 409
    assert answer.json() == {
        "error": "Pod already exists",
        "message": "Another pod already has this name, ignoring case; choose a different one",
    }
    after = await server.public.get("/alice/")
    assert (after.body, after.header("etag")) == (before.body, before.header("etag"))
    assert (await server.alice.get("/alice/private/")).status == 200
    assert (await server.public.get("/ALICE/")).status == 401


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b"name=carol", JSON, 400),
        (b"[]", JSON, 400),
        (b'"carol"', JSON, 400),
        (b"null", JSON, 400),
        (b'{"name": "\xff"}', JSON, 400),
        (b"[" * 60_000, JSON, 400),
        (b'{"name": "carol"}', None, 400),
        (b"name=carol", "application/x-www-form-urlencoded", 415),
        (b'{"name": "carol"}', "text/plain", 415),
        (b'{"name": "carol"}', JSON_LD, 415),
    ],
)
async def test_anything_but_a_json_object_creates_no_pod(
    server: Server, body: bytes, content_type: str | None, status: int
) -> None:
    """A-90."""
    answer = await server.public.post("/.pods", body, content_type)
    assert answer.status == status
    assert set(answer.json()) == {"error", "message"}
    assert (await server.public.get("/carol/")).status == 401


async def test_a_body_has_so_many_bytes(server: Server) -> None:
    for size_bytes, status in ((MAX_JSON_BYTES, 201), (MAX_JSON_BYTES + 1, 413)):
        body = f'{{"name": "carol-{status}"}}'.ljust(size_bytes)
        assert (await server.public.post("/.pods", body, JSON)).status == status
        chunked = await server.public.request(
            "POST", "/.pods",
            headers={"Content-Type": JSON, "Transfer-Encoding": "chunked"},
            body=[f'{{"name": "dave-{status}"}}'.encode(), b" " * (size_bytes - 20)],
        )  # fmt: skip
        assert chunked.status == status


async def test_of_many_creations_of_one_name_one_succeeds(server: Server) -> None:
    """A-94."""
    names = ["carol", "Carol"] * 10
    answers = await asyncio.gather(*(create(server.public, name) for name in names))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 19
    (made,) = (answer.json() for answer in answers if answer.status == 201)
    owner = server.public.with_token(made["token"])
    assert (await owner.get(f"/{made['name']}/private/")).status == 200
    other = {"carol": "Carol", "Carol": "carol"}[made["name"]]
    assert (await owner.get(f"/{other}/")).status == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
async def test_other_methods_are_405(server: Server, method: str) -> None:
    """A-13."""
    answer = await server.alice.request(method, "/.pods")
    assert (answer.status, answer.header("allow")) == (405, "OPTIONS, POST")


# --- how often ---------------------------------------------------------------------------------


async def test_an_address_makes_so_many_pods_an_hour(start: Start) -> None:
    """A-181, A-180: each its own, and time gives them back."""
    clock = FakeClock()
    server = await start(
        base_url="https://pods.example", clock=clock, pod_creations_per_hour=4
    )  # two were made already, for the fixture

    async def make(name: str, peer: str) -> Answer:
        body = json.dumps({"name": name}).encode()
        return await server.public.request(
            "POST", "/.pods", headers={"Content-Type": JSON}, body=body, peer=peer
        )

    assert [(await make(f"a{n}", "127.0.0.1")).status for n in range(3)] == [201, 201, 429]
    refused = await make("b", "127.0.0.1")
    seconds = int(refused.header("retry-after") or 0)
    assert 0 < seconds <= 900
    assert refused.json() == {
        "error": "Too Many Requests",
        "message": f"Rate limit exceeded. Try again in {seconds} seconds.",
        "retryAfter": seconds,
    }
    assert (await make("b", "203.0.113.9")).status == 201
    clock.advance(seconds - 1)
    assert (await make("c", "127.0.0.1")).status == 429
    clock.advance(1)
    assert (await make("c", "127.0.0.1")).status == 201
    assert (await make("d", "127.0.0.1")).status == 429

    same_network = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:2:3:4:5:6"]
    found = [(await make(f"e{n}", same_network[n % 3])).status for n in range(5)]
    assert found == [201] * 4 + [429]
    assert (await make("f", "2001:db8:1:3::1")).status == 201
    mapped = [(await make(f"g{n}", address)).status for n, address in enumerate(
        ["198.51.100.7", "::ffff:198.51.100.7"] * 3
    )]  # fmt: skip
    assert mapped == [201] * 4 + [429] * 2


async def test_this_machine_makes_as_many_as_it_likes_on_itself(start: Start) -> None:
    """A-190, A-181: and only itself."""
    server = await start(pod_creations_per_hour=1)
    for n, peer in enumerate(["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]):
        body = f'{{"name": "local-{n}"}}'.encode()
        answer = await server.public.request(
            "POST", "/.pods", headers={"Content-Type": JSON}, body=body, peer=peer
        )
        assert answer.status == 201
    for n, status in enumerate((201, 429)):
        answer = await server.public.request(
            "POST", "/.pods", headers={"Content-Type": JSON},
            body=f'{{"name": "remote-{n}"}}'.encode(), peer="192.0.2.1",
        )  # fmt: skip
        assert answer.status == status


# --- what is in it -----------------------------------------------------------------------------

# path below the pod, statuses for the public and for another agent
CONTENTS = [
    ("", 200, 200),
    (".acl", 401, 403),
    (".meta", 200, 200),
    ("profile/", 401, 403),
    ("profile/card", 200, 200),
    ("profile/card.acl", 401, 403),
    ("inbox/", 401, 403),
    ("inbox/.acl", 401, 403),
    ("public/", 200, 200),
    ("public/.acl", 401, 403),
    ("private/", 401, 403),
    ("private/.acl", 401, 403),
    ("settings/", 401, 403),
    ("settings/.acl", 401, 403),
    ("settings/prefs.ttl", 401, 403),
    ("settings/privateTypeIndex.ttl", 401, 403),
    ("settings/publicTypeIndex.ttl", 200, 200),
    ("settings/publicTypeIndex.ttl.acl", 401, 403),
]


@pytest.mark.parametrize(("path", "of_public", "of_bob"), CONTENTS)
async def test_who_may_read_what_in_a_new_pod(
    server: Server, path: str, of_public: int, of_bob: int
) -> None:
    """A-98."""
    for accept in (TURTLE, JSON_LD):
        mine = await server.alice.get(f"/alice/{path}", accept=accept)
        assert mine.status == 200
        assert said(mine, f"{BASE}/alice/{path}")
        assert (mine.header("wac-allow") or "").startswith('user="read write append control"')
    assert (await server.public.get(f"/alice/{path}")).status == of_public
    assert (await server.bob.get(f"/alice/{path}")).status == of_bob


# path below the pod, what the public may do there, and in what is created there
WRITERS = [
    ("", 401, None),
    ("profile/", 401, None),
    ("inbox/", 201, 401),
    ("public/", 401, None),
    ("private/", 401, None),
    ("settings/", 401, None),
]


@pytest.mark.parametrize(("path", "of_public", "of_created"), WRITERS)
async def test_who_may_add_what_in_a_new_pod(
    server: Server, path: str, of_public: int, of_created: int | None
) -> None:
    """P-38: the inbox takes from everybody and shows to its owner."""
    posted = await server.public.post(f"/alice/{path}", "{}", JSON_LD)
    assert posted.status == of_public
    by_bob = await server.bob.post(f"/alice/{path}", "{}", JSON_LD)
    assert by_bob.status == {401: 403}.get(of_public, of_public)
    assert (await server.public.put(f"/alice/{path}x", "x", "text/plain")).status == 401
    assert (await server.bob.put(f"/alice/{path}x", "x", "text/plain")).status == 403
    assert (await server.alice.post(f"/alice/{path}", "x", "text/plain")).status == 201
    if of_created is not None:
        location = (posted.header("location") or "").removeprefix(BASE)
        assert (await server.public.get(location)).status == of_created
        assert (await server.alice.get(location)).status == 200


async def test_what_is_put_into_public_is_public_and_what_into_private_is_not(
    server: Server,
) -> None:
    """At any depth."""
    for container, status in (("public", 200), ("private", 401), ("settings", 401)):
        path = f"/alice/{container}/deep/er/x.txt"
        assert (await server.alice.put(path, "x", "text/plain")).status == 201
        for below in (path, f"/alice/{container}/deep/er/", f"/alice/{container}/deep/"):
            assert (await server.public.get(below)).status == status


def values(answer: Answer, url: str, subject: str, predicate: str) -> set[str]:
    content = said(answer, url)
    return {str(o) for s, p, o in content if (str(s), str(p)) == (subject, predicate)}


@pytest.mark.parametrize("accept", [TURTLE, JSON_LD])
async def test_everything_is_found_from_the_webid(server: Server, accept: str) -> None:
    """C-1: a client that knows the WebID alone finds storage, inbox and indexes."""
    web_id = server.alice_web_id
    document = web_id.partition("#")[0]
    answer = await server.public.get(document.removeprefix(BASE), accept=accept)
    assert answer.status == 200
    pod = f"{BASE}/alice/"

    def of_me(predicate: str) -> set[str]:
        return values(answer, document, web_id, predicate)

    assert of_me(RDF_TYPE) >= {f"{FOAF}Person"}
    assert of_me(f"{FOAF}name") == {"alice"}
    assert of_me(f"{PIM}storage") == {pod}
    assert of_me(f"{LDP}inbox") == {f"{pod}inbox/"}
    assert of_me(f"{PIM}preferencesFile") == {f"{pod}settings/prefs.ttl"}
    assert of_me(f"{SOLID}publicTypeIndex") == {f"{pod}settings/publicTypeIndex.ttl"}
    assert of_me(f"{SOLID}privateTypeIndex") == {f"{pod}settings/privateTypeIndex.ttl"}
    assert of_me(f"{SOLID}oidcIssuer") == set()
    types = values(answer, document, pod, RDF_TYPE)
    assert types >= {f"{PIM}Storage", f"{LDP}BasicContainer", f"{LDP}Container"}
    # By this, libraries such as soukai's know a profile whose issuer is not told.
    assert f"{FOAF}PersonalProfileDocument" in types
    assert values(answer, document, pod, f"{FOAF}primaryTopic") == {web_id}
    # Strangers read the profile without the list of what is in the pod.
    assert values(answer, document, pod, f"{LDP}contains") == set()
    listing = await server.alice.get("/alice/", accept=accept)
    members = values(listing, document, pod, f"{LDP}contains")
    names = {"profile/", "inbox/", "public/", "private/", "settings/"}
    assert members == {pod + name for name in names}


async def test_the_card_and_the_indexes_say_what_they_are(server: Server) -> None:
    card = await server.public.get("/alice/profile/card")
    assert card.header("content-type") == TURTLE
    url = f"{BASE}/alice/profile/card"
    assert values(card, url, url, f"{FOAF}primaryTopic") == {server.alice_web_id}
    for name, listed in (("public", "Listed"), ("private", "Unlisted")):
        path = f"/alice/settings/{name}TypeIndex.ttl"
        index = await server.alice.get(path)
        types = values(index, BASE + path, BASE + path, RDF_TYPE)
        assert types == {f"{SOLID}TypeIndex", f"{SOLID}{listed}Document"}
    preferences = await server.alice.get("/alice/settings/prefs.ttl")
    url = f"{BASE}/alice/settings/prefs.ttl"
    assert values(preferences, url, url, RDF_TYPE) == {f"{PIM}ConfigurationFile"}


async def test_the_owner_can_edit_the_profile_and_containment_stays(server: Server) -> None:
    """By PUT of the whole container or of its description."""
    name_now = "alice"
    for target, new_name in (("/alice/", "Alice A."), ("/alice/.meta", "Alice B.")):
        current = (await server.alice.get(target)).text
        changed = current.replace(f'"{name_now}"', f'"{new_name}"')
        assert changed != current
        assert (await server.alice.put(target, changed, TURTLE)).status == 204
        answer = await server.public.get("/alice/")
        name = values(answer, f"{BASE}/alice/", server.alice_web_id, f"{FOAF}name")
        assert name == {new_name}
        listing = await server.alice.get("/alice/")
        contained = values(listing, f"{BASE}/alice/", f"{BASE}/alice/", f"{LDP}contains")
        assert len(contained) == 5
        name_now = new_name


async def test_the_address_of_a_pod_without_its_slash_leads_there(server: Server) -> None:
    """A-102, P-47: for whoever may read it; a missing one is as closed as the server's root."""
    for client in (server.public, server.alice):
        answer = await client.get("/alice")
        assert (answer.status, answer.header("location")) == (301, f"{BASE}/alice/")
    for path in ("/nobody", "/nobody/", "/alic"):
        assert (await server.public.get(path)).status == 401
    await server.put_acl("/alice/")
    closed, missing = await server.public.get("/alice"), await server.public.get("/nobody")
    assert (closed.status, closed.body) == (401, missing.body)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/carol/", "/carol/x", "/carol", "/carol/.acl"])
async def test_nobody_makes_a_pod_by_writing_where_none_is(
    server: Server, method: str, path: str
) -> None:
    """A-13, W-37: no rules are there, and no owner."""
    headers = {"Content-Type": TURTLE}
    for client, status in ((server.public, 401), (server.alice, 403)):
        assert (await client.request(method, path, headers=headers)).status == status
    assert (await create(server.public, "carol")).status == 201
