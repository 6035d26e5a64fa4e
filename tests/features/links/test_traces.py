"""What a link leaves behind: events, the activity of a pod, exports, and a pod with a new name."""

from __future__ import annotations

import io
import zipfile

import pytest

from podstead.app.operator.administration import rename_pod
from podstead.config import Settings
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite import SqliteFacts
from tests.features.links.sharing_links import FOLDER, Owner, visit
from tests.support.application import Server
from tests.support.asgi_sockets import connected
from tests.support.browser import Browser
from tests.support.notification_sockets import heard, watching


@pytest.mark.feature("legacy_notifications")
async def test_nobody_is_told_the_secret(server: Server, owner: Owner) -> None:
    url = await owner.link(kind="add")
    secret = url.rpartition("/")[2]
    async with watching(server, FOLDER) as socket:
        visitor = await visit(server, url)
        await visitor.upload(("new.txt", b"new"))
        lines = await heard(server, socket)
    assert lines
    assert secret not in "".join(lines)
    [link] = await owner.ids()
    shown = [
        (await owner.browser.get("/.pages/activity")).text,
        (await owner.browser.get("/.pages/shared")).text,
        (await owner.browser.get(f"/.pages/files{FOLDER}")).text,
        (await owner.browser.get(f"/.pages/why{FOLDER}")).text,
    ]
    assert "new.txt" in shown[0]
    for text in shown:
        assert secret not in text
    archive = await owner.browser.ask("GET", f"/.pages/zip{FOLDER}")
    with zipfile.ZipFile(io.BytesIO(archive.body)) as files:
        for name in files.namelist():
            assert secret.encode() not in files.read(name)
    assert link


async def test_the_cookie_of_a_link_is_no_credential_elsewhere(
    server: Server, owner: Owner
) -> None:
    """Nor for a socket: there is nothing that an end would have to close."""
    visitor = await visit(server, await owner.link(kind="edit"))
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.browser.cookies.items())
    for path in (FOLDER, FOLDER + "a.txt"):
        assert (await server.public.request("GET", path, headers={"Cookie": cookie})).status == 401
        for page in ("files", "raw", "share", "events"):
            answer = await server.public.request(
                "GET", f"/.pages/{page}{path}", headers={"Cookie": cookie}
            )
            assert answer.status in (303, 401, 403, 404)
    forged = Browser(server.application, cookies=dict(visitor.browser.cookies))
    assert "a.txt" not in (await forged.get(f"/.pages/files{FOLDER}")).text
    headers = {"Authorization": f"Bearer {next(iter(visitor.browser.cookies.values()))}"}
    assert (await server.public.request("GET", FOLDER, headers=headers)).status == 401


@pytest.mark.feature("legacy_notifications")
async def test_a_socket_with_the_cookie_hears_nothing(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="edit"))
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.browser.cookies.items())
    async with connected(
        server.application, protocols=["solid-0.1"], headers={"Cookie": cookie}
    ) as socket:
        await socket.receive()
        await socket.send(f"sub http://localhost:3000{FOLDER}")
        assert (await socket.receive()).startswith("err")


async def test_links_follow_a_pod_with_a_new_name(
    server: Server, owner: Owner, settings: Settings
) -> None:
    url = await owner.link()
    visitor = await visit(server, url)
    SqliteFacts(RootLayout(settings.root).database).write_fact("base-url", settings.base_url)
    await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    assert "one" in (await visitor.get("a.txt")).text
    assert "a.txt" in (await visit(server, url)).page.text
