"""The profile: what people type becomes statements that clients read, and nothing else changes."""

from __future__ import annotations

import pyoxigraph
import pytest

from tests.support.application import Server, Start
from tests.support.browser import Browser, Page
from tests.support.pod_pages import csrf_token_of, sign_in_to_account

PROFILE = "/.pages/profile"
ME = "http://localhost:3000/alice/#me"
FOAF = "http://xmlns.com/foaf/0.1/"
VCARD = "http://www.w3.org/2006/vcard/ns#"
SEE_ALSO = "http://www.w3.org/2000/01/rdf-schema#seeAlso"
PRIVATE = "/alice/profile/details.ttl"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


async def statements(server: Server, path: str = "/alice/") -> set[tuple[str, str]]:
    """What a document says about Alice, as pairs of predicate and object."""
    answer = await server.alice.get(path, accept="text/turtle")
    quads = pyoxigraph.parse(
        answer.body, format=pyoxigraph.RdfFormat.TURTLE, base_iri=f"http://localhost:3000{path}"
    )
    return {
        (quad.predicate.value, getattr(quad.object, "value", ""))
        for quad in quads
        if getattr(quad.subject, "value", "") == ME
    }


async def post_picture(browser: Browser, token: str, content: bytes, **fields: str) -> Page:
    body = b""
    for name, value in {"csrf_token": token, **fields}.items():
        body += f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    body += b'--x\r\nContent-Disposition: form-data; name="picture"; filename="me.png"\r\n\r\n'
    body += content + b"\r\n--x--\r\n"
    headers = {
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    return await browser.go("POST", f"{PROFILE}/picture", headers=headers, body=body)


async def test_the_form_writes_what_clients_read(server: Server, alice: Browser) -> None:
    before = await statements(server)
    page = await alice.get(PROFILE)
    page = await alice.send(
        page,
        PROFILE,
        name="Alice “A” Smith",
        note="Line one\r\nLine \\two\\",
        links="https://alice.example/\nalice.example/blog",
        public="yes",
    )
    assert page.status == 200
    assert "Your profile is saved." in page.text
    after = await statements(server)
    name, note = "Alice “A” Smith", "Line one\nLine \\two\\"
    assert after - before == {
        (FOAF + "name", name),
        (VCARD + "fn", name),
        (VCARD + "note", note),
        (FOAF + "homepage", "https://alice.example/"),
        (FOAF + "homepage", "https://alice.example/blog"),
    }
    assert before - after == {(FOAF + "name", "alice")}
    again = await alice.send(await alice.get(PROFILE), PROFILE, public="yes", note="", links="")
    assert "Your profile is saved." in again.text
    assert await statements(server) == before - {(FOAF + "name", "alice")} | {
        (FOAF + "name", name),
        (VCARD + "fn", name),
    }


async def test_details_that_are_not_public_are_in_a_document_of_their_own(
    server: Server, alice: Browser
) -> None:
    page = await alice.get(PROFILE)
    fields = {"name": "Alice Smith", "note": "Hello", "links": "https://alice.example/"}
    await alice.send(page, PROFILE, public="no", **fields)
    public = await statements(server)
    assert (FOAF + "name", "alice") in public
    assert (SEE_ALSO, f"http://localhost:3000{PRIVATE}") in public
    assert not {"Alice Smith", "Hello", "https://alice.example/"} & {value for _, value in public}
    assert (await server.bob.get(PRIVATE)).status == 403
    assert (await server.public.get(PRIVATE)).status == 401
    assert (VCARD + "fn", "Alice Smith") in await statements(server, PRIVATE)
    page = await alice.get(PROFILE)
    assert 'value="Alice Smith"' in page.text
    await alice.send(page, PROFILE, public="yes", **fields)
    public = await statements(server)
    assert {(FOAF + "name", "Alice Smith"), (VCARD + "note", "Hello")} <= public
    assert not any(predicate == SEE_ALSO for predicate, _ in public)
    assert not await statements(server, PRIVATE)


@pytest.mark.parametrize("public", ["yes", "no"])
async def test_a_picture_is_as_public_as_the_profile(
    server: Server, alice: Browser, public: str
) -> None:
    page = await alice.get(PROFILE)
    page = await alice.send(page, PROFILE, name="Alice", public=public)
    page = await post_picture(alice, csrf_token_of(page), PNG)
    assert "Your picture is saved." in page.text
    document = "/alice/" if public == "yes" else PRIVATE
    stated = dict(await statements(server, document))
    picture = stated[VCARD + "hasPhoto"]
    assert stated[FOAF + "img"] == picture
    path = picture.removeprefix("http://localhost:3000")
    assert f'src="/.pages/raw{path}"' in page.text
    assert (await server.bob.get(path)).status == (200 if public == "yes" else 403)
    # The other way round, the picture follows.
    other = {"yes": "no", "no": "yes"}[public]
    await alice.send(await alice.get(PROFILE), PROFILE, name="Alice", public=other)
    assert (await server.bob.get(path)).status == (200 if other == "yes" else 403)
    # Another picture replaces it, and removing leaves none.
    page = await post_picture(alice, csrf_token_of(page), PNG + b"1")
    assert (await server.alice.get(path)).status == 404
    page = await post_picture(alice, csrf_token_of(page), b"", remove="yes")
    assert "Your profile shows no picture any more." in page.text
    assert "/profile/picture-" not in page.text


@pytest.mark.parametrize("content", [b"", b"<svg onload='alert(1)'/>", b"%PDF-1.7"])
async def test_only_pictures_become_pictures(
    server: Server, alice: Browser, content: bytes
) -> None:
    before = await statements(server)
    page = await alice.get(PROFILE)
    page = await post_picture(alice, csrf_token_of(page), content)
    assert "Choose a picture" in page.text
    assert await statements(server) == before


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("name", " "),
        ("name", "x" * 201),
        ("note", "x" * 5001),
        ("links", "javascript://x/%0aalert(1)"),
        ("links", "https://a.example/<b>"),
        ("links", "\n".join(f"https://a.example/{number}" for number in range(21))),
    ],
)
async def test_a_wrong_field_is_marked_and_changes_nothing(
    server: Server, alice: Browser, field: str, typed: str
) -> None:
    before = await statements(server)
    page = await alice.send(await alice.get(PROFILE), PROFILE, **{"public": "yes", field: typed})
    assert page.status == 400
    assert f'id="{field}-error"' in page.text
    assert await statements(server) == before


async def test_what_others_saved_meanwhile_is_not_lost(server: Server, alice: Browser) -> None:
    first = await alice.get(PROFILE)
    await alice.send(await alice.get(PROFILE), PROFILE, name="From elsewhere", public="yes")
    page = await alice.send(first, PROFILE, name="Typed here", public="yes")
    assert page.status == 409
    assert "From elsewhere" in page.text
    assert 'value="Typed here"' in page.text
    assert (FOAF + "name", "From elsewhere") in await statements(server)
    await alice.send(page, PROFILE, public="yes")
    assert (FOAF + "name", "Typed here") in await statements(server)


async def test_only_the_person_can_change_the_profile(
    server: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    before = await statements(server)
    assert (await browser.get(PROFILE)).path == "/.pages/sign-in"
    for fields in ({}, {"csrf_token": "0" * 64}):
        page = await alice.post(PROFILE, {"name": "Mallory", "public": "yes", **fields})
        assert page.status == 403
    token = csrf_token_of(await bob.get(PROFILE))
    page = await alice.post(PROFILE, {"name": "Mallory", "public": "yes", "csrf_token": token})
    assert page.status == 403
    assert (await post_picture(alice, token, PNG)).status == 403
    assert await statements(server) == before


async def test_the_profile_of_an_account_keeps_naming_its_provider(start: Start) -> None:
    server = await start(idp=True)
    browser = await sign_in_to_account(server)
    before = await statements(server)
    page = await browser.send(await browser.get(PROFILE), PROFILE, name="Alice S", public="no")
    assert "Your profile is saved." in page.text
    issuer = [each for each in before if each[0].endswith("#oidcIssuer")]
    assert len(issuer) == 1
    assert set(issuer) <= await statements(server)
