"""Clone, fetch and push with an ordinary git client."""

from __future__ import annotations

import random

import pytest

from tests.support.client import Pod
from tests.support.git import Git, url_of

pytestmark = pytest.mark.needs("git")

MIB = 1024 * 1024


@pytest.fixture
def url(pod: Pod) -> str:
    return url_of(pod, "private/notes")


@pytest.fixture
def work(owner: Git, url: str) -> Git:
    """A repository with one commit that was pushed."""
    made = owner.new("work")
    made("remote", "add", "origin", url)
    made.commit("a", "1")
    made("push", "--quiet", "--set-upstream", "origin", "main")
    return made


def test_what_was_pushed_is_cloned(owner: Git, work: Git, url: str) -> None:
    clone = owner.cloned(url, "clone")
    assert clone.tip() == work.tip()
    assert (clone.place / "a").read_text() == "1"
    clone("fsck", "--full", "--strict")


def test_a_container_without_a_repository_is_cloned_as_an_empty_one(owner: Git, pod: Pod) -> None:
    clone = owner.cloned(url_of(pod, "private/"), "clone")
    clone.commit("a", "1")
    clone("push", "--quiet", "origin", "HEAD")
    assert owner.cloned(url_of(pod, "private/"), "again").tip() == clone.tip()


def test_commits_travel_both_ways(owner: Git, work: Git, url: str) -> None:
    clone = owner.cloned(url, "clone")
    pushed = clone.commit("b", "2")
    clone("push", "--quiet")
    assert work("pull", "--quiet", "--ff-only") == ""
    assert work.tip() == pushed
    fetched = work.commit("c", "3")
    work("push", "--quiet")
    clone("fetch", "--quiet")
    assert clone.tip("origin/main") == fetched


def test_a_push_that_would_lose_commits_is_refused_unless_forced(work: Git, owner: Git) -> None:
    before = work.tip()
    work("commit", "--quiet", "--amend", "--message", "Another history")
    assert "rejected" in work.ends("push").refused_with
    assert owner.branches(work("remote", "get-url", "origin"))["refs/heads/main"] == before
    work("push", "--quiet", "--force-with-lease")
    assert owner.branches(work("remote", "get-url", "origin"))["refs/heads/main"] == work.tip()


def test_branches_and_tags_are_made_and_deleted(owner: Git, work: Git, url: str) -> None:
    work("branch", "topic")
    work("tag", "--annotate", "v1", "--message", "The first")
    work("push", "--quiet", "origin", "topic", "v1")
    assert {"refs/heads/topic", "refs/tags/v1"} <= owner.branches(url).keys()
    work("push", "--quiet", "origin", "--delete", "topic", "v1")
    assert owner.branches(url).keys() == {"HEAD", "refs/heads/main"}


def test_the_first_branch_that_is_pushed_is_checked_out_by_clones(owner: Git, url: str) -> None:
    work = owner.new("work", branch="trunk")
    work.commit("a", "1")
    work("push", "--quiet", url, "trunk")
    assert owner.cloned(url, "clone")("branch", "--show-current") == "trunk"


def test_of_several_first_branches_main_is_checked_out(owner: Git, url: str) -> None:
    work = owner.new("work")
    work.commit("a", "1")
    work("branch", "apart")
    work("push", "--quiet", url, "--all")
    assert owner.cloned(url, "clone")("branch", "--show-current") == "main"


def test_deleting_the_first_branch_makes_another_one_the_first(
    owner: Git, work: Git, url: str
) -> None:
    work("push", "--quiet", "origin", "main:trunk")
    work("push", "--quiet", "origin", "--delete", "main")
    assert owner.cloned(url, "clone")("branch", "--show-current") == "trunk"


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_every_version_of_the_protocol_is_spoken(
    owner: Git, work: Git, url: str, version: str
) -> None:
    old = Git(owner.place, (*owner.settings, f"protocol.version={version}"))
    clone = old.cloned(url, "clone")
    clone.commit("b", "2")
    clone("push", "--quiet")
    work("pull", "--quiet")
    assert work.tip() == clone.tip()
    spoken = owner.traced("GIT_TRACE_PACKET", f"protocol.version={version}", "ls-remote", url)
    assert ("git< version 2" in spoken) is (version == "2")


def test_part_of_the_history_and_part_of_the_content_are_cloned(
    owner: Git, work: Git, url: str
) -> None:
    for number in range(4):
        work.commit("a", f"{number}" * 1000)
    work("push", "--quiet")
    shallow = owner.cloned(url, "shallow", "--depth=2")
    assert shallow("rev-list", "--count", "HEAD") == "2"
    shallow("fetch", "--quiet", "--unshallow")
    assert shallow("rev-list", "--count", "HEAD") == "5"
    partial = owner.cloned(url, "partial", "--filter=blob:none", "--no-checkout")
    missing = partial("rev-list", "--objects", "--all", "--missing=print").count("?")
    assert missing == 5
    partial("checkout", "--quiet", "main")
    assert (partial.place / "a").read_text() == "3" * 1000


def test_a_large_push_arrives_in_chunks(owner: Git, url: str) -> None:
    """Larger than http.postBuffer, so that git asks first, with four bytes, whether it may."""
    work = owner.new("work")
    content = random.Random(7).randbytes(5 * MIB)
    work.commit("large", content)
    work("push", "--quiet", url, "main")
    clone = owner.cloned(url, "clone")
    assert (clone.place / "large").read_bytes() == content


@pytest.mark.parametrize("version", ["0", "2"])
def test_a_long_negotiation_is_compressed(owner: Git, work: Git, url: str, version: str) -> None:
    """Newer commits that the server does not have are offered first, many in a request."""
    clone = owner.cloned(url, "clone")
    stream = b"".join(
        b"commit refs/heads/own%d\ncommitter A <a@example.org> %d +0000\ndata 1\nx\n\n"
        % (number, 2_000_000_000 + number)
        for number in range(2000)
    )
    clone("fast-import", "--quiet", input_bytes=stream)
    work.commit("b", "2")
    work("push", "--quiet")
    spoken = clone.traced("GIT_TRACE_CURL", f"protocol.version={version}", "fetch", "origin")
    assert "Send header: Content-Encoding: gzip" in spoken
    assert clone.tip("origin/main") == work.tip()


def test_a_history_of_many_commits_survives_the_round_trip(owner: Git, url: str) -> None:
    work = owner.new("work")
    for number in range(30):
        work.commit(f"d{number % 7}", f"{number}\n" * number)
    work("push", "--quiet", url, "main")
    clone = owner.cloned(url, "clone")
    assert clone("log", "--format=%H %T") == work("log", "--format=%H %T")


def test_nothing_to_push_is_not_an_error(work: Git) -> None:
    assert "up-to-date" in work.ends("push").errors
    assert work.ends("push").code == 0


def test_several_containers_of_one_pod_are_repositories_apart(owner: Git, pod: Pod) -> None:
    places = ["", "private/", "private/a/", "private/a/b/", "private/a b/", "private/é.git/"]
    tips = {}
    for number, place in enumerate(places):
        work = owner.new(f"work{number}")
        tips[place] = work.commit("a", place)
        work("push", "--quiet", url_of(pod, place.replace(" ", "%20")), "main")
    for number, place in enumerate(places):
        clone = owner.cloned(url_of(pod, place.replace(" ", "%20")), f"clone{number}")
        assert clone.tip() == tips[place]
