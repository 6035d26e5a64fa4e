"""Git with a Nostr key: a helper signs one event, which git sends as a password (A-146, A-147)."""

from __future__ import annotations

import http.client
import random
import time
from contextlib import closing

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import NOTHING, Git, push_of, url_of
from tests.support.nostr import NostrKey, basic, nostr
from tests.support.server import ServerProcess, running_server

pytestmark = [pytest.mark.feature("nostr"), pytest.mark.needs("git")]

KEY = NostrKey.of(11)
FETCH = "info/refs?service=git-upload-pack"
PUSH = "info/refs?service=git-receive-pack"
MIB = 1024 * 1024


def let_in(pod: Pod, name: str, key: NostrKey) -> str:
    """Make a container whose rules name the key beside the owner; its path."""
    place = f"{pod.root}{name}/"
    url = f"{pod.server.base_url}{place}"
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"<#all> a acl:Authorization; acl:agent <{pod.web_id}>, <{key.did}>;\n"
        f"  acl:accessTo <{url}>; acl:default <{url}>;\n"
        "  acl:mode acl:Read, acl:Write, acl:Control.\n"
    )
    with pod.owner() as owner:
        link = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
        assert owner.request("PUT", place, None, {"Link": link}).status == 201
        assert owner.put(f"{place}.acl", rules, "text/turtle").status == 201
    return place


def status(
    server: ServerProcess,
    target: str,
    fields: dict[str, str],
    *,
    method: str = "GET",
    source: str = "127.0.0.1",
) -> int:
    """How a request from an address of this machine is answered."""
    assert server.port is not None
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=60, source_address=(source, 0)
    )
    kind = {"Content-Type": f"application/x-{target.rpartition('/')[2]}-request"}
    headers = {**fields, **(kind if method == "POST" else {})}
    with closing(connection):
        connection.request(
            method,
            target,
            b"0000" if method in {"POST", "PUT"} else None,
            {"Host": f"localhost:{server.port}", **headers},
        )
        return connection.getresponse().status


@pytest.mark.parametrize("use_path", [True, False])
def test_a_helper_signs_for_clone_fetch_and_push(git: Git, pod: Pod, use_path: bool) -> None:
    """The event names the repository, or the server where git does not tell the path."""
    let_in(pod, "notes", KEY)
    url = url_of(pod, "notes")
    signing = git.with_helper(KEY, use_path=use_path)
    work = signing.new("work")
    work.commit("a", "1")
    work("push", "--quiet", url, "main")
    clone = signing.cloned(url, "clone")
    assert clone.tip() == work.tip()
    work.commit("large", random.Random(5).randbytes(3 * MIB))
    work("push", "--quiet", url, "main")
    clone("pull", "--quiet")
    assert clone.tip() == work.tip()


def test_a_key_that_no_rule_names_is_refused(git: Git, pod: Pod) -> None:
    let_in(pod, "notes", KEY)
    stranger = git.with_helper(NostrKey.of(12), use_path=True)
    refused = stranger.ends("clone", url_of(pod, "notes"), "clone").refused_with
    assert "The requested URL returned error: 403" in refused


def test_one_event_is_for_one_address_and_one_repository(pod: Pod) -> None:
    """A-147."""
    server = pod.server
    mine, other = let_in(pod, "notes", KEY), let_in(pod, "other", KEY)
    fields = basic(KEY.event("*", f"{server.base_url}/", int(time.time())))
    sequence = [("GET", PUSH), ("POST", "git-receive-pack"), ("POST", "git-receive-pack")]
    for method, target in sequence:
        assert status(server, f"{mine}{target}", fields, method=method) == 200
    for _ in range(2):
        assert status(server, f"{mine}{PUSH}", fields, source="127.0.0.2") == 401
        assert status(server, f"{other}{PUSH}", fields) == 401
        assert status(server, mine, fields) == 401
    assert status(server, f"{mine}{PUSH}", fields) == 200


def test_an_event_is_valid_within_its_prefix_only(pod: Pod) -> None:
    """A-146."""
    server = pod.server
    place = let_in(pod, "notes", KEY)
    now_s = int(time.time())
    for prefix, expected in (
        (place, 200),
        (place.rstrip("/"), 200),
        (pod.root, 200),
        (place[:-2], 401),
        (f"{place}info/", 200),
        (f"{place}below/", 401),
        ("/elsewhere/", 401),
    ):
        event = KEY.event("*", f"{server.base_url}{prefix}", now_s)
        assert status(server, f"{place}{FETCH}", basic(event)) == expected, prefix
    foreign = KEY.event("*", f"http://other.example{place}", now_s)
    assert status(server, f"{place}{FETCH}", basic(foreign)) == 401


def test_an_event_for_any_method_changes_no_resource(pod: Pod) -> None:
    """A-146: not even where git could push."""
    server = pod.server
    place = let_in(pod, "notes", KEY)
    now_s = int(time.time())
    for method, target in (
        ("PUT", f"{place}x"),
        ("DELETE", place),
        ("PUT", f"{place}git-receive-pack"),
        ("POST", place),
        ("POST", f"{place}git-receive-pack?x"),
    ):
        event = KEY.event("*", f"{server.base_url}{place}", now_s)
        assert status(server, target, basic(event), method=method) == 401
    assert status(server, place, basic(KEY.event("*", f"{server.base_url}/", now_s))) == 200


def test_by_its_own_scheme_an_event_is_for_one_request_of_git_too(pod: Pod) -> None:
    """A-142, A-147."""
    server = pod.server
    target = f"{let_in(pod, 'notes', KEY)}{FETCH}"
    wide = KEY.event("*", f"{server.base_url}/", int(time.time()))
    assert status(server, target, nostr(wide)) == 401
    exact = KEY.event("GET", f"{server.base_url}{target}", int(time.time()))
    assert [status(server, target, nostr(exact)) for _ in range(2)] == [200, 401]


def test_content_that_was_signed_is_what_git_takes(pod: Pod) -> None:
    """A-145."""
    server = pod.server
    target = f"{let_in(pod, 'notes', KEY)}git-receive-pack"
    for signed, expected in ((b"0000", 200), (b"0001", 401)):
        event = KEY.event("POST", f"{server.base_url}{target}", int(time.time()), payload=signed)
        assert status(server, target, nostr(event), method="POST") == expected


def test_a_push_that_was_not_signed_changes_nothing_although_it_is_whole(
    git: Git, pod: Pod
) -> None:
    """A-145: git would act on a push before its hash is known to be another."""
    server = pod.server
    place = let_in(pod, "notes", KEY)
    work = git.with_helper(KEY, use_path=True).new("work")
    work.commit("a", "1")
    content = push_of(work, old=NOTHING)
    url = f"{server.base_url}{place}git-receive-pack"
    kind = {"Content-Type": "application/x-git-receive-pack-request"}
    for signed, expected in ((b"another", 401), (content, 200)):
        event = KEY.event("POST", url, int(time.time()), payload=signed)
        assert work.ends("ls-remote", "--exit-code", url_of(pod, "notes")).code == 2
        fields = {**nostr(event), **kind}
        answer = server.request("POST", f"{place}git-receive-pack", content, fields)
        assert answer.status == expected
    assert work.branches(url_of(pod, "notes"))["refs/heads/main"] == work.tip()


def test_nothing_is_deleted_by_content_that_was_not_signed(git: Git, pod: Pod) -> None:
    """A-145: git needs no more than the first part of this, and is not given it."""
    server = pod.server
    place = let_in(pod, "notes", KEY)
    url = url_of(pod, "notes")
    work = git.with_helper(KEY, use_path=True).new("work")
    work.commit("a", "1")
    work("push", "--quiet", url, "main")
    command = f"{work.tip()} {NOTHING} refs/heads/main\0 report-status delete-refs".encode()
    deletion = b"%04x%s0000" % (len(command) + 4, command)
    target = f"{place}git-receive-pack"
    event = KEY.event(
        "POST", f"{server.base_url}{target}", int(time.time()), payload=b"something else"
    )
    kind = {"Content-Type": "application/x-git-receive-pack-request"}
    with closing(server.connect()) as connection:
        connection.request(
            *("POST", target, iter([deletion, bytes(MIB), bytes(MIB)]), {**nostr(event), **kind}),
            encode_chunked=True,
        )
        assert connection.getresponse().status == 401
    assert work.branches(url)["refs/heads/main"] == work.tip()


def test_without_basic_there_is_no_challenge_for_a_password(
    git: Git, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A-146: offered again and again, an event that is never accepted would be."""
    root = tmp_path_factory.mktemp("off") / "root"
    with running_server(ServerProcess(root, ("--git", "--nostr-basic", "off"))) as server:
        pod = create_pod(server)
        let_in(pod, "notes", KEY)
        target = f"{pod.root}notes/{FETCH}"
        with closing(server.connect()) as connection:
            connection.request("GET", target)
            offered = connection.getresponse().headers.get_all("www-authenticate") or []
        assert [each.partition(" ")[0] for each in offered] == ["DPoP", "Bearer", "Nostr"]
        event = KEY.event("GET", f"{server.base_url}{target}", int(time.time()))
        assert status(server, target, basic(event)) == 401
