"""Uploads on the pages: by a form without scripts, and by the script, in the person's session."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from podstead.config import Settings
from podstead.web.files.uploads import numbered
from tests.support import tus
from tests.support.application import Server, Start, acl_turtle
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.features import LEFT_OUT
from tests.support.multipart import File, encode_form
from tests.support.pod_pages import csrf_token_of, sign_in_by_token
from tests.support.rdf import TURTLE

FOLDER = "/alice/private/"
FORM = f"/.pages/upload{FOLDER}"
TEXT = "text/plain"
LARGE = os.urandom(200_000)


async def upload(
    browser: Browser,
    files: Sequence[File],
    *,
    form: str = FORM,
    **chosen: str,
) -> Page:
    """Send the form as a browser without scripts does."""
    page = await browser.get(form)
    assert page.status == 200, page.text
    fields = {**page.form(form).fields, "taken": "keep", **chosen}
    content_type, body = encode_form(list(fields.items()), files)
    headers = {
        "Sec-Fetch-Site": "same-origin",
        "Origin": browser.base_url,
        "Content-Type": content_type,
    }
    return await browser.go("POST", form, headers=headers, body=body)


def results(page: Page) -> list[tuple[str, str]]:
    """What the page says became of each file."""
    found = re.findall(r'<td class="name">(.*?)</td>\s*<td>\s*(.*?)\s*</td>', page.text, re.DOTALL)
    return [(html.unescape(name), html.unescape(said)) for name, said in found]


async def content(server: Server, target: str) -> bytes:
    answer = await server.alice.get(target)
    assert answer.status == 200, target
    if answer.file_path is not None:
        return Path(answer.file_path).read_bytes()  # noqa: ASYNC240
    return answer.body


# --- without scripts --------------------------------------------------------------------------


async def test_the_page_has_the_script_if_something_answers_it(alice: Browser) -> None:
    page = await alice.get(FORM)
    assert ("/uploads.js" in page.text) is ("uploads" not in LEFT_OUT)
    assert ("/uploads.css" in page.text) is ("uploads" not in LEFT_OUT)


async def test_files_are_stored_under_their_names_and_types(server: Server, alice: Browser) -> None:
    page = await upload(
        alice,
        [
            ("a.txt", b"one", TEXT),
            ("film \N{SNOWMAN}.mp4", LARGE, "video/mp4"),
            ("data.ttl", b"<> a <#A>.", "application/octet-stream"),
            ("empty.bin", b"", "application/octet-stream"),
        ],
    )
    assert page.path == f"/.pages/files{FOLDER}"
    assert "Uploaded files: 4." in page.text
    assert await content(server, f"{FOLDER}a.txt") == b"one"
    assert await content(server, f"{FOLDER}film%20%E2%98%83.mp4") == LARGE
    assert await content(server, f"{FOLDER}empty.bin") == b""
    answer = await server.alice.get(f"{FOLDER}data.ttl")
    assert answer.header("content-type") == TURTLE


async def test_a_folder_keeps_its_structure(server: Server, alice: Browser) -> None:
    await upload(alice, [("photos/2026/a b.txt", b"one", TEXT)])
    assert await content(server, f"{FOLDER}photos/2026/a%20b.txt") == b"one"


@pytest.mark.parametrize(
    ("choice", "stored", "beside", "said"),
    [
        ("keep", b"old", b"new", "Uploaded as “a (2).txt”, because the name is taken"),
        ("skip", b"old", None, "Skipped: the name is taken"),
        ("replace", b"new", None, None),
    ],
)
async def test_what_happens_to_names_that_are_taken_is_chosen_once(
    server: Server,
    alice: Browser,
    choice: str,
    stored: bytes,
    beside: bytes | None,
    said: str | None,
) -> None:
    await server.alice.put(f"{FOLDER}a.txt", b"old", TEXT)
    page = await upload(alice, [("a.txt", b"new", TEXT), ("b.txt", b"more", TEXT)], taken=choice)
    assert await content(server, f"{FOLDER}a.txt") == stored
    assert await content(server, f"{FOLDER}b.txt") == b"more"
    answer = await server.alice.get(f"{FOLDER}a%20(2).txt")
    assert (answer.status == 200) == (beside is not None)
    if said is None:
        assert page.path == f"/.pages/files{FOLDER}"
    else:
        assert results(page) == [("a.txt", said), ("b.txt", "Uploaded")]


@pytest.mark.parametrize(
    ("choice", "stored", "beside", "said"),
    [
        ("keep", b"old", LARGE, "Uploaded as “a (2).txt”, because the name is taken"),
        ("skip", b"old", None, "Skipped: the name is taken"),
        ("replace", LARGE, None, None),
    ],
)
async def test_a_page_asks_once_about_names_that_are_taken(
    server: Server,
    alice: Browser,
    settings: Settings,
    choice: str,
    stored: bytes,
    beside: bytes | None,
    said: str | None,
) -> None:
    """The files have been sent then, and need not be sent again."""
    for name in ("a.txt", "b.txt", "empty"):
        await server.alice.put(FOLDER + name, b"old", TEXT)
    page = await upload(
        alice,
        [
            ("a.txt", LARGE, TEXT),
            ("b.txt", b"2", TEXT),
            ("c.txt", b"3", TEXT),
            ("empty", b"", TEXT),
        ],
        taken="ask",
    )
    waiting = "Waits for your choice"
    assert [each for _, each in results(page)] == [waiting, waiting, "Uploaded", waiting]
    assert await content(server, f"{FOLDER}a.txt") == b"old"
    asked = next(form for form in page.forms if "held-1" in form.fields)
    page = await alice.post(asked.action, {**asked.fields, "taken": choice})
    assert await content(server, f"{FOLDER}a.txt") == stored
    answer = await server.alice.get(f"{FOLDER}a%20(2).txt")
    assert (answer.status == 200) == (beside is not None)
    if beside is not None:
        assert await content(server, f"{FOLDER}a%20(2).txt") == beside
        assert await content(server, f"{FOLDER}empty%20(2)") == b""
    if said is None:
        assert page.path == f"/.pages/files{FOLDER}"
        assert await content(server, f"{FOLDER}empty") == b""
    else:
        assert results(page)[0] == ("a.txt", said)
    assert not list((settings.root / "blobs/uploads").iterdir())
    # Sent again, it changes nothing.
    page = await alice.post(asked.action, {**asked.fields, "taken": "replace"})
    assert await content(server, f"{FOLDER}a.txt") == stored


async def test_names_that_are_taken_while_the_page_asks_are_numbered_further(
    server: Server, alice: Browser
) -> None:
    await server.alice.put(f"{FOLDER}a.txt", b"old", TEXT)
    page = await upload(alice, [("a.txt", b"1", TEXT), ("a.txt", b"2", TEXT)], taken="ask")
    asked = next(form for form in page.forms if "held-1" in form.fields)
    await alice.post(asked.action, {**asked.fields, "taken": "keep"})
    assert await content(server, f"{FOLDER}a%20(2).txt") == b"1"
    assert await content(server, f"{FOLDER}a%20(3).txt") == b"2"


async def test_held_files_belong_to_the_person(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await server.alice.put(f"{FOLDER}a.txt", b"old", TEXT)
    page = await upload(alice, [("a.txt", b"new", TEXT)], taken="ask")
    asked = next(form for form in page.forms if "held-1" in form.fields)
    token = (await bob.get("/.pages/files/bob/")).form("/.pages/sign-out").fields["csrf_token"]
    stolen = {**asked.fields, "taken": "keep", "csrf_token": token}
    page = await bob.post("/.pages/upload/bob/private/", stolen)
    assert "There is no such upload" in results(page)[0][1]
    page = await alice.post(asked.action, {**asked.fields, "taken": "replace"})
    assert await content(server, f"{FOLDER}a.txt") == b"new"


async def test_files_that_are_held_together_fit_into_the_quota(start: Start) -> None:
    server = await start(quota_bytes=400_000)
    alice = await sign_in_by_token(server, server.alice)
    await upload(alice, [("a.txt", b"x", TEXT), ("b.txt", b"x", TEXT)])
    page = await upload(alice, [("a.txt", LARGE, TEXT), ("b.txt", LARGE, TEXT)], taken="ask")
    asked = next(form for form in page.forms if "held-1" in form.fields)
    assert "held-2" not in asked.fields


async def test_what_has_no_room_is_said_plainly(start: Start) -> None:
    server = await start(quota_bytes=400_000, max_body_bytes=300_000)
    alice = await sign_in_by_token(server, server.alice)
    page = await upload(alice, [("a.bin", LARGE, TEXT), ("b.bin", b"x" * 250_000, TEXT)])
    assert results(page)[0] == ("a.bin", "Uploaded")
    said = r"There is no room for this: it needs [\d.]+ kB, and the pod already uses [\d.]+ kB of"
    assert re.search(f"{said} its 400 kB", results(page)[1][1])
    assert re.search(r"[\d.]+ kB of 400 kB used \(5\d %\)", page.text)
    page = await upload(alice, [("c.bin", b"x" * 300_001, TEXT)])
    assert "larger than 300 kB" in results(page)[0][1]
    assert "What takes the space" not in page.text

    page = await alice.get(f"/.pages/files{FOLDER}")
    assert "400 kB used" not in page.text
    await upload(alice, [("d.bin", b"x" * 160_000, TEXT)])
    page = await alice.get(f"/.pages/files{FOLDER}")
    assert "This pod is nearly full" in page.text
    bob = await sign_in_by_token(server, server.bob)
    await server.alice.put(
        f"{FOLDER}.acl",
        acl_turtle(FOLDER, (f"acl:agent <{server.bob_web_id}>", "Read Write")),
        TURTLE,
    )
    page = await bob.get(f"/.pages/files{FOLDER}")
    assert page.status == 200
    assert "nearly full" not in page.text


@pytest.mark.parametrize("evil", ["../../bob/private/x", "x.acl", "/etc/passwd", "a\nb"])
async def test_a_held_file_cannot_be_placed_elsewhere(
    server: Server, alice: Browser, evil: str
) -> None:
    await server.alice.put(f"{FOLDER}a.txt", b"old", TEXT)
    page = await upload(alice, [("a.txt", b"new", TEXT)], taken="ask")
    asked = next(form for form in page.forms if "held-1" in form.fields)
    held = asked.fields["held-1"].split("&")[0]
    for choice in ("keep", "replace"):
        field = f"{held}&{quote(evil, safe='')}&{quote(evil, safe='')}"
        changed = {**asked.fields, "held-1": field, "taken": choice}
        page = await alice.post(asked.action, changed)
        assert "Failed" in results(page)[0][1]


async def test_two_files_of_one_name_are_both_kept(server: Server, alice: Browser) -> None:
    await upload(alice, [("a.txt", b"1", TEXT), ("a.txt", b"2", TEXT), ("a.txt", b"3", TEXT)])
    for name, stored in [("a.txt", b"1"), ("a%20(2).txt", b"2"), ("a%20(3).txt", b"3")]:
        assert await content(server, FOLDER + name) == stored


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("a.txt", "a (2).txt"),
        ("a (2).txt", "a (3).txt"),
        ("a (99).tar.gz", "a (99).tar (2).gz"),
        ("a", "a (2)"),
        (".profile", ".profile (2)"),
        ("x.y/a.b", "x.y/a (2).b"),
        ("(2)", "(2) (2)"),
    ],
)
def test_the_next_name(name: str, following: str) -> None:
    assert numbered(name) == following


async def test_one_file_that_is_refused_does_not_hold_up_the_others(
    server: Server, alice: Browser
) -> None:
    page = await upload(
        alice,
        [
            ("bad.ttl", b"<a> <", TURTLE),
            ("good.txt", b"one", TEXT),
            ("x.acl", b"<> a <#A>.", TURTLE),
        ],
    )
    said = dict(results(page))
    assert said["good.txt"] == "Uploaded"
    assert said["bad.ttl"].startswith("<strong>Failed</strong>")
    assert "rename the file" in said["x.acl"]
    assert (await server.alice.get(f"{FOLDER}bad.ttl")).status == 404
    assert (await server.alice.get(f"{FOLDER}x.acl")).status == 404


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "/etc/passwd",
        "a//b",
        "a/../../bob/x",
        "a\x00b",
        "a\nb",
        ".acl",
        "a.meta",
        "x/.acl",
        "..",
        ".",
    ],
)
async def test_a_name_that_leads_elsewhere_is_refused(
    server: Server, alice: Browser, name: str, settings: Settings
) -> None:
    before = (await server.alice.get(FOLDER)).body
    page = await upload(alice, [(name, b"evil", TEXT)])
    assert len(results(page)) == 1
    assert "Failed" in results(page)[0][1]
    assert (await server.alice.get(FOLDER)).body == before


async def test_a_name_is_never_html(server: Server, alice: Browser) -> None:
    evil = '<img src=x onerror="alert(1)">.txt'
    await upload(alice, [(evil, b"1", TEXT)])
    page = await upload(alice, [(evil, b"2", TEXT)])
    assert "<img src=x" not in page.text
    assert results(page)[0][0] == evil


async def test_a_form_without_a_file_says_so(alice: Browser) -> None:
    page = await upload(alice, [("", b"", "application/octet-stream")])
    assert "You have not chosen a file." in page.text


async def test_a_form_of_another_session_is_refused(server: Server, alice: Browser) -> None:
    page = await upload(alice, [("a.txt", b"one", TEXT)], csrf_token="0" * 64)
    assert page.status == 403
    assert (await server.alice.get(f"{FOLDER}a.txt")).status == 404


async def test_files_before_the_token_are_refused(server: Server, alice: Browser) -> None:
    page = await alice.get(FORM)
    token = page.form(FORM).fields["csrf_token"]
    content_type, first = encode_form([], [("a.txt", b"one", TEXT)])
    boundary = content_type.partition("boundary=")[2]
    last = f'--{boundary}\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}\r\n'
    body = first.removesuffix(f"--{boundary}--\r\n".encode()) + last.encode()
    body += f"--{boundary}--\r\n".encode()
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": content_type}
    page = await alice.go("POST", FORM, headers=headers, body=body)
    assert page.status == 403
    assert (await server.alice.get(f"{FOLDER}a.txt")).status == 404


async def test_a_form_of_another_site_is_refused(server: Server, alice: Browser) -> None:
    page = await alice.get(FORM)
    content_type, body = encode_form(
        list(page.form(FORM).fields.items()), [("a.txt", b"one", TEXT)]
    )
    headers = {"Sec-Fetch-Site": "cross-site", "Content-Type": content_type}
    page = await alice.go("POST", FORM, headers=headers, body=body)
    assert page.status == 403
    assert (await server.alice.get(f"{FOLDER}a.txt")).status == 404


async def test_who_may_not_write_is_told_for_each_file(server: Server, bob: Browser) -> None:
    await server.alice.put("/alice/open/", None, TURTLE)
    await server.put_acl("/alice/open/", (f"acl:agent <{server.bob_web_id}>", "+Read"))
    page = await upload(bob, [("a.txt", b"one", TEXT)], form="/.pages/upload/alice/open/")
    assert "Access denied" in results(page)[0][1]
    assert (await server.alice.get("/alice/open/a.txt")).status == 404


async def test_nobody_is_sent_to_the_sign_in(browser: Browser) -> None:
    page = await browser.get(FORM)
    assert page.path == "/.pages/sign-in"


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/x-www-form-urlencoded", b"a=b", 403),  # without the token
        ("multipart/form-data", b"a=b", 415),
        ("multipart/form-data; boundary=x", b"no boundary at all", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 413),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb',
            400,
        ),
    ],
)
async def test_a_malformed_form_is_refused(
    alice: Browser, content_type: str, body: bytes, status: int
) -> None:
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": content_type}
    page = await alice.go("POST", FORM, headers=headers, body=body)
    assert page.status == status


async def test_too_large_a_file_is_refused_and_the_next_one_stored(
    start: Start,
) -> None:
    server = await start(max_body_bytes=100_000)
    alice = await sign_in_by_token(server, server.alice)
    page = await upload(alice, [("large.bin", LARGE, TEXT), ("small.txt", b"one", TEXT)])
    assert [said.startswith("<strong>Failed") for _, said in results(page)] == [True, False]
    assert await content(server, f"{FOLDER}small.txt") == b"one"


# --- with the script --------------------------------------------------------------------------


async def session_request(
    browser: Browser, method: str, path: str, body: bytes | None = None, **fields: str
) -> Answer:
    """A request as the script sends it."""
    page = await browser.get(FORM)
    headers = {
        **tus.VERSION,
        "Accept": "application/json",
        "Sec-Fetch-Site": "same-origin",
        "X-CSRF-Token": csrf_token_of(page),
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    return await browser.ask(method, path, headers=headers, body=body)


async def begin(browser: Browser, target: str, size: int, **values: str) -> Answer:
    return await session_request(
        browser,
        "POST",
        "/.pages/uploads/",
        Upload_Length=str(size),
        Upload_Metadata=tus.metadata(target=target, **values),
    )


@pytest.mark.feature("uploads")
async def test_the_script_uploads_for_the_person(server: Server, alice: Browser) -> None:
    answer = await begin(alice, f"{FOLDER}film.mp4", len(LARGE), filetype="video/mp4")
    assert answer.status == 201, answer.text
    path = tus.location(answer)
    assert path.startswith("/.pages/uploads/")
    sent = {"Content_Type": tus.OCTETS, "Upload_Offset": "0"}
    answer = await session_request(alice, "PATCH", path, LARGE[:100_000], **sent)
    assert (answer.status, answer.header("upload-offset")) == (204, "100000")
    answer = await session_request(alice, "HEAD", path)
    assert answer.header("upload-offset") == "100000"
    sent["Upload_Offset"] = "100000"
    answer = await session_request(alice, "PATCH", path, LARGE[100_000:], **sent)
    assert answer.status == 204
    assert await content(server, f"{FOLDER}film.mp4") == LARGE


@pytest.mark.feature("uploads")
async def test_the_session_gives_nobody_elses_uploads(
    server: Server, alice: Browser, bob: Browser
) -> None:
    path = tus.location(await begin(alice, f"{FOLDER}film.mp4", 10))
    assert (await session_request(bob, "HEAD", path)).status == 404
    assert (await session_request(bob, "DELETE", path)).status == 404
    assert (await begin(bob, f"{FOLDER}film.mp4", 10)).status == 403
    assert (await session_request(alice, "DELETE", path)).status == 204
    assert (await session_request(alice, "HEAD", path)).status == 404


@pytest.mark.feature("uploads")
@pytest.mark.parametrize(
    "changed", [{"X_CSRF_Token": ""}, {"X_CSRF_Token": "0" * 64}, {"Sec_Fetch_Site": "cross-site"}]
)
async def test_a_page_of_another_site_cannot_upload(
    server: Server, alice: Browser, changed: dict[str, str]
) -> None:
    answer = await session_request(
        alice,
        "POST",
        "/.pages/uploads/",
        None,
        Upload_Length="1",
        Upload_Metadata=tus.metadata(target=f"{FOLDER}evil.txt"),
        **changed,
    )
    assert answer.status == 403
    assert answer.header("location") is None


@pytest.mark.feature("uploads")
async def test_a_refusal_tells_the_script_why(alice: Browser, server: Server) -> None:
    await server.alice.put(f"{FOLDER}a.txt", b"old", TEXT)
    answer = await begin(alice, f"{FOLDER}a.txt", 10, if_none_match="*")
    assert answer.status == 412
    assert answer.json()["message"]
