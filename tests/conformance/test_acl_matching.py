"""Which rules apply, and to whom (W-10 to W-18, M-4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.conformance.agents import (
    ACL,
    AUTHENTICATED,
    EVERYONE,
    Agent,
    Rule,
    acl_turtle,
    create_agent,
)
from tests.support.http_servers import Handler, serving
from tests.support.rdf import JSON_LD, TURTLE
from tests.support.server import ServerProcess

PREFIXES = (
    f"@prefix acl: <{ACL}>. @prefix foaf: <http://xmlns.com/foaf/0.1/>."
    " @prefix vcard: <http://www.w3.org/2006/vcard/ns#>.\n"
)
READ = "acl:mode acl:Read"


@pytest.fixture
def document(alice: Agent, container: str) -> str:
    """A document of Alice's."""
    return alice.create(f"{container}doc.ttl")


def put_rule(alice: Agent, subject: str, rule: str) -> None:
    """Give a resource an ACL of Alice's own rule and one more, a node's properties in Turtle."""
    owner = acl_turtle(
        alice.url(subject),
        Rule(alice.named, "Read Write Control", default=subject.endswith("/")),
    )
    response = alice.put(f"{subject}.acl", f"{owner}\n{PREFIXES} [] {rule} .")
    assert response.status in {201, 204}, response


# --- M-4, W-10: which ACL -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        ("access-to and default", (200, 200, 200)),
        ("default", (403, 200, 200)),
        ("none", (403, 403, 403)),
        ("access-to", (403, 403, 403)),
    ],
)
def test_m_4_what_a_containers_acl_gives_on_what_is_within(
    alice: Agent, bob: Agent, container: str, reach: str, expected: tuple[int, int, int]
) -> None:
    """As the suite has it: its "access-to" gives Bob nothing, and neither does its "none"."""
    document = alice.create(f"{container}intermediate/doc.txt", "x", "text/plain")
    if reach in {"access-to and default", "default"}:
        both = "and" in reach
        alice.grant(container, Rule(bob.named, "Read", access_to=both, default=True))
    else:
        alice.grant(container)
    targets = (container, f"{container}intermediate/", document)
    assert tuple(bob.get(target).status for target in targets) == expected


def test_m_4_access_to_alone_reaches_the_container_alone(
    alice: Agent, bob: Agent, container: str
) -> None:
    document = alice.create(f"{container}intermediate/doc.txt", "x", "text/plain")
    alice.grant(container, Rule(bob.named, "Read"))
    targets = (container, f"{container}intermediate/", document)
    assert [bob.get(target).status for target in targets] == [200, 403, 403]


def test_w_10_the_closest_acl_decides_alone(alice: Agent, public: Agent, container: str) -> None:
    inner = alice.create(f"{container}inner/")
    path = alice.create(f"{inner}doc.txt", "x", "text/plain")
    alice.grant(container, Rule(EVERYONE, "Read", default=True))
    assert public.get(path).status == 200
    alice.grant(inner, Rule(EVERYONE, "Append", default=True))
    assert public.get(path).status == 401
    assert public.get(inner).status == 401
    alice.grant(path, Rule(EVERYONE, "Read"))
    assert public.get(path).status == 200
    assert public.put(path, "y", "text/plain").status == 401
    alice.grant(path)
    assert public.get(path).status == 401
    assert alice.delete(f"{path}.acl").status == 204
    assert public.get(path).status == 401
    assert alice.delete(f"{inner}.acl").status == 204
    assert public.get(path).status == 200


def test_w_10_own_rules_count_by_access_to_and_inherited_ones_by_default(
    alice: Agent, bob: Agent, container: str
) -> None:
    inner = alice.create(f"{container}inner/")
    alice.grant(inner, Rule(bob.named, "Read", access_to=False, default=True))
    assert [bob.get(inner).status, bob.get(f"{inner}missing").status] == [403, 404]
    alice.grant(inner, Rule(bob.named, "Read"))
    assert [bob.get(inner).status, bob.get(f"{inner}missing").status] == [200, 403]


def test_w_10_what_is_missing_has_the_rules_of_what_is_above(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    missing = [container + name for name in ("missing", "missing/", "no/such/place", "no/such/")]
    for path in missing:
        assert [bob.get(path).status, public.get(path).status] == [403, 401]
    alice.grant(container, Rule(bob.named, "Read", default=True))
    for path in missing:
        assert [bob.get(path).status, public.get(path).status] == [404, 401]


# --- W-11, W-12: what counts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reach", "status"),
    [
        ("acl:accessTo <{url}>", 200),
        ("acl:accessTo <{path}>", 200),
        ("acl:accessTo <doc.ttl>", 200),
        ("acl:accessTo <./doc.ttl>", 200),
        ("acl:accessTo <{shouted}>", 200),
        ("acl:accessTo <%64oc.ttl>", 200),
        ("acl:accessTo <doc.ttl>, <other>", 200),
        ("acl:accessTo <doc.ttl/>", 403),
        ("acl:accessTo <doc.tt>", 403),
        ("acl:accessTo <doc>", 403),
        ("acl:accessTo <doc.ttl#it>", 403),
        ("acl:accessTo <doc.ttl?query>", 403),
        ("acl:accessTo <DOC.TTL>", 403),
        ("acl:accessTo <{secure}>", 403),
        ("acl:accessTo <http://other.example{path}>", 403),
        ("acl:accessTo <./>", 403),
        ("acl:accessTo <doc.ttl.acl>", 403),
        ("acl:accessTo '{url}'", 403),
        ("acl:default <doc.ttl>", 403),
        ("acl:default <./>", 403),
        ("acl:accessToClass <doc.ttl>", 403),
    ],
)
def test_w_11_a_rule_names_its_resource_exactly(
    alice: Agent, bob: Agent, document: str, reach: str, status: int
) -> None:
    url = alice.url(document)
    named = reach.format(
        url=url,
        path=document,
        shouted=url.replace("http://localhost", "HTTP://LOCALHOST"),
        secure=url.replace("http://", "https://"),
    )
    put_rule(alice, document, f"a acl:Authorization; {bob.named}; {named}; {READ}")
    assert bob.get(document).status == status


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ("./", 200),
        ("{inner}", 200),
        ("../", 403),
        ("{pod}", 403),
        ("../inn", 403),
        ("../inner", 403),
        ("doc.ttl", 403),
        ("../inner/deeper/", 403),
    ],
)
def test_w_11_a_default_names_the_container_of_its_acl(
    alice: Agent, bob: Agent, container: str, named: str, status: int
) -> None:
    inner = alice.create(f"{container}inner/")
    path = alice.create(f"{inner}doc.ttl")
    iri = named.format(inner=alice.url(inner), pod=alice.pod)
    put_rule(alice, inner, f"a acl:Authorization; {bob.named}; acl:default <{iri}>; {READ}")
    assert bob.get(path).status == status
    assert bob.get(f"{inner}deeper/doc").status == (404 if status == 200 else 403)
    assert bob.get(inner).status == 403


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("a acl:Authorization; {bob}; {reach}; acl:mode acl:Read", 200),
        ("a acl:Authorization; {bob}; {reach}; acl:mode acl:Read, acl:Append", 200),
        ("a acl:Authorization; {bob}, </x>; {reach}; acl:mode acl:Read", 200),
        ("{bob}; {reach}; acl:mode acl:Read", 403),
        ("a acl:authorization; {bob}; {reach}; acl:mode acl:Read", 403),
        ("a 'acl:Authorization'; {bob}; {reach}; acl:mode acl:Read", 403),
        ("a acl:Authorization; {bob}; {reach}", 403),
        ("a acl:Authorization; {bob}; acl:mode acl:Read", 403),
        ("a acl:Authorization; {reach}; acl:mode acl:Read", 403),
        ("a acl:Authorization; acl:agent <{name}>; {reach} . [] acl:mode acl:Read", 403),
    ],
)
def test_w_12_only_a_complete_authorization_applies(
    alice: Agent, bob: Agent, document: str, rule: str, status: int
) -> None:
    reach = "acl:accessTo <doc.ttl>"
    put_rule(alice, document, rule.format(bob=bob.named, reach=reach, name=bob.web_id))
    assert bob.get(document).status == status


@pytest.mark.parametrize("node", ["[]", "_:rule", "<#rule>", "<http://other.example/rule>"])
def test_w_12_an_authorization_may_have_any_name(
    alice: Agent, bob: Agent, document: str, node: str
) -> None:
    rule = f"{node} a acl:Authorization; {bob.named}; acl:accessTo <doc.ttl>; {READ} ."
    assert alice.put(f"{document}.acl", PREFIXES + rule).status == 201
    assert bob.get(document).status == 200


# --- W-13, W-14: subjects -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "of_bob", "of_public"),
    [
        (EVERYONE, 200, 200),
        (AUTHENTICATED, 200, 401),
        ("acl:agent <{bob}>", 200, 401),
        ("acl:agent <{alice}>, <{bob}>", 200, 401),
        ("acl:agent <{alice}>", 403, 401),
        ("acl:agent <{bob}x>", 403, 401),
        ("acl:agent <{document}>", 403, 401),
        ("acl:agent '{bob}'", 403, 401),
        ("acl:agent foaf:Agent", 403, 401),
        ("acl:agent acl:AuthenticatedAgent", 403, 401),
        ("acl:agentClass <{bob}>", 403, 401),
        ("acl:agentGroup <{bob}>", 403, 401),
        ("acl:agentClass acl:Agent, foaf:Person", 403, 401),
    ],
)
def test_w_13_subjects_match_exactly(
    alice: Agent, bob: Agent, public: Agent, document: str, who: str, of_bob: int, of_public: int
) -> None:
    subject = who.format(bob=bob.web_id, alice=alice.web_id, document=bob.web_id.partition("#")[0])
    rule = f"a acl:Authorization; {subject}; acl:accessTo <doc.ttl>; {READ}"
    put_rule(alice, document, rule)
    assert [bob.get(document).status, public.get(document).status] == [of_bob, of_public]


def test_w_13_members_of_a_group(
    alice: Agent, bob: Agent, public: Agent, server: ServerProcess, document: str
) -> None:
    carol = create_agent(server)
    group = document.replace("doc.ttl", "group")
    content = f"{PREFIXES} <#g> a vcard:Group; vcard:hasMember <{bob.web_id}>, </x/#me> ."
    alice.create(group, content)
    alice.grant(document, Rule(f"acl:agentGroup <{alice.url(group)}#g>", "Read"))
    statuses = [agent.get(document).status for agent in (bob, carol, public)]
    assert statuses == [200, 403, 401]
    alice.put(group, content.replace("<#g>", "<#h>"))
    assert bob.get(document).status == 403


def test_w_14_groups_in_the_same_pod_are_read_for_every_agent(
    alice: Agent, bob: Agent, document: str
) -> None:
    group = document.replace("doc.ttl", "group")
    alice.grant(document, Rule(f"acl:agentGroup <{alice.url(group)}#g>", "Read"))
    assert bob.get(document).status == 403
    member = "http://www.w3.org/2006/vcard/ns#hasMember"
    as_json = f'{{"@id": "#g", "{member}": {{"@id": "{bob.web_id}"}}}}'
    for content, content_type in (
        (f"<#g> <{member}> <{bob.web_id}> .", TURTLE),
        (as_json, JSON_LD),
    ):
        assert alice.put(group, content, content_type).status in {201, 204}
        assert bob.get(group).status == 403
        assert bob.get(document).status == 200
        alice.put(group, "<#g> <#none> <#none> .")
        assert bob.get(document).status == 403
    # Its own access is decided by the group itself: there is an end to that.
    alice.put(group, f"<#g> <{member}> <{bob.web_id}> .")
    alice.grant(group, Rule(f"acl:agentGroup <{alice.url(group)}#g>", "Read"))
    assert bob.get(group).status == 200
    alice.put(group, as_json, "application/json")
    assert bob.get(document).status == 403
    alice.delete(group)
    assert bob.get(document).status == 403


def test_w_14_groups_elsewhere_take_read_by_the_owner_of_the_rules(
    alice: Agent, bob: Agent, document: str
) -> None:
    group = bob.create(f"{bob.pod}private/{document.strip('/').replace('/', '-')}")
    bob.put(group, f"<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <{bob.web_id}> .")
    alice.grant(document, Rule(f"acl:agentGroup <{bob.url(group)}#g>", "Read"))
    assert bob.get(document).status == 403
    for reader, expected in ((alice.named, 200), (bob.named, 403), (EVERYONE, 200)):
        bob.grant(group, Rule(reader, "Read"))
        assert bob.get(document).status == expected


class ForeignServer:
    """An HTTP server with one document at a time, which counts who asks for it."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.requests: list[dict[str, str]] = []
        self.url = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[ForeignServer]:
        foreign = self

        class Answering(Handler):
            def respond(self) -> None:
                foreign.requests.append({k.lower(): v for k, v in self.headers.items()})
                status = 404 if foreign.content is None else 200
                self.answer(status, foreign.content or b"", {"Content-Type": TURTLE})

        with serving(Answering) as port:
            self.url = f"http://localhost:{port}/"
            yield self


@pytest.fixture
def foreign() -> Iterator[ForeignServer]:
    """Another server."""
    with ForeignServer().running() as server:
        yield server


def test_w_14_foreign_groups_are_fetched(
    alice: Agent, bob: Agent, public: Agent, container: str, foreign: ForeignServer
) -> None:
    foreign.content = f"{PREFIXES} <#g> vcard:hasMember <{bob.web_id}> .".encode()
    path = alice.create(f"{container}doc.ttl")
    alice.grant(path, Rule(f"acl:agentGroup <{foreign.url}groups#g>", "Read"))
    assert [agent.get(path).status for agent in (bob, bob, public)] == [200, 200, 401]
    assert len(foreign.requests) == 1
    assert "authorization" not in foreign.requests[0]
    alice.grant(path, Rule(f"acl:agentGroup <{foreign.url}groups#h>", "Read"))
    assert bob.get(path).status == 403


@pytest.mark.parametrize("content", [None, b"this is no Turtle", b""])
def test_w_14_an_unavailable_group_has_no_members(
    alice: Agent, bob: Agent, container: str, foreign: ForeignServer, content: bytes | None
) -> None:
    foreign.content = content
    path = alice.create(f"{container}doc.ttl")
    for url in (foreign.url, "http://localhost:1/", "ftp://localhost/", "urn:x:"):
        alice.grant(path, Rule(f"acl:agentGroup <{url}groups#g>", "Read"))
        assert bob.get(path).status == 403
        assert alice.get(path).status == 200


# --- W-15, W-16: modes ----------------------------------------------------------------------------

MODES = ["Read", "Append", "Write", "Control"]


@pytest.mark.parametrize("held", MODES)
def test_w_15_write_gives_append_and_no_mode_gives_another_one_else(
    alice: Agent, bob: Agent, document: str, held: str
) -> None:
    alice.grant(document, Rule(bob.named, held))
    insert = "INSERT DATA { <#a> <#p> 1 }"
    delete = "DELETE DATA { <#a> <#p> 1 }"
    passes = {
        "read": bob.get(document).status == 200,
        "head": bob.head(document).status == 200,
        "append": bob.patch(document, insert).status == 204,
        "delete": bob.patch(document, delete).status == 204,
        "write": bob.put(document, "<#a> <#p> 2 .").status == 204,
        "control": bob.get(alice.acl_of(document)).status == 200,
    }
    expected = {
        "Read": {"read", "head"},
        "Append": {"append"},
        "Write": {"append", "write"},
        "Control": {"control"},
    }[held]
    assert {name for name, passed in passes.items() if passed} == expected


@pytest.mark.parametrize(
    "rule",
    [
        "a acl:Authorization; {bob}; {reach}; acl:mode acl:read",
        "a acl:Authorization; {bob}; {reach}; acl:mode acl:All, acl:Delete, <#Read>, 'Read'",
        "a acl:Authorization; {bob}; {reach}; <#mode> acl:Read; acl:mode foaf:Agent",
        "a acl:Authorization; acl:member </x>; acl:delegates </x>; {reach}; acl:mode acl:Read",
        "a acl:Authorization; acl:agentClass acl:Everyone; {reach}; acl:mode acl:Read",
        "a <#Authorization>; {bob}; {reach}; acl:mode acl:Read",
    ],
)
def test_w_16_what_is_unknown_is_ignored_and_widens_nothing(
    alice: Agent, bob: Agent, document: str, rule: str
) -> None:
    text = rule.format(bob=bob.named, reach="acl:accessTo <doc.ttl>")
    put_rule(alice, document, text)
    assert bob.get(document).status == 403
    known = f"a acl:Authorization; {bob.named}; acl:accessTo <doc.ttl>; acl:mode acl:Append"
    put_rule(alice, document, f"{text} . [] {known}")
    assert bob.get(document).status == 403
    assert bob.patch(document, "INSERT DATA { <#a> <#p> 1 }").status == 204


def test_w_16_a_rule_with_something_unknown_applies_to_the_rest(
    alice: Agent, bob: Agent, document: str
) -> None:
    rule = (
        f"a acl:Authorization, <#More>; {bob.named}; acl:agentClass <#X>; <#p> 'o';"
        " acl:accessTo <doc.ttl>, 'x'; acl:mode <#Fly>, acl:Read"
    )
    put_rule(alice, document, rule)
    assert bob.get(document).status == 200
    assert bob.put(document).status == 403


def test_w_16_modes_of_all_rules_add_up(
    alice: Agent, bob: Agent, public: Agent, document: str
) -> None:
    alice.grant(
        document,
        Rule(EVERYONE, "Read"),
        Rule(AUTHENTICATED, "Append"),
        Rule(bob.named, "Control"),
        Rule(alice.named, "Write"),
    )
    assert bob.get(document).status == 200
    assert bob.patch(document, "INSERT DATA { <#a> <#p> 1 }").status == 204
    assert bob.get(alice.acl_of(document)).status == 200
    assert bob.put(document).status == 403
    assert public.get(document).status == 200
    assert public.patch(document, "INSERT DATA { <#a> <#p> 2 }").status == 401


# --- W-17, W-18: origins and owners ---------------------------------------------------------------

APP = "https://app.example"


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ("", None, 200),
        ("", APP, 200),
        ("", "null", 200),
        (f"acl:origin <{APP}>;", None, 200),
        (f"acl:origin <{APP}>;", APP, 200),
        (f"acl:origin <{APP}/>;", APP, 200),
        (f"acl:origin <{APP}:443>;", APP, 200),
        (f"acl:origin <https://one.example>, <{APP}>;", APP, 200),
        (f"acl:origin <{APP}>;", "https://other.example", 403),
        (f"acl:origin <{APP}>;", "https://app.example.other", 403),
        (f"acl:origin <{APP}>;", "http://app.example", 403),
        (f"acl:origin <{APP}>;", "https://app.example:8443", 403),
        (f"acl:origin <{APP}>;", "null", 403),
    ],
)
def test_w_17_origins_bind_where_rules_name_some(
    alice: Agent,
    bob: Agent,
    public: Agent,
    document: str,
    origins: str,
    origin: str | None,
    status: int,
) -> None:
    put_rule(
        alice,
        document,
        f"a acl:Authorization; {bob.named}; {origins} acl:accessTo <doc.ttl>; {READ}",
    )
    headers = {} if origin is None else {"Origin": origin}
    assert bob.get(document, headers=headers).status == status
    assert public.get(document, headers=headers).status == 401


def test_w_17_what_everyone_may_an_origin_does_not_bind(
    alice: Agent, bob: Agent, public: Agent, document: str
) -> None:
    rule = f"{EVERYONE}; acl:origin <{APP}>; acl:accessTo <doc.ttl>; {READ}"
    put_rule(alice, document, f"a acl:Authorization; {rule}")
    for agent in (bob, public):
        for origin in (APP, "https://other.example"):
            assert agent.get(document, headers={"Origin": origin}).status == 200


def test_w_17_origins_bind_the_modes_that_their_rule_gives(
    alice: Agent, bob: Agent, document: str
) -> None:
    rules = (
        f"a acl:Authorization; {bob.named}; acl:accessTo <doc.ttl>; {READ} ."
        f" [] a acl:Authorization; {bob.named}; acl:origin <{APP}>; acl:accessTo <doc.ttl>;"
        " acl:mode acl:Write"
    )
    put_rule(alice, document, rules)
    other = {"Origin": "https://other.example"}
    assert bob.get(document, headers=other).status == 200
    assert bob.put(document, headers=other).status == 403
    assert bob.put(document, headers={"Origin": APP}).status == 204
    assert bob.put(document).status == 204


def test_w_17_an_origin_alone_is_nobody(
    alice: Agent, bob: Agent, public: Agent, document: str
) -> None:
    put_rule(
        alice, document, f"a acl:Authorization; acl:origin <{APP}>; acl:accessTo <doc.ttl>; {READ}"
    )
    for headers in ({"Origin": APP}, {}):
        assert bob.get(document, headers=headers).status == 403
        assert public.get(document, headers=headers).status == 401


def test_w_18_the_owner_keeps_control_and_nothing_else(
    alice: Agent, bob: Agent, container: str
) -> None:
    for path in (alice.create(f"{container}doc.ttl"), alice.create(f"{container}inner/")):
        acl = alice.acl_of(path)
        assert alice.put(acl, acl_turtle(alice.url(path), Rule(bob.named, "Read"))).status == 201
        assert alice.get(path).status == 403
        assert alice.put(path).status == 403
        assert alice.get(path).access == {"user": ["control"], "public": []}
        assert alice.read(acl).triples
        assert bob.get(acl).status == 403
        alice.grant(path)
        assert alice.get(path).status == 200


def test_w_18_the_owner_of_one_storage_has_no_control_in_another(
    alice: Agent, bob: Agent, container: str
) -> None:
    acl = acl_turtle(alice.url(container), Rule(bob.named, "Read"))
    assert alice.put(f"{container}.acl", acl).status == 201
    assert bob.get(f"{container}.acl").status == 403
    assert alice.get(f"{bob.pod}.acl").status == 403
    assert alice.get(f"{container}.acl").status == 200
