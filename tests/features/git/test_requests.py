"""Which requests are git's: exactly those of the smart protocol, and no others."""

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.features.git.protocol import GitRequest, Service, git_request

UPLOAD, RECEIVE = Service.UPLOAD_PACK, Service.RECEIVE_PACK


@pytest.mark.parametrize(
    ("method", "path", "query", "service", "container"),
    [
        ("GET", "/a/info/refs", "service=git-upload-pack", UPLOAD, "/a/"),
        ("GET", "/a/b.git/info/refs", "service=git-receive-pack", RECEIVE, "/a/b.git/"),
        ("GET", "/a/info/info/refs", "service=git-upload-pack", UPLOAD, "/a/info/"),
        ("POST", "/a/git-upload-pack", "", UPLOAD, "/a/"),
        ("POST", "/a/b/git-receive-pack", "", RECEIVE, "/a/b/"),
        ("POST", "/a/git-receive-pack/git-upload-pack", "", UPLOAD, "/a/git-receive-pack/"),
    ],
)
def test_the_requests_of_the_smart_protocol(
    method: str, path: str, query: str, service: Service, container: str
) -> None:
    asked = git_request(method, ResourcePath(path), query.encode())
    advertises = method == "GET"
    assert asked == GitRequest(ResourcePath(container), service, advertises=advertises)
    assert f"{asked.container}{asked.path_in_repository}" == path
    assert asked.query == query
    assert asked.is_push is (service is RECEIVE)


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("HEAD", "/a/info/refs", "service=git-upload-pack"),
        ("POST", "/a/info/refs", "service=git-upload-pack"),
        ("PUT", "/a/git-upload-pack", ""),
        ("GET", "/a/git-upload-pack", ""),
        ("GET", "/a/git-upload-pack", "service=git-upload-pack"),
        ("GET", "/a/info/refs", ""),
        ("GET", "/a/info/refs", "service=git-upload-archive"),
        ("GET", "/a/info/refs", "service=git-upload-pack&a=b"),
        ("GET", "/a/info/refs", "service=git%2Dupload-pack"),
        ("GET", "/a/info/refs/", "service=git-upload-pack"),
        ("GET", "/a/xinfo/refs", "service=git-upload-pack"),
        ("GET", "/a/info%2Frefs", "service=git-upload-pack"),
        ("GET", "/a/HEAD", ""),
        ("GET", "/a/objects/info/packs", ""),
        ("GET", "/info/refs", "service=git-upload-pack"),
        ("POST", "/git-upload-pack", ""),
        ("POST", "/a/xgit-upload-pack", ""),
        ("POST", "/a/git-upload-pack/", ""),
        ("POST", "/a/git-upload-pack", "x"),
        ("POST", "/a/", ""),
    ],
)
def test_everything_else_is_about_resources(method: str, path: str, query: str) -> None:
    assert git_request(method, ResourcePath(path), query.encode()) is None
