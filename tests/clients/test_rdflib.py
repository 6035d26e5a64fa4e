"""rdflib.js reads, changes, creates and deletes."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest
from rdflib import FOAF, Literal, URIRef

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import Agent, ClientFailed, ClientProcess
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, Triples, triples

LDP = "http://www.w3.org/ns/ldp#"
MEDIA_TYPES = "http://www.w3.org/ns/iana/media-types/"
PROTOCOLS = {None: "application/sparql-update", "N3PATCH": "text/n3"}
"""What the UpdateManager calls the ways to change a document, and the media type of each."""

ADDRESS = """
    <#me> <http://xmlns.com/foaf/0.1/name> "Alice";
        <#address> [ <#city> "Bern"; <#zip> 3000 ], [ <#city> "Basel"; <#zip> 4000 ].
"""
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["sparql", "n3"])


@pytest.fixture(scope="module")
def rdflib_js(start_client: StartClient) -> ClientProcess:
    return start_client("rdflib.mjs")


def turtle(content: str, url: str) -> Triples:
    prefixes = (
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>. @prefix dct: <http://purl.org/dc/terms/>."
    )
    return triples(prefixes + content, TURTLE, url)


# --- Reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        (TURTLE, '<#me> <#name> "Alice", "アリス"@ja; <#knows> [ <#age> 42 ], <../x>.'),
        (
            JSON_LD,
            """{"@context": {"@vocab": "#"}, "@id": "#me", "knows": [{"age": 42}, {"@id": "../x"}],
                "name": ["Alice", {"@value": "アリス", "@language": "ja"}]}""",
        ),
    ],
)
def test_a_document_is_loaded(
    rdflib_js: ClientProcess, home: Home, content_type: str, content: str
) -> None:
    """What the library has in its store is what the document says."""
    url = home.put("card", content, content_type)
    loaded = rdflib_js.run("load", home.agent, url=url).value
    assert triples("\n".join(loaded), N_TRIPLES, url) == home.triples("card")
    assert len(loaded) == 5


def test_strangers_load_a_profile_and_learn_nothing_of_what_is_in_the_pod(
    rdflib_js: ClientProcess, home: Home, other: Agent
) -> None:
    """The root of the pod is the document of the WebID."""
    root = home.pod.server.base_url + home.pod.root
    for agent in (None, other, home.agent):
        loaded = triples("\n".join(rdflib_js.run("load", agent, url=root).value), N_TRIPLES, root)
        me = {str(p) for s, p, _ in loaded if str(s) == home.pod.web_id}
        assert "http://www.w3.org/ns/pim/space#storage" in me
        members = {str(o) for _, p, o in loaded if str(p) == f"{LDP}contains"}
        assert (members != set()) is (agent == home.agent)


def test_a_missing_document_is_known_to_be_missing(rdflib_js: ClientProcess, home: Home) -> None:
    report = rdflib_js.run("loadMissing", home.agent, url=home.url + "nothing")
    assert report.value == {"status": 404, "nonexistent": True}


def test_headers_are_read_as_metadata(rdflib_js: ClientProcess, home: Home) -> None:
    """Links as the library's own parser takes them apart; no Content-Location."""
    url = home.put("card", "<#me> a <#it>.")
    assert rdflib_js.run("readMetadata", home.agent, url=url).value == {
        "describedBy": [url + ".meta"],
        "seeAlso": [url + ".meta"],
        "acl": [url + ".acl"],
        "contentLocation": [],
        "types": [f"{MEDIA_TYPES}text/turtle#Resource", f"{LDP}RDFSource", f"{LDP}Resource"],
    }


def test_a_description_is_followed(rdflib_js: ClientProcess, home: Home) -> None:
    """``describedby``, in lower case, leads to what is said of a photo."""
    url = home.put("photo.png", b"png", "image/png")
    home.put("photo.png.meta", f'<{url}> <http://purl.org/dc/terms/title> "Bern".')
    assert rdflib_js.run("loadWithDescription", home.agent, url=url).value == "Bern"


def test_a_container_lists_its_members_with_what_they_are(
    rdflib_js: ClientProcess, home: Home
) -> None:
    """The triples from which SolidOS draws its listing."""
    home.put("card", "<#me> a <#it>.")
    home.put("photo.png", b"12345", "image/png")
    home.put("box/", "")
    listed = rdflib_js.run("list", home.agent, url=home.url).value
    members = {member["url"].removeprefix(home.url): member for member in listed}
    assert members.keys() == {"card", "photo.png", "box/"}
    assert {name for name, member in members.items() if member["isContainer"]} == {"box/"}
    assert set(members["photo.png"]["types"]) == {
        f"{MEDIA_TYPES}image/png#Resource",
        f"{LDP}Resource",
    }
    assert f"{MEDIA_TYPES}text/turtle#Resource" in members["card"]["types"]
    assert members["photo.png"]["size"] == 5
    for name, member in members.items():
        modified = parsedate_to_datetime(home.get(name).headers["last-modified"])
        assert member["mtime"] == modified.timestamp()
        assert member["modified"] == modified.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- Whether it can be edited -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["card", "nothing", "box/"])
def test_the_owner_may_edit_also_what_is_not_there_yet(
    rdflib_js: ClientProcess, home: Home, name: str
) -> None:
    """WAC-Allow and Accept-Patch, on a 404 as well."""
    if name != "nothing":
        home.put(name, "")
    report = rdflib_js.run("editable", home.agent, url=home.url + name)
    assert report.value == {"before": None, "after": "SPARQL"}


def test_a_reader_may_not_edit(rdflib_js: ClientProcess, home: Home) -> None:
    """WAC-Allow without Write and Append."""
    url = home.put("card", "<#me> a <#it>.")
    home.put("card.acl", home.pod.acl(home.path + "card", public=["Read"]))
    assert rdflib_js.run("editable", url=url).value == {"before": None, "after": False}


def test_agents_with_append_can_edit(rdflib_js: ClientProcess, home: Home) -> None:
    url = home.put("card", "<#me> a <#it>.")
    home.put("card.acl", home.pod.acl(home.path + "card", public=["Read", "Append"]))
    assert rdflib_js.run("editable", url=url).value == {"before": None, "after": "SPARQL"}


def test_a_refused_document_is_not_editable(
    rdflib_js: ClientProcess, home: Home, other: Agent
) -> None:
    """Also the 403 says by WAC-Allow that nothing is allowed."""
    url = home.put("card", "<#me> a <#it>.")
    assert rdflib_js.run("editable", other, url=url).value["after"] is False


# --- Changing ---------------------------------------------------------------------------------


@both_protocols
@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({"to": "Ali"}, ("Alice", "Ali")),
        ({"from": "Alice"}, ()),
        ({"from": "Alice", "to": "Ali"}, ("Ali",)),
    ],
    ids=["insert", "delete", "both"],
)
def test_statements_are_inserted_and_deleted(
    rdflib_js: ClientProcess,
    home: Home,
    protocol: str | None,
    change: dict[str, str],
    after: tuple[str, ...],
) -> None:
    """And the store of the library says the same as the server."""
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice"; <#age> 42.')
    report = rdflib_js.run("rename", home.agent, url=url, protocol=protocol, **change)
    [patch] = report.sent("PATCH")
    assert patch.headers["content-type"] == PROTOCOLS[protocol]
    names = "".join(f'<#me> foaf:name "{name}".' for name in after)
    assert home.triples("card") == turtle(f"<#me> <#age> 42. {names}", url)
    assert triples("\n".join(report.value), N_TRIPLES, url) == home.triples("card")


@both_protocols
def test_an_update_makes_a_document(
    rdflib_js: ClientProcess, home: Home, protocol: str | None
) -> None:
    """With the containers on the way; the library looks before, and meets a 404."""
    url = home.url + "a/b/card"
    report = rdflib_js.run("insertUnread", home.agent, url=url, name="Alice", protocol=protocol)
    assert [sent.status for sent in report.sent("PATCH")] == [201]
    assert home.triples("a/b/card") == turtle('<#me> foaf:name "Alice"@en.', url)
    assert home.get("a/b/card").headers["content-type"] == TURTLE


@both_protocols
def test_blank_nodes_are_inserted(
    rdflib_js: ClientProcess, home: Home, protocol: str | None
) -> None:
    url = home.put("card", '<#me> <#name> "Alice".')
    rdflib_js.run("insertAddress", home.agent, url=url, city="Bern", protocol=protocol)
    expected = '<#me> <#name> "Alice"; <#address> [ <#city> "Bern" ].'
    assert home.triples("card") == turtle(expected, url)


@both_protocols
@pytest.mark.parametrize(
    ("to", "after"), [("Thun", '<#city> "Thun"; <#zip> 3000'), (None, "<#zip> 3000")]
)
def test_what_is_said_of_a_blank_node_is_changed(
    rdflib_js: ClientProcess, home: Home, protocol: str | None, to: str | None, after: str
) -> None:
    """The WHERE has variables for blank nodes; the one beside it stays."""
    url = home.put("card", ADDRESS)
    moved = {} if to is None else {"to": to}
    report = rdflib_js.run(
        "move", home.agent, url=url, protocol=protocol, **{"from": "Bern"}, **moved
    )
    [patch] = report.sent("PATCH")
    assert patch.patch is not None
    assert ("WHERE" if protocol is None else "solid:where") in patch.patch
    assert home.triples("card") == turtle(
        ADDRESS.replace('<#city> "Bern"; <#zip> 3000', after), url
    )


@both_protocols
def test_a_blank_node_is_deleted_with_all_that_is_said_of_it(
    rdflib_js: ClientProcess, home: Home, protocol: str | None
) -> None:
    url = home.put("card", '<#me> <#name> "Alice". <#him> <#address> [ <#city> "Bern" ].')
    rdflib_js.run("removeAddress", home.agent, url=url, city="Bern", protocol=protocol)
    assert home.triples("card") == turtle('<#me> <#name> "Alice".', url)


@pytest.mark.parametrize(
    ("behaviour", "after"),
    [
        ("insertStatement", '[ <#city> "Bern"; <#zip> 3000; <#canton> "Bern" ]'),
        ("deleteStatement", "[ <#zip> 3000 ]"),
    ],
)
def test_a_change_with_its_where_first(
    rdflib_js: ClientProcess, home: Home, behaviour: str, after: str
) -> None:
    """As the older calls send it."""
    before = '<#me> <#address> [ <#city> "Bern"; <#zip> 3000 ].'
    url = home.put("card", before)
    report = rdflib_js.run(behaviour, home.agent, url=url, city="Bern")
    [patch] = report.sent("PATCH")
    assert patch.patch is not None
    assert patch.patch.startswith("WHERE")
    assert home.triples("card") == turtle(f"<#me> <#address> {after}.", url)


def test_a_change_of_several_documents(rdflib_js: ClientProcess, home: Home) -> None:
    """One that is there, and one that is not."""
    there = home.put("there", "<#me> a <#it>.")
    urls = [there, home.url + "new"]
    rdflib_js.run("updateMany", home.agent, urls=urls, name="Alice")
    assert home.triples("there") == turtle('<#me> a <#it>; foaf:name "Alice".', there)
    assert home.triples("new") == turtle('<#me> foaf:name "Alice".', home.url + "new")


def test_a_change_without_access_fails_and_changes_nothing(
    rdflib_js: ClientProcess, home: Home
) -> None:
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice".')
    home.put("card.acl", home.pod.acl(home.path + "card", public=["Read", "Append"]))
    rdflib_js.run("rename", None, url=url, to="Ali")
    with pytest.raises(ClientFailed, match="401"):
        rdflib_js.run("rename", None, url=url, **{"from": "Alice"})
    assert home.triples("card") == turtle('<#me> foaf:name "Alice", "Ali".', url)


# --- Documents and containers -----------------------------------------------------------------


def test_a_document_is_put_and_replaced(rdflib_js: ClientProcess, home: Home) -> None:
    url = home.url + "card"
    for names in (["Alice"], ["Ali", "Al"]):
        rdflib_js.run("put", home.agent, url=url, names=names)
        said = "".join(f'<#me> foaf:name "{name}".' for name in names)
        assert home.triples("card") == turtle(said, url)


def test_a_document_is_put_back_from_the_store(rdflib_js: ClientProcess, home: Home) -> None:
    url = home.put("card", ADDRESS)
    rdflib_js.run("putBack", home.agent, url=url, name="Al")
    assert home.triples("card") == turtle(ADDRESS + '<#me> foaf:nick "Al".', url)


def test_a_profile_is_put_back_although_the_pod_has_changed(
    rdflib_js: ClientProcess, home: Home
) -> None:
    """As SolidOS writes a profile that is a container, with all that it has read of it."""
    for name in ("gone.txt", "note.txt"):
        home.put(name, "text", "text/plain")
    rdflib_js.run("putBackLater", home.agent, url=home.url, gone="gone.txt", name="Al")
    assert (URIRef(f"{home.url}#me"), FOAF.nick, Literal("Al")) in home.triples()
    assert home.members() == {"note.txt", "later.txt"}


def test_an_empty_document_is_made_only_once(rdflib_js: ClientProcess, home: Home) -> None:
    url = home.url + "card"
    assert rdflib_js.run("createIfNotExists", home.agent, url=url).value == 201
    assert home.triples("card") == set()
    home.put("card", "<#me> a <#it>.")
    assert rdflib_js.run("createIfNotExists", home.agent, url=url).value == 200
    assert home.triples("card") == turtle("<#me> a <#it>.", url)


def test_a_container_is_made(rdflib_js: ClientProcess, home: Home) -> None:
    """POST of Turtle with a link to its type and a slug; Location says where it is."""
    report = rdflib_js.run("createContainer", home.agent, url=home.url, slug="box")
    [post] = report.requests
    assert post.headers["link"] == f'<{LDP}BasicContainer>; rel="type"'
    assert report.value == home.url + "box/"
    assert home.members() == {"box/"}
    said = home.triples("box/")
    assert turtle(f"<> a <{LDP}BasicContainer>.", home.url + "box/") <= said


def test_a_file_is_copied(rdflib_js: ClientProcess, home: Home) -> None:
    url = home.put("note", "two words", "text/plain")
    rdflib_js.run("copy", home.agent, url=url, to=home.url + "copy", type="text/plain")
    assert home.get("copy").text == "two words"


@pytest.mark.parametrize("name", ["card", "box/"])
def test_a_document_or_an_empty_container_is_deleted(
    rdflib_js: ClientProcess, home: Home, name: str
) -> None:
    """The store forgets it as well."""
    url = home.put(name, "<#me> a <#it>.")
    assert rdflib_js.run("remove", home.agent, url=url).value == 0
    assert home.members() == set()
