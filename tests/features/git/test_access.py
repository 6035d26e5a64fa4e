"""Who may clone and push: the container's access rules decide, as for any other request."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import Git, publish, put_acl, repositories, url_of
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.needs("git")

FETCH = "info/refs?service=git-upload-pack"
PUSH = "info/refs?service=git-receive-pack"
NO_CREDENTIAL = "could not read Username"
DENIED = "The requested URL returned error: 403"


@pytest.fixture
def work(git: Git) -> Git:
    """A repository with one commit."""
    made = git.new("work")
    made.commit("a", "1")
    return made


@pytest.fixture
def other(git: Git, server: ServerProcess) -> Git:
    """Git with the credential of somebody with another pod."""
    return git.with_token(create_pod(server).token)


def pushed(work: Git, url: str, *, by: Git) -> Git:
    """The same repository after a push."""
    mine = Git(work.place, by.settings)
    mine("push", "--quiet", url, "main")
    return mine


def challenges(
    server: ServerProcess, target: str, method: str = "GET", **headers: str
) -> list[str]:
    """The schemes that a 401 offers."""
    with contextlib.closing(server.connect()) as connection:
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 401
        offered = answer.headers.get_all("www-authenticate") or []
        return [each.partition(" ")[0] for each in offered]


def test_the_public_clones_what_it_may_read_and_pushes_nothing(
    git: Git, owner: Git, pod: Pod, work: Git
) -> None:
    url = url_of(pod, "public/notes")
    pushed(work, url, by=owner)
    clone = git.cloned(url, "clone")
    assert clone.tip() == work.tip()
    clone.commit("b", "2")
    assert NO_CREDENTIAL in clone.ends("push").refused_with
    assert owner.branches(url)["refs/heads/main"] == work.tip()


def test_what_is_private_is_neither_cloned_nor_pushed_by_others(
    git: Git, owner: Git, other: Git, pod: Pod, work: Git
) -> None:
    url = url_of(pod, "private/notes")
    pushed(work, url, by=owner)
    work.commit("b", "2")
    for somebody, refusal in ((git, NO_CREDENTIAL), (other, DENIED)):
        assert refusal in somebody.ends("clone", url, "clone").refused_with
        mine = Git(work.place, somebody.settings)
        assert refusal in mine.ends("push", url, "main").refused_with


def test_read_is_for_clones_and_write_for_pushes(
    git: Git, owner: Git, other: Git, pod: Pod, work: Git
) -> None:
    """Append is not enough to push, and Write not to clone."""
    url = url_of(pod, "private/notes/")
    pushed(work, url, by=owner)
    before = work.tip()
    work.commit("b", "2")
    publish(pod, "private/notes/", "Read", "Append")
    assert git.cloned(url, "clone1").tip() == before
    for somebody, refusal in ((git, NO_CREDENTIAL), (other, DENIED)):
        mine = Git(work.place, somebody.settings)
        assert refusal in mine.ends("push", url, "main").refused_with
    publish(pod, "private/notes/", "Write")
    work("push", "--quiet", url, "main")
    assert NO_CREDENTIAL in git.ends("clone", url, "clone2").refused_with
    assert owner.branches(url)["refs/heads/main"] == work.tip()


def test_the_repository_of_a_pods_root_is_not_public_although_its_profile_is(
    git: Git, owner: Git, other: Git, pod: Pod, work: Git
) -> None:
    """The root's public rule opens the profile and nothing below it."""
    url = url_of(pod, "")
    assert pod.server.get(pod.root).status == 200
    pushed(work, url, by=owner)
    for somebody, refusal in ((git, NO_CREDENTIAL), (other, DENIED)):
        assert refusal in somebody.ends("clone", url, "clone").refused_with
        assert refusal in somebody.ends("ls-remote", url).refused_with
    typed = {"Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2"}
    answer = pod.server.request("POST", f"{pod.root}git-upload-pack", b"0000", typed)
    assert answer.status == 401
    assert owner.cloned(url, "clone").tip() == work.tip()


@pytest.mark.parametrize(
    ("reach", "is_public"),
    [("acl:accessTo", False), ("acl:default", False), ("acl:accessTo acl:default", True)],
)
def test_a_clone_takes_read_on_the_container_and_on_what_is_in_it(
    git: Git, owner: Git, pod: Pod, work: Git, reach: str, is_public: bool
) -> None:
    url = url_of(pod, "public/notes/")
    pushed(work, url, by=owner)
    container = f"{pod.root}public/notes/"
    rule = "\n".join(
        f"<#public> a acl:Authorization; acl:agentClass foaf:Agent; {each} <{url}>; "
        "acl:mode acl:Read ."
        for each in reach.split()
    )
    with pod.owner() as client:
        assert client.put(f"{container}doc", "text").status == 201
        acl = f"{pod.acl(container)}\n{rule}"
        assert client.put(f"{container}.acl", acl, "text/turtle").status == 201
        # A document of this name with rules of its own opens nothing but itself.
        name = f"{container}git-upload-pack"
        assert client.put(name, "text").status == 201
        own = pod.acl(name, public=("Read",))
        assert client.put(f"{name}.acl", own, "text/turtle").status == 201
    statuses = [pod.server.get(each).status for each in (container, f"{container}doc")]
    assert (statuses == [200, 200]) == is_public
    assert (git.ends("clone", url, "clone").code == 0) == is_public


def test_rules_count_from_the_next_request_on(git: Git, owner: Git, pod: Pod, work: Git) -> None:
    url = url_of(pod, "public/notes/")
    pushed(work, url, by=owner)
    git.cloned(url, "before")
    with pod.owner() as client:
        put_acl(client, pod, f"{pod.root}public/notes/")
    assert NO_CREDENTIAL in git.ends("clone", url, "after").refused_with


def test_rules_of_a_container_count_for_repositories_below(
    git: Git, owner: Git, pod: Pod, work: Git
) -> None:
    pushed(work, url_of(pod, "public/a/b/c"), by=owner)
    assert git.cloned(url_of(pod, "public/a/b/c/"), "clone").tip() == work.tip()


def test_a_push_makes_the_container_with_those_above(
    owner: Git, other: Git, git: Git, pod: Pod, work: Git
) -> None:
    url = url_of(pod, "private/a/b/notes")
    for somebody, refusal in ((git, NO_CREDENTIAL), (other, DENIED)):
        mine = Git(work.place, somebody.settings)
        assert refusal in mine.ends("push", url, "main").refused_with
    assert "not found" in owner.ends("clone", url, "clone").refused_with
    with pod.owner() as client:
        assert client.get(f"{pod.root}private/a/").status == 404
        pushed(work, url, by=owner)
        assert client.members(f"{pod.root}private/a/") == {f"{pod.root}private/a/b/"}
        assert client.members(f"{pod.root}private/a/b/notes/") == set()


def test_asking_what_a_push_may_replace_makes_nothing(
    owner: Git, pod: Pod, server: ServerProcess
) -> None:
    before = len(repositories(server.root))
    with pod.owner() as client:
        answer = client.get(f"{pod.root}private/notes/{PUSH}")
        assert answer.status == 200
        assert b"capabilities^{}" in answer.body
        assert client.get(f"{pod.root}private/notes/").status == 404
    assert len(repositories(server.root)) == before


def test_making_the_container_takes_what_put_takes(
    git: Git, other: Git, pod: Pod, work: Git
) -> None:
    """W-34: Write on the container, and Append on the one above."""
    url = url_of(pod, "public/notes")
    mine = Git(work.place, other.settings)
    publish(pod, "public/", "Read", "Append")
    assert DENIED in mine.ends("push", url, "main").refused_with
    publish(pod, "public/", "Read", "Write")
    mine("push", "--quiet", url, "main")
    assert git.cloned(url, "clone").tip() == work.tip()


def test_a_container_is_not_created_where_a_document_exists(
    owner: Git, pod: Pod, work: Git
) -> None:
    with pod.owner() as client:
        client.put(f"{pod.root}private/doc", "a document")
        mine = Git(work.place, owner.settings)
        for name in ("private/doc", "private/doc/below"):
            assert "409" in mine.ends("push", url_of(pod, name), "main").refused_with
        assert client.get(f"{pod.root}private/doc").text == "a document"
        assert client.get(f"{pod.root}private/doc/").status in {301, 404}


@pytest.mark.parametrize("target", [FETCH, PUSH])
@pytest.mark.parametrize("place", ["private/", "private/missing/", "missing/private/"])
def test_a_refusal_reveals_nothing_about_what_is_there(
    pod: Pod, server: ServerProcess, target: str, place: str
) -> None:
    """W-60, W-64."""
    stranger = {"Authorization": f"Bearer {create_pod(server).token}"}
    known = f"{pod.root}private/{target}"
    asked = f"{pod.root}{place}{target}"
    for fields, status in (({}, 401), (stranger, 403)):
        answers = [server.get(each, fields) for each in (known, asked)]
        assert [answer.status for answer in answers] == [status, status]
        assert answers[0].body == answers[1].body
        assert {**answers[0].headers, "date": ""} == {**answers[1].headers, "date": ""}


def test_an_invalid_credential_is_refused_where_the_public_may_read(
    git: Git, owner: Git, pod: Pod, work: Git
) -> None:
    """A-5."""
    url = url_of(pod, "public/notes")
    pushed(work, url, by=owner)
    wrong = git.with_token("not.valid")
    assert NO_CREDENTIAL in wrong.ends("clone", url, "clone").refused_with


@pytest.mark.feature("nostr")
def test_only_git_gets_a_challenge_for_a_password(pod: Pod, server: ServerProcess) -> None:
    """A-7, A-8: a Basic challenge elsewhere makes browsers ask people for a password."""
    place = f"{pod.root}private/"
    schemes = ["DPoP", "Bearer", "Nostr"]
    for target in (place, f"{place}info/refs", f"{place}info/refs?service=git", f"{place}x"):
        assert challenges(server, target) == schemes
    assert challenges(server, f"{place}git-receive-pack") == schemes
    assert (
        challenges(server, f"{place}git-receive-pack", "PUT", **{"Content-Type": "a/b"}) == schemes
    )
    for target in (f"{place}{FETCH}", f"{place}{PUSH}", f"{place}missing/{FETCH}"):
        assert challenges(server, target) == [*schemes, "Basic"]
    for target in (f"{place}git-receive-pack", f"{place}git-upload-pack"):
        assert challenges(server, target, "POST") == [*schemes, "Basic"]
    wrong = {"Authorization": "Bearer not.valid"}
    assert challenges(server, f"{place}{FETCH}", **wrong) == [*schemes, "Basic"]
    assert challenges(server, place, **wrong) == schemes


def test_bodies_and_queries_of_other_kinds_are_not_for_git(pod: Pod) -> None:
    place = f"{pod.root}private/"
    with pod.owner() as client:
        typed = {"Content-Type": "application/x-git-upload-pack-request"}
        asked: list[tuple[str, str, dict[str, str], int]] = [
            ("POST", "git-upload-pack", {"Content-Type": "text/plain"}, 415),
            ("POST", "git-upload-pack", {}, 415),
            ("POST", "git-receive-pack", typed, 415),
            ("POST", "git-upload-pack", {**typed, "Content-Encoding": "br"}, 415),
            ("POST", "git-upload-pack", {**typed, "Git-Protocol": "version=2\x01"}, 400),
            ("GET", FETCH, {"Git-Protocol": "a b"}, 400),
            ("GET", FETCH, {"Git-Protocol": "version=2:" + "x" * 100}, 400),
            ("GET", FETCH, {"Git-Protocol": "version=2"}, 200),
        ]
        for method, target, fields, status in asked:
            body = b"0000" if method == "POST" else None
            assert client.request(method, f"{place}{target}", body, fields).status == status


# --- what stays a resource ----------------------------------------------------------------------


def test_resources_of_those_names_stay_resources(owner: Git, pod: Pod, work: Git) -> None:
    place = f"{pod.root}private/notes/"
    pushed(work, url_of(pod, "private/notes"), by=owner)
    with pod.owner() as client:
        for name in ("info/refs", "git-upload-pack", "git-receive-pack", "HEAD", "config"):
            assert client.get(f"{place}{name}").status == 404
            assert client.put(f"{place}{name}", name).status == 201
            assert client.get(f"{place}{name}").text == name
        for query in (
            "",
            "?service=git",
            "?service=git-upload-pack&x",
            "?x&service=git-upload-pack",
        ):
            assert client.get(f"{place}info/refs{query}").text == "info/refs"
        assert client.request("HEAD", f"{place}{FETCH}").headers["content-type"] == "text/plain"
        assert client.delete(f"{place}info/refs").status == 204
    clone = owner.cloned(url_of(pod, "private/notes"), "clone")
    assert clone.tip() == work.tip()


def test_the_files_of_a_repository_are_not_served(owner: Git, pod: Pod, work: Git) -> None:
    """Neither by the dumb protocol nor by any path."""
    place = f"{pod.root}private/notes/"
    pushed(work, url_of(pod, "private/notes"), by=owner)
    [repository] = [
        path
        for path in repositories(pod.server.root)
        if (path / "description").read_text().strip() == place
    ]
    with pod.owner() as client:
        for name in (
            "HEAD",
            "info/refs",
            "objects/info/packs",
            "config",
            ".git/HEAD",
            "description",
        ):
            assert client.get(f"{place}{name}").status == 404
        assert client.members(place) == set()
        assert client.get(f"{pod.root}.git/").status == 404
        below = f"{repository.name}/HEAD"
        for target in (
            f"/git/{below}",
            f"/{below}",
            f"{pod.root}..%2fgit/{below}",
            f"/.git/{below}",
        ):
            assert client.get(target).status in {400, 403, 404}


@pytest.mark.parametrize(
    "climb",
    ["../{0}/private", "..%2f{0}%2fprivate", "%2e%2e/{0}/private", "%2e%2e%2f{0}/private",
     "x/../../{0}/private", "..%5c{0}%5cprivate", "//{0}/private"],
)  # fmt: skip
def test_no_path_leads_to_the_repository_of_somebody_else(
    pod: Pod, server: ServerProcess, owner: Git, work: Git, climb: str
) -> None:
    pushed(work, url_of(pod, "private"), by=owner)
    stranger = create_pod(server)
    with stranger.owner() as client:
        for service in (FETCH, PUSH):
            answer = client.get(f"{stranger.root}{climb.format(pod.name)}/{service}")
            assert answer.status in {400, 403, 404} or b"capabilities^{}" in answer.body
            assert work.tip().encode() not in answer.body


@pytest.mark.parametrize(
    "place", ["/idp/", "/.well-known/", "/.pods/", "{}.well-known/solid/", "/"]
)
def test_where_no_resource_can_be_there_is_no_repository(
    pod: Pod, server: ServerProcess, place: str
) -> None:
    """A-13."""
    with pod.owner() as client:
        for somebody in (client, server):
            answer = somebody.request("GET", f"{place.format(pod.root)}{FETCH}")
            assert answer.status in {401, 403, 404} if place == "/" else answer.status == 404
            assert "git" not in answer.headers["content-type"]


ordinary = server_fixture()
"""A server that does not know git."""


@pytest.mark.feature("nostr")
def test_without_the_setting_all_of_this_is_about_resources(
    ordinary: ServerProcess, git: Git, work: Git
) -> None:
    pod = create_pod(ordinary)
    mine = Git(work.place, git.with_token(pod.token).settings)
    place = f"{pod.root}private/"
    assert "not found" in mine.ends("push", url_of(pod, "private"), "main").refused_with
    assert challenges(ordinary, f"{place}{FETCH}") == ["DPoP", "Bearer", "Nostr"]
    with pod.owner() as client:
        assert client.put(f"{place}info/refs", "mine").status == 201
        assert client.get(f"{place}{FETCH}").text == "mine"
        typed = {"Content-Type": "application/x-git-receive-pack-request"}
        for name, status in (("git-receive-pack", 404), ("info/refs", 405)):
            assert client.request("POST", f"{place}{name}", b"0000", typed).status == status
    assert not (ordinary.root / "git").exists()


def test_the_start_is_refused_where_git_is_not_installed(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    server = ServerProcess(tmp_path / "root", ("--git",), environment=environment, port=0)
    server.launch()
    assert server.wait() == 2
    assert "--git requires git, which is not installed" in server.errors
