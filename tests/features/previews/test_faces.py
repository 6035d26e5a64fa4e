"""Photos of people beside their names: who sees which, and what is kept of what was uploaded."""

from __future__ import annotations

import io
import re
from urllib.parse import quote

import pytest
from PIL import Image

from tests.support.application import Server
from tests.support.asgi import Answer
from tests.support.browser import Browser
from tests.support.pod_pages import csrf_token_of, sign_in_by_token

BASE = "http://localhost:3000"
ALICE, BOB = f"{BASE}/alice/#me", f"{BASE}/bob/#me"
PROFILE = "/.pages/profile"
_HAS_PHOTO = "<http://www.w3.org/2006/vcard/ns#hasPhoto>"
_GPS = 0x8825
_ORIENTATION = 0x0112

pytestmark = pytest.mark.feature("previews")


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_by_token(server, server.alice)


@pytest.fixture
async def bob(server: Server) -> Browser:
    return await sign_in_by_token(server, server.bob)


def photo(color: str = "red") -> bytes:
    """A photo of a phone that was held on its side: red in the middle, blue at both ends."""
    picture = Image.new("RGB", (900, 300), "blue")
    picture.paste(color, (300, 0, 600, 300))
    exif = picture.getexif()
    exif[_ORIENTATION] = 6
    exif.get_ifd(_GPS).update({1: "N", 2: (52.0, 31.0, 12.0)})
    written = io.BytesIO()
    picture.save(written, "JPEG", exif=exif)
    return written.getvalue()


async def upload(browser: Browser, content: bytes, **fields: str) -> str:
    """The page after somebody has chosen a photo."""
    token = csrf_token_of(await browser.get(PROFILE))
    body = b""
    for name, value in {"csrf_token": token, **fields}.items():
        body += f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    body += b'--x\r\nContent-Disposition: form-data; name="picture"; filename="me.jpg"\r\n\r\n'
    body += content + b"\r\n--x--\r\n"
    headers = {
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    return (await browser.go("POST", f"{PROFILE}/picture", headers=headers, body=body)).text


async def face(browser: Browser, web_id: str, **headers: str) -> Answer:
    return await browser.ask("GET", f"/.pages/face?of={quote(web_id, safe='')}", headers=headers)


def is_photo(answer: Answer) -> bool:
    assert answer.status == 200
    assert answer.header("content-type") in {"image/webp", "image/svg+xml"}
    return answer.header("content-type") == "image/webp"


async def test_what_is_stored_is_a_square_that_says_nothing_else(
    server: Server, alice: Browser
) -> None:
    assert b"Exif" in photo()
    page = await upload(alice, photo())
    found = re.search(r'<img src="/\.pages/raw(/alice/profile/picture-[0-9a-f]+\.webp)"', page)
    assert found is not None, page
    stored = await server.public.get(found[1])
    assert stored.status == 200
    with Image.open(io.BytesIO(stored.body)) as kept:
        assert (kept.format, *kept.size) == ("WEBP", 300, 300)
        assert not kept.getexif()
        red, green, blue = kept.convert("RGB").resize((1, 1)).getpixel((0, 0))  # type: ignore[misc]
        assert red > 200
        assert max(green, blue) < 60


async def test_a_face_stands_beside_the_name_of_whoever_has_one(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await upload(bob, photo())
    ask = await bob.get("/.pages/ask/alice/private/")
    await bob.send(ask, "/.pages/ask/alice/private/", role="read")
    shown = await alice.get("/.pages/requests")
    address = f"/.pages/face?of={quote(BOB, safe='')}"
    assert f'data-initials="B" aria-hidden="true"><img src="{address}" alt=""' in shown.text
    answer = await alice.ask("GET", address)
    assert is_photo(answer)
    with Image.open(io.BytesIO(answer.body)) as small:
        assert small.size == (96, 96)
    assert len(answer.body) < 2_000
    tag = answer.header("etag")
    assert tag is not None
    assert (await face(alice, BOB, **{"If-None-Match": tag})).status == 304
    await upload(bob, photo("green"))
    assert (await face(alice, BOB, **{"If-None-Match": tag})).status == 200
    await upload(bob, b"", remove="yes")
    assert not is_photo(await face(alice, BOB))


async def test_a_private_face_is_shown_to_those_who_may_see_it(
    alice: Browser, bob: Browser
) -> None:
    await alice.send(await alice.get(PROFILE), PROFILE, name="Alice", public="no")
    await upload(alice, photo())
    assert is_photo(await face(alice, ALICE))
    assert not is_photo(await face(bob, ALICE))
    await alice.send(await alice.get(PROFILE), PROFILE, name="Alice", public="yes")
    assert is_photo(await face(bob, ALICE))


@pytest.mark.parametrize("named", ["/alice/private/x.png", "/bob/public/x.png"])
async def test_a_profile_cannot_show_what_its_reader_may_not_see_or_what_others_store(
    server: Server, alice: Browser, bob: Browser, named: str
) -> None:
    """Alice can read all that she stores, Bob cannot; nobody has the face of a picture that
    somebody else can change."""
    written = io.BytesIO()
    Image.new("RGB", (10, 10)).save(written, "PNG")
    owner = server.alice if named.startswith("/alice/") else server.bob
    assert (await owner.put(named, written.getvalue(), "image/png")).status == 201
    statement = f"<{ALICE}> {_HAS_PHOTO} <{BASE}{named}>."
    prefix = "@prefix s: <http://www.w3.org/ns/solid/terms#>."
    patch = f"{prefix} _:p a s:InsertDeletePatch; s:inserts {{ {statement} }}.".encode()
    headers = {"Content-Type": "text/n3"}
    answer = await server.alice.request("PATCH", "/alice/", body=patch, headers=headers)
    assert answer.status == 204, answer.text
    if owner is server.bob:
        assert (await server.alice.get(named)).status == 200
    assert is_photo(await face(alice, ALICE)) is (owner is server.alice)
    assert not is_photo(await face(bob, ALICE))


@pytest.mark.parametrize(
    "web_id", ["", "x", "https://elsewhere.example/#me", f"{BASE}/nobody/#me", f"{BASE}/#me", ALICE]
)
async def test_who_has_no_photo_has_a_transparent_one(
    server: Server, bob: Browser, web_id: str
) -> None:
    answer = await face(bob, web_id)
    assert not is_photo(answer)
    assert answer.body == b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    assert not is_photo(await face(Browser(server.application), web_id))
