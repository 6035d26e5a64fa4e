"""LDO (@ldo/connected-solid): typed objects over documents, containers and access rules.

It creates by POST with a slug, changes by PATCH with SPARQL Update, and tells every failure as a
result whose type applications decide by.
"""

from __future__ import annotations

import pytest
from rdflib import Literal, URIRef
from rdflib.namespace import RDF, Namespace

from tests.clients.client_home import Home, StartClient
from tests.support.client import Client
from tests.support.client_process import Agent, ClientProcess
from tests.support.rdf import JSON_LD, TURTLE, Triples, triples
from tests.support.server import ServerProcess

ACL = Namespace("http://www.w3.org/ns/auth/acl#")
LDP = Namespace("http://www.w3.org/ns/ldp#")
SCHEMA = Namespace("https://schema.org/")

POST = """\
@prefix schema: <https://schema.org/>.

<> a schema:SocialMediaPosting; schema:articleBody "Hello"; schema:position 3;
    schema:keywords "a", "b"; schema:isPartOf <https://example.org/>.
"""
NOTHING = {"read": False, "write": False, "append": False, "control": False}
READ = {**NOTHING, "read": True}
ALL = {"read": True, "write": True, "append": True, "control": True}


@pytest.fixture(scope="module")
def ldo(start_client: StartClient) -> ClientProcess:
    return start_client("ldo.mjs")


def _saying(home: Home, name: str, turtle: str) -> Triples:
    return triples(turtle, TURTLE, home.url + name)


# --- documents --------------------------------------------------------------------------------


def test_an_empty_document_is_created(ldo: ClientProcess, home: Home) -> None:
    """C-3, C-4, C-16: by POST of no content, at the URL that the client expects."""
    report = ldo.run("createDocument", home.agent, container=home.url, name="post.ttl")
    assert (report.value["type"], report.value["uri"]) == ("createSuccess", home.url + "post.ttl")
    [post] = report.sent("POST")
    assert (post.status, post.headers["slug"]) == (201, "post.ttl")
    assert home.members() == {"post.ttl"}
    assert home.get("post.ttl").body == b""


def test_a_document_that_is_there_is_not_created_again(ldo: ClientProcess, home: Home) -> None:
    home.put("post.ttl", POST)
    report = ldo.run("createDocument", home.agent, container=home.url, name="post.ttl")
    assert report.value["type"] == "dataReadSuccess"
    assert report.sent("POST") == []
    assert home.triples("post.ttl") == _saying(home, "post.ttl", POST)


def test_an_object_is_written_to_a_document(ldo: ClientProcess, home: Home) -> None:
    """X-30, X-33."""
    url = home.put("post.ttl", "")
    body = 'Zoë says "hi"\n\\o/'
    post = {
        "type": {"@id": "SocialMediaPosting"},
        "articleBody": body,
        "position": 3,
        "image": {"@id": home.url + "image.svg"},
        "keywords": ["a", "ż"],
    }
    report = ldo.run("createPost", home.agent, document=url, post=post)
    assert report.value["type"] == "aggregateSuccess"
    assert [patch.status for patch in report.sent("PATCH")] == [204]
    subject = URIRef(url)
    assert home.triples("post.ttl") == {
        (subject, RDF.type, SCHEMA.SocialMediaPosting),
        (subject, SCHEMA.articleBody, Literal(body)),
        (subject, SCHEMA.position, Literal(3)),
        (subject, SCHEMA.image, URIRef(home.url + "image.svg")),
        (subject, SCHEMA.keywords, Literal("a")),
        (subject, SCHEMA.keywords, Literal("ż")),
    }


def test_an_object_is_written_to_a_document_that_is_missing(ldo: ClientProcess, home: Home) -> None:
    """X-30, C-2: with an author who has no URL, so is a blank node."""
    document = home.url + "new/post.ttl"
    post = {"articleBody": "Hello", "author": {"name": "Alice"}}
    report = ldo.run("createPost", home.agent, document=document, url=f"{document}#it", post=post)
    assert report.value["type"] == "aggregateSuccess"
    assert [patch.status for patch in report.sent("PATCH")] == [201]
    expected = f'<#it> <{SCHEMA.articleBody}> "Hello"; <{SCHEMA.author}> [<{SCHEMA.name}> "Alice"].'
    assert home.triples("new/post.ttl") == _saying(home, "new/post.ttl", expected)
    found = ldo.run("readPost", home.agent, document=document, url=f"{document}#it").value
    assert (found["articleBody"], found["author"]) == ("Hello", "Alice")


@pytest.mark.parametrize("stored_as", [TURTLE, JSON_LD])
def test_an_object_is_read_from_what_others_stored(
    ldo: ClientProcess, home: Home, stored_as: str
) -> None:
    """R-1."""
    document = {
        TURTLE: POST,
        JSON_LD: f"""{{"@context": {{"@vocab": "{SCHEMA}"}}, "@id": "", "articleBody": "Hello",
            "position": 3, "keywords": ["a", "b"]}}""",
    }[stored_as]
    url = home.put("post", document, stored_as)
    assert ldo.run("readPost", home.agent, document=url).value == {
        "articleBody": "Hello",
        "position": 3,
        "image": None,
        "keywords": ["a", "b"],
        "author": None,
    }


def test_an_object_is_changed_and_the_rest_stays(ldo: ClientProcess, home: Home) -> None:
    """X-33: ``DELETE DATA {…}; INSERT DATA {…}``."""
    url = home.put("post.ttl", POST)
    report = ldo.run(
        "changePost",
        home.agent,
        document=url,
        values={"articleBody": "Bye", "position": None, "image": {"@id": home.url + "i.svg"}},
        added=["c"],
        removed=["a"],
    )
    assert report.value["type"] == "aggregateSuccess"
    [patch] = report.sent("PATCH")
    assert (patch.status, patch.headers["content-type"]) == (204, "application/sparql-update")
    expected = POST.replace("Hello", "Bye").replace(" schema:position 3;", "")
    expected = expected.replace('"a", "b"', f'"b", "c"; schema:image <{home.url}i.svg>')
    assert home.triples("post.ttl") == _saying(home, "post.ttl", expected)


def test_a_value_is_removed_without_another_in_its_place(ldo: ClientProcess, home: Home) -> None:
    url = home.put("post.ttl", POST)
    ldo.run("changePost", home.agent, document=url, values={"position": None})
    expected = POST.replace(" schema:position 3;", "")
    assert home.triples("post.ttl") == _saying(home, "post.ttl", expected)


def test_what_two_clients_add_is_all_there(ldo: ClientProcess, home: Home) -> None:
    url = home.put("post.ttl", POST)
    report = ldo.run("changeTwice", home.agent, document=url, keywords=["x", "y"])
    assert report.value == ["aggregateSuccess", "aggregateSuccess"]
    expected = POST.replace('"a", "b"', '"a", "b", "x", "y"')
    assert home.triples("post.ttl") == _saying(home, "post.ttl", expected)


def test_a_missing_document_is_absent(ldo: ClientProcess, home: Home) -> None:
    value = ldo.run("read", home.agent, url=home.url + "missing").value
    assert (value["type"], value["absent"]) == ("absentReadSuccess", True)


def test_a_binary_document_is_stored_and_read(ldo: ClientProcess, home: Home) -> None:
    """C-15."""
    text = '<svg xmlns="http://www.w3.org/2000/svg"><text>é</text></svg>'
    arguments = {"container": home.url, "name": "image.svg", "text": text, "type": "image/svg+xml"}
    stored = ldo.run("upload", home.agent, **arguments)
    assert stored.value["type"] == "createSuccess"
    answer = home.get("image.svg")
    assert (answer.text, answer.headers["content-type"]) == (text, "image/svg+xml")
    found = ldo.run("readBlob", home.agent, url=home.url + "image.svg").value
    assert found["type"] == "binaryReadSuccess"
    assert (found["text"], found["mediaType"]) == (text, "image/svg+xml")


# --- containers -------------------------------------------------------------------------------


def test_a_container_is_created(ldo: ClientProcess, home: Home) -> None:
    """C-8, P-48: by POST with ``ldp:Container`` as the type."""
    report = ldo.run("createDocument", home.agent, container=home.url, name="posts/")
    assert (report.value["type"], report.value["uri"]) == ("createSuccess", home.url + "posts/")
    [post] = report.sent("POST")
    assert post.headers["link"] == f'<{LDP.Container}>; rel="type"'
    assert home.members() == {"posts/"}
    assert (URIRef(home.url + "posts/"), RDF.type, LDP.BasicContainer) in home.triples("posts/")


def test_a_container_that_is_there_is_not_created_again(ldo: ClientProcess, home: Home) -> None:
    home.put("posts/a", "")
    report = ldo.run("createDocument", home.agent, container=home.url, name="posts/")
    assert report.value["type"] == "containerReadSuccess"
    assert home.members() == {"posts/"}


def test_children_of_a_container_are_listed(ldo: ClientProcess, home: Home) -> None:
    """C-23."""
    home.put("a.ttl", POST)
    home.put("note.txt", "text", "text/plain")
    home.put("nested/deep/x", "")
    value = ldo.run("children", home.agent, url=home.url).value
    assert value["type"] == "containerReadSuccess"
    assert value["children"] == {
        f"{home.url}a.ttl": "SolidLeaf",
        f"{home.url}note.txt": "SolidLeaf",
        f"{home.url}nested/": "SolidContainer",
    }


def test_the_root_of_a_storage_is_found_from_a_document(ldo: ClientProcess, home: Home) -> None:
    """P-29, P-34: by HEAD of one container after the other, up to ``pim:Storage``."""
    report = ldo.run("rootOf", home.agent, url=home.put("nested/post.ttl", ""))
    pod = home.url.removesuffix(home.path) + home.pod.root
    assert report.value == {"type": "SolidContainer", "uri": pod}


def test_the_storage_is_found_from_the_webid(ldo: ClientProcess, home: Home) -> None:
    """The pod is read first: of a WebID at a container, such as ours (A-98), the library
    makes a container whose URL has the fragment, and finds nothing in it."""
    pod = home.url.removesuffix(home.path) + home.pod.root
    assert ldo.run("storageOf", home.agent, pod=pod).value == [pod]


# --- deletion of data --------------------------------------------------------------------------

TWO_POSTS = POST + '<#it> a schema:SocialMediaPosting; schema:articleBody "Bye".\n'


def test_the_properties_of_an_object_are_deleted(ldo: ClientProcess, home: Home) -> None:
    """X-31: each value, also of a property with several."""
    url = home.put("post.ttl", POST)
    removed = ["articleBody", "keywords", "type"]
    report = ldo.run("deleteProperties", home.agent, document=url, properties=removed)
    assert report.value["type"] == "aggregateSuccess"
    assert [patch.status for patch in report.sent("PATCH")] == [204]
    expected = "<> schema:position 3; schema:isPartOf <https://example.org/>."
    prefix = POST.partition("\n")[0]
    assert home.triples("post.ttl") == _saying(home, "post.ttl", prefix + expected)


def test_all_that_is_said_of_a_subject_is_deleted(ldo: ClientProcess, home: Home) -> None:
    """X-31: also what the shape of the object does not mention."""
    url = home.put("posts.ttl", TWO_POSTS)
    report = ldo.run("deleteSubject", home.agent, document=url, url=url)
    assert report.value["type"] == "aggregateSuccess"
    assert [patch.status for patch in report.sent("PATCH")] == [204]
    assert {str(subject) for subject, _, _ in home.triples("posts.ttl")} == {f"{url}#it"}


# --- deletion of resources ----------------------------------------------------------------------
#
# This release takes 205 for a deletion that was done, and 404; it tells 204, which is what we
# answer, as an error. These are the consequences.


def test_a_document_is_deleted_and_the_library_reports_an_error(
    ldo: ClientProcess, home: Home
) -> None:
    """C-17."""
    url = home.put("post.ttl", POST)
    report = ldo.run("remove", home.agent, url=url)
    [deleted] = report.requests
    assert (deleted.method, deleted.status) == ("DELETE", 204)
    assert (report.value["type"], report.value["status"]) == ("unexpectedHttpError", 204)
    assert home.get("post.ttl").status == 404
    assert home.members() == set()
    assert ldo.run("read", home.agent, url=url).value["absent"] is True


def test_a_missing_document_is_treated_as_deleted(ldo: ClientProcess, home: Home) -> None:
    """C-21."""
    value = ldo.run("remove", home.agent, url=home.url + "missing").value
    assert value["type"] == "deleteSuccess"


def test_a_container_is_emptied_one_level_at_a_time(ldo: ClientProcess, home: Home) -> None:
    """C-18: the members first. Their deletion counts as failed, so what is around them stays."""
    home.put("posts/a.ttl", POST)
    home.put("posts/b.txt", "text", "text/plain")
    home.put("posts/deep/c.ttl", POST)
    url = home.url + "posts/"
    value = ldo.run("remove", home.agent, url=url).value
    assert value["type"] == "aggregateError"
    assert home.owner.members(home.path + "posts/") == {home.path + "posts/deep/"}
    assert home.owner.members(home.path + "posts/deep/") == set()
    ldo.run("remove", home.agent, url=url)
    assert home.owner.members(home.path + "posts/") == set()
    ldo.run("remove", home.agent, url=url)
    assert home.members() == set()


@pytest.mark.parametrize("name", ["post.ttl", "posts/"])
def test_what_is_to_be_overwritten_is_deleted_and_made_when_tried_again(
    ldo: ClientProcess, home: Home, name: str
) -> None:
    """C-17, C-3: the deletion counts as failed, so nothing is made the first time."""
    home.put(name, f'<> <{SCHEMA.name}> "Old".')
    arguments = {"container": home.url, "name": name, "overwrite": True}
    first = ldo.run("createDocument", home.agent, **arguments)
    assert (first.value["type"], first.value["status"]) == ("unexpectedHttpError", 204)
    assert first.sent("POST") == []
    assert home.members() == set()
    second = ldo.run("createDocument", home.agent, **arguments).value
    assert (second["type"], second["uri"]) == ("createSuccess", home.url + name)
    assert Literal("Old") not in {each for _, _, each in home.triples(name)}


def test_a_binary_document_is_overwritten_when_tried_again(ldo: ClientProcess, home: Home) -> None:
    """C-15."""
    home.put("image.svg", "<svg/>", "image/svg+xml")
    arguments = {"container": home.url, "name": "image.svg", "text": "GIF", "type": "image/gif"}
    first = ldo.run("upload", home.agent, **arguments, overwrite=True).value
    assert (first["type"], first["status"]) == ("unexpectedHttpError", 204)
    assert home.get("image.svg").status == 404
    second = ldo.run("upload", home.agent, **arguments, overwrite=True).value
    assert second["type"] == "createSuccess"
    answer = home.get("image.svg")
    assert (answer.text, answer.headers["content-type"]) == ("GIF", "image/gif")


# --- refusals ---------------------------------------------------------------------------------

BEHAVIOURS: dict[str, dict[str, object]] = {
    "read": {"url": "post.ttl"},
    "remove": {"url": "post.ttl"},
    "getRule": {"url": "post.ttl"},
    "createPost": {"document": "post.ttl", "post": {"articleBody": "Spam"}},
    "createDocument": {"container": "", "name": "new.ttl"},
    "children": {"url": ""},
}
"""With names in the test's container for URLs."""


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize(
    ("stranger", "result", "status"),
    [(False, "unauthenticatedError", 401), (True, "unauthorizedError", 403)],
    ids=["nobody", "stranger"],
)
def test_a_refusal_is_reported_as_one(
    ldo: ClientProcess,
    home: Home,
    other: Agent,
    stranger: bool,
    result: str,
    status: int,
    behaviour: str,
) -> None:
    """P-3, W-30 to W-40."""
    home.put("post.ttl", POST)
    arguments = {
        name: home.url + str(value) if name in {"url", "document", "container"} else value
        for name, value in BEHAVIOURS[behaviour].items()
    }
    value = ldo.run(behaviour, other if stranger else None, **arguments).value
    [told] = value.get("parts") or [value]
    assert (told["type"], told["status"]) == (result, status)
    assert home.members() == {"post.ttl"}
    assert home.triples("post.ttl") == _saying(home, "post.ttl", POST)


# --- access rules -----------------------------------------------------------------------------


def test_the_rule_in_effect_is_found_where_it_is(ldo: ClientProcess, home: Home) -> None:
    """W-3, W-10: climbing from one ACL that is missing to the next."""
    url = home.put("nested/post.ttl", POST)
    value = ldo.run("getRule", home.agent, url=url).value
    assert value["type"] == "getWacRuleSuccess"
    owner = {**ALL, "append": False}
    private = f"{home.url.removesuffix(home.path)}{home.pod.root}private/"
    assert value["uri"] == private
    assert value["rule"] == {
        "public": NOTHING,
        "authenticated": NOTHING,
        "agent": {home.pod.web_id: owner},
    }


def test_a_rule_is_set_and_takes_effect(
    ldo: ClientProcess, home: Home, other: Agent, server: ServerProcess
) -> None:
    """W-5, W-6, W-13, W-15."""
    url = home.put("post.ttl", POST)
    rule = {
        "public": READ,
        "authenticated": {**READ, "append": True},
        "agent": {home.pod.web_id: ALL},
    }
    report = ldo.run("setRule", home.agent, url=url, rule=rule)
    assert report.value["type"] == "setWacRuleSuccess"
    assert ldo.run("getRule", home.agent, url=url).value["rule"] == rule
    stored = home.triples("post.ttl.acl")
    subjects = {each for _, what, each in stored if what in {ACL.agent, ACL.agentClass}}
    assert URIRef(home.pod.web_id) in subjects
    assert {each for _, what, each in stored if what == ACL.accessTo} == {URIRef(url)}
    insert = f'INSERT DATA {{ <> <{SCHEMA.keywords}> "new" }}'
    headers = {"Content-Type": "application/sparql-update"}
    target = home.path + "post.ttl"
    for token, appended in ((None, 401), (other.token, 204)):
        with Client(server, token=token) as somebody:
            assert somebody.get(target).status == 200
            assert somebody.request("PATCH", target, insert, headers).status == appended
            assert somebody.delete(target).status in {401, 403}


def test_a_rule_of_a_container_holds_for_its_members(
    ldo: ClientProcess, home: Home, server: ServerProcess
) -> None:
    """W-10, W-11: the library writes ``acl:default`` as well."""
    home.put("posts/post.ttl", POST)
    rule = {"public": READ, "authenticated": READ, "agent": {home.pod.web_id: ALL}}
    ldo.run("setRule", home.agent, url=home.url + "posts/", rule=rule)
    with Client(server) as anybody:
        assert anybody.get(home.path + "posts/post.ttl").status == 200
        assert anybody.get(home.path + "posts/").status == 200
        assert anybody.get(home.path).status == 401
