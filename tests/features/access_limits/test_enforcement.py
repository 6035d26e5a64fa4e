"""What a limited application can do: rules and limits, by all ways in, against a plain model."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from podstead.app.adapters.system import SystemRandomness
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.access_limits.enforcement import (
    LIMITS,
    LimitedIdentities,
    LimitStore,
    StoredLimit,
    client_key,
    token_key,
)
from podstead.features.access_limits.limits import ACTIONS, AllowedPlace, Limit, everything
from podstead.storage.record_store import RecordStore
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.provider_flows import CALLBACK, App, Provider, StartProvider
from tests.support.rdf import TURTLE

POD = "/alice/"
WEB_ID = f"{BASE}/alice/#me"
INSERT = (
    "@prefix s: <http://www.w3.org/ns/solid/terms#>. <> a s:InsertDeletePatch; s:inserts {{ {} }}."
)
N3 = "text/n3"


@dataclass
class Access:
    """Requests with the token of one application."""

    provider: Provider
    app: App
    token: str

    async def send(
        self, method: str, path: str, body: bytes | str = b"", content_type: str = "", **fields: str
    ) -> Answer:
        key = self.app.key
        headers = {
            "Authorization": f"DPoP {self.token}",
            "DPoP": self.provider.proof(key, method=method, url=BASE + path),
            **({"Content-Type": content_type} if content_type else {}),
            **fields,
        }
        content = body.encode() if isinstance(body, str) else body
        return await self.provider.public.request(method, path, headers=headers, body=content)

    async def limit(self, limit: Limit | None) -> None:
        """Give the application this limit, as its pages do."""
        key = client_key(WEB_ID, self.app.client_id)
        owner = self.provider.account.account_id
        stored = StoredLimit(WEB_ID, self.app.client_id, limit or everything(POD))
        record = LIMITS.put(key, stored, owner=owner) if limit else LIMITS.drop(key)
        await self.provider.commit(record)


async def access(provider: Provider, app: App) -> Access:
    return Access(provider, app, (await provider.tokens(app))["access_token"])


@pytest.fixture
async def full(provider: Provider, public_app: App) -> Access:
    """An application that may do everything."""
    return await access(provider, public_app)


@pytest.fixture
async def narrow(provider: Provider, app: App) -> Access:
    """One that will be limited."""
    return await access(provider, app)


def folder(path: str, *actions: str) -> AllowedPlace:
    return AllowedPlace(path, actions)


@pytest.mark.parametrize("lasts_s", [1, 10])
async def test_a_limit_ends_when_it_says(narrow: Access, lasts_s: int) -> None:
    clock = narrow.provider.clock
    await narrow.limit(replace(everything(POD), ends_s=clock.now_s() + lasts_s))
    clock.advance(lasts_s - 1)
    assert (await narrow.send("GET", f"{POD}private/")).status == 200
    clock.advance(1)
    assert (await narrow.send("GET", f"{POD}private/")).status in {401, 403}


@pytest.mark.parametrize(
    ("token_lasts_s", "limit_lasts_s", "both_last_s"),
    [(None, 100, 100), (50, 100, 50), (150, 100, 100)],
)
async def test_what_was_verified_holds_until_the_token_or_the_limit_ends(
    provider: Provider, token_lasts_s: int | None, limit_lasts_s: int, both_last_s: int
) -> None:
    now_s = provider.clock.now_s()
    limit = replace(everything(POD), ends_s=now_s + limit_lasts_s)
    stored = StoredLimit(WEB_ID, "", limit)
    owner = provider.account.account_id
    await provider.commit(LIMITS.put(token_key("a token"), stored, owner=owner))
    records = RecordStore(provider.store, provider.clock, SystemRandomness())
    identity = Identity(
        WEB_ID,
        AuthenticationMethod.SIMPLE,
        token_id="a token",
        expires_at_s=None if token_lasts_s is None else now_s + token_lasts_s,
    )
    refined = await LimitedIdentities(LimitStore(records), BASE).refined(identity)
    assert refined.holds_until_s == now_s + both_last_s


# --- the model -----------------------------------------------------------------------------------

AGENT = {"/alice/": {"read", "append", "write", "control"}}
PLACES = [
    "/alice/",
    "/alice/a/",
    "/alice/a/doc.ttl",
    "/alice/ab/",
    "/alice/apps/",
    "/alice/apps/x/",
]
TARGETS = ["/alice/a/", "/alice/ab/", "/alice/apps/x/", "/alice/b/c/"]
NEEDS: Mapping[str, Mapping[str, set[str]]] = {
    # the modes on the document, and those on its container
    "GET": {"doc": {"read"}},
    "PUT": {"doc": {"write"}},
    "CREATE": {"new": {"write"}, "folder": {"append"}},
    "POST": {"folder": {"append"}},
    "APPEND": {"doc": {"append"}},
    "DELETE": {"doc": {"write"}, "folder": {"write"}},
    "COPY": {"doc": {"read"}, "new": {"write"}, "folder": {"append"}},
    "MOVE": {"doc": {"read", "write"}, "new": {"write"}, "folder": {"write", "append"}},
    "ACL": {"doc": {"control"}},
}


def model(limit: Limit, path: str) -> set[str]:
    """The modes that a limit leaves of all, written as one would say it."""
    if limit.paused:
        return set()
    actions: set[str] = set()
    for place in limit.places:
        inside = path == place.path or (place.path[-1] == "/" and path.startswith(place.path))
        of_another = path.startswith("/alice/apps/") and not place.path.startswith("/alice/apps/")
        if inside and (limit.apps or not of_another):
            actions |= set(place.actions)
    modes = {"read"} if "read" in actions else set()
    if "add" in actions:
        modes |= {"append"}
    if "edit" in actions:
        modes |= {"append", "write"} | ({"control"} if limit.rules else set())
    for place in limit.places:
        if place.rules and "edit" in place.actions and path.startswith(place.path):
            of_another = path.startswith("/alice/apps/") and place.path < "/alice/apps/"
            is_inside = place.path[-1] == "/" or path == place.path
            modes |= {"control"} if is_inside and (limit.apps or not of_another) else set()
    return modes


def random_limit(chosen: random.Random) -> Limit:
    return Limit(
        POD,
        tuple(
            AllowedPlace(
                path,
                tuple(each for each in ACTIONS if chosen.random() < 0.6),
                rules=chosen.random() < 0.3,
            )
            for path in chosen.sample(PLACES, chosen.randrange(4))
        ),
        shared=("read",) if chosen.random() < 0.5 else (),
        rules=chosen.random() < 0.3,
        apps=chosen.random() < 0.5,
        paused=chosen.random() < 0.1,
    )


async def attempt(by: Access, way: str, container: str) -> Answer:  # noqa: PLR0911
    doc = f"{container}doc.ttl"
    new = f"{container}new.ttl"
    match way:
        case "CREATE":
            return await by.send("PUT", new, "<> a <#y>.", TURTLE)
        case "PUT":
            return await by.send("PUT", doc, "<> a <#z>.", TURTLE)
        case "POST":
            return await by.send("POST", container, "<> a <#y>.", TURTLE, Slug="posted")
        case "APPEND":
            return await by.send("PATCH", doc, INSERT.format("<#a> <#b> <#c>."), N3)
        case "COPY" | "MOVE":
            return await by.send(way, doc, Destination=new)
        case "ACL":
            return await by.send("GET", f"{doc}.acl")
        case _:
            return await by.send(way, doc)


async def test_a_limited_application_can_do_what_the_limit_says_and_no_more(
    full: Access, narrow: Access
) -> None:
    chosen = random.Random(26)
    seen = {True: 0, False: 0}
    for _ in range(120):
        limit, way = random_limit(chosen), chosen.choice(list(NEEDS))
        container = chosen.choice(TARGETS)
        await full.send("DELETE", f"{container}new.ttl")
        assert (await full.send("PUT", f"{container}doc.ttl", "<> a <#x>.", TURTLE)).status < 300
        await narrow.limit(limit)
        paths = {"doc": f"{container}doc.ttl", "new": f"{container}new.ttl", "folder": container}
        may = all(modes <= model(limit, paths[name]) for name, modes in NEEDS[way].items())
        answer = await attempt(narrow, way, container)
        expected = {200, 201, 204, 205, 404} if may else {403}  # without an ACL of its own: 404
        assert answer.status in expected, (way, container, limit, answer.status, answer.text)
        seen[may] += 1
        if not may:
            assert answer.json()["error"] == "insufficient_scope"
    assert min(seen.values()) > 20


# --- what is told --------------------------------------------------------------------------------


async def test_a_refusal_says_that_the_person_may_and_where_to_allow_it(
    full: Access, narrow: Access
) -> None:
    """RFC 6750 section 3.1"""
    await full.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    await narrow.limit(Limit(POD, (folder("/alice/a/", "read"),)))
    shown = await narrow.send("GET", "/alice/a/doc.ttl")
    assert (shown.status, shown.header("wac-allow")) == (200, 'user="read",public=""')
    refused = await narrow.send("PUT", "/alice/a/doc.ttl", "<> a <#z>.", TURTLE)
    assert refused.status == 403
    (challenge,) = refused.header_lines("www-authenticate")
    key = client_key(WEB_ID, narrow.app.client_id)
    page = f"{BASE}/.pages/apps/limits/{key}?path=/alice/a/doc.ttl&mode=write"
    assert challenge.startswith("DPoP realm=")
    assert 'error="insufficient_scope"' in challenge
    assert f'error_uri="{page}"' in challenge


async def test_what_its_person_may_not_do_either_is_refused_as_ever(narrow: Access) -> None:
    await narrow.limit(Limit(POD))
    refused = await narrow.send("GET", "/nobody/doc")
    assert (refused.status, refused.json()["error"]) == (403, "Forbidden")
    assert refused.header_lines("www-authenticate") == []


async def test_what_everyone_may_read_a_limited_application_may_read(
    full: Access, narrow: Access
) -> None:
    """It could leave its token out."""
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>. "
        f"<#o> a acl:Authorization; acl:agent <{WEB_ID}>; acl:accessTo <./doc.ttl>; "
        "acl:mode acl:Read, acl:Write, acl:Control. "
        "<#p> a acl:Authorization; acl:agentClass <http://xmlns.com/foaf/0.1/Agent>; "
        "acl:accessTo <./doc.ttl>; acl:mode acl:Read."
    )
    await full.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    assert (await full.send("PUT", "/alice/a/doc.ttl.acl", rules, TURTLE)).status < 300
    await narrow.limit(Limit(POD))
    shown = await narrow.send("GET", "/alice/a/doc.ttl")
    assert (shown.status, shown.header("wac-allow")) == (200, 'user="read",public="read"')


# --- when it changes -----------------------------------------------------------------------------


async def test_a_changed_limit_holds_at_the_next_request_of_every_worker(
    start_provider: StartProvider,
) -> None:
    one = await start_provider()
    app = await one.register()
    by = await access(one, app)
    other = Access(await start_provider(clock=one.clock), app, by.token)
    await by.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    for limit, status in (
        (None, 200),
        (Limit(POD), 403),
        (everything(POD), 200),
        (Limit(POD, everything(POD).places, paused=True), 403),
        (None, 200),
    ):
        await by.limit(limit)
        for each in (by, other, by):
            assert (await each.send("GET", "/alice/a/doc.ttl")).status == status, limit


async def test_a_limit_ends_at_its_time(narrow: Access, full: Access) -> None:
    clock = narrow.provider.clock
    await full.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    await narrow.limit(everything(POD, ends_s=clock.now_s() + 60))
    assert (await narrow.send("GET", "/alice/a/doc.ttl")).status == 200
    clock.advance(60)
    assert (await narrow.send("GET", "/alice/a/doc.ttl")).status == 403
    assert (await full.send("GET", "/alice/a/doc.ttl")).status == 200


# --- attempts to widen ---------------------------------------------------------------------------


async def test_a_refreshed_token_has_the_same_limit(provider: Provider, app: App) -> None:
    tokens = await provider.tokens(app, scope="openid webid offline_access", prompt="consent")
    narrow = Access(provider, app, tokens["access_token"])
    await narrow.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    await narrow.limit(Limit(POD))
    answer = await provider.refresh(app, tokens["refresh_token"], scope="openid webid")
    assert answer.status == 200
    again = Access(provider, app, answer.json()["access_token"])
    assert (await again.send("GET", "/alice/a/doc.ttl")).status == 403


async def test_signing_in_again_keeps_the_limit_also_at_another_redirect_uri(
    provider: Provider,
) -> None:
    app = await provider.register(redirect_uris=[CALLBACK, "https://app.example/other"])
    narrow = await access(provider, app)
    await narrow.limit(Limit(POD))
    elsewhere = App({**app.metadata, "redirect_uris": ["https://app.example/other"]}, app.key)
    for each in (app, elsewhere):
        again = await access(provider, each)
        assert (await again.send("GET", "/alice/private/")).status == 403


async def test_a_profile_and_rules_cannot_be_patched(narrow: Access) -> None:
    await narrow.limit(Limit(POD, (folder(POD, *ACTIONS),)))
    insert = INSERT.format(
        "<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://evil.example>."
    )
    assert (await narrow.send("PATCH", POD, insert, N3)).status == 403
    rules = INSERT.format("<#x> a <http://www.w3.org/ns/auth/acl#Authorization>.")
    assert (await narrow.send("PATCH", f"{POD}.acl", rules, N3)).status == 403
    assert (await narrow.send("PUT", f"{POD}a/.acl", "<> a <#x>.", TURTLE)).status == 403


async def test_a_listing_and_a_whole_tree_are_within_the_limit(
    full: Access, narrow: Access
) -> None:
    await full.send("PUT", "/alice/a/in/doc.ttl", "<> a <#x>.", TURTLE)
    await full.send("PUT", "/alice/apps/x/doc.ttl", "<> a <#x>.", TURTLE)
    await narrow.limit(Limit(POD, (folder("/alice/a/", "read"), folder("/alice/b/", *ACTIONS))))
    copied = await narrow.send("COPY", "/alice/a/", Destination="/alice/b/copy/")
    assert copied.status == 403, "b is not there, and its own container is not in the limit"
    await full.send("PUT", "/alice/b/doc.ttl", "<> a <#x>.", TURTLE)
    assert (await narrow.send("COPY", "/alice/a/", Destination="/alice/b/copy/")).status == 201
    assert (await narrow.send("COPY", "/alice/", Destination="/alice/b/all/")).status == 403
    assert (await narrow.send("DELETE", "/alice/a/")).status == 403
    assert (await narrow.send("MOVE", "/alice/a/in/", Destination="/alice/b/in/")).status == 403
    await narrow.limit(Limit(POD, (folder(POD, *ACTIONS),)))
    assert (await narrow.send("COPY", "/alice/apps/", Destination="/alice/b/apps/")).status == 403


async def test_no_channel_is_made_beyond_the_limit(narrow: Access, full: Access) -> None:
    await full.send("PUT", "/alice/a/doc.ttl", "<> a <#x>.", TURTLE)
    body = {
        "@context": ["https://www.w3.org/ns/solid/notification/v1"],
        "type": "http://www.w3.org/ns/solid/notifications#StreamingHTTPChannel2023",
        "topic": f"{BASE}/alice/a/doc.ttl",
    }
    path = "/.notifications/StreamingHTTPChannel2023/"
    made = await narrow.send("POST", path, json.dumps(body), "application/ld+json")
    assert made.status in {200, 201}, made.text
    await narrow.limit(Limit(POD))
    refused = await narrow.send("POST", path, json.dumps(body), "application/ld+json")
    assert refused.status == 403
