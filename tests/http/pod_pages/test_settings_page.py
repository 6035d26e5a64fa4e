"""Settings that operators change in the console while the server runs."""

from __future__ import annotations

import json

import pytest

from podstead.config import Settings, read_settings
from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.console import sign_in_operator
from tests.support.pod_pages import sign_in_to_account

SETTINGS = "/.pages/console/settings"
HEALTH = "/.pages/console/health"
NEW_ACCOUNT = {"name": "carol", "email": "carol@example.org", "password": "a few words in a row"}


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(idp=True, clock=clock)


@pytest.fixture
async def operator(server: Server, settings: Settings) -> Browser:
    return await sign_in_operator(server, settings)


async def change(browser: Browser, name: str, **typed: str) -> str:
    address = f"{SETTINGS}/{name}"
    page = await browser.send(await browser.get(address), address, **typed)
    return page.text


async def registered(server: Server, name: str) -> int:
    sent = json.dumps({**NEW_ACCOUNT, "name": name, "email": f"{name}@example.org"})
    headers = {"Content-Type": "application/json"}
    answer = await server.public.request("POST", "/.pods", headers=headers, body=sent.encode())
    return answer.status


async def test_registration_is_closed_and_opened_again(server: Server, operator: Browser) -> None:
    assert "The setting has been changed" in await change(operator, "registration", value="closed")
    assert await registered(server, "carol") == 403
    assert "createPod" not in (await server.public.get("/", accept="application/json")).text
    described = json.loads((await server.public.get("/.well-known/openid-configuration")).text)
    assert "create" not in described["prompt_values_supported"]
    await change(operator, "registration", value="open")
    assert await registered(server, "carol") == 201


async def test_whoever_changed_what_is_shown(operator: Browser, clock: FakeClock) -> None:
    await change(operator, "registration", value="invited")
    clock.advance(1)
    text = await change(operator, "registration", value="closed")
    assert "invited → closed" in text
    assert "open → invited" in text
    assert text.index("invited → closed") < text.index("open → invited")
    assert "alice" in text.partition("Who changed what")[2].partition("All settings")[0]
    assert "Setting changed" in (await operator.get("/.pages/console/log")).text
    text = await change(operator, "registration", change="default")
    assert "closed → open" in text


async def test_the_quota_applies_to_pods_without_their_own(
    server: Server, operator: Browser
) -> None:
    async def stored(size: int) -> int:
        return (await server.bob.put("/bob/a.bin", "x" * size, "text/plain")).status

    assert await stored(60_000) == 201
    await change(operator, "quota-bytes", value="20K")
    assert await stored(70_000) == 507
    assert "20.5" in (await operator.get("/.pages/console/accounts/bob")).text
    await change(operator, "quota-bytes", value="0")
    assert await stored(70_000) in (200, 204, 205)


async def test_the_operator_has_a_name_and_a_contact(server: Server, operator: Browser) -> None:
    await change(operator, "operator-name", value="<b>The club</b>")
    await change(operator, "operator-contact", value="help@club.example")
    page = await Browser(server.application).get("/")
    assert "&lt;b&gt;The club&lt;/b&gt;" in page.text
    assert "help@club.example" in page.text
    await change(operator, "operator-name", value="")
    assert "The club" not in (await Browser(server.application).get("/")).text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("registration", "sometimes"),
        ("quota-bytes", "-1"),
        ("quota-bytes", "much"),
        ("operator-contact", "javascript:alert(1)"),
        ("operator-name", "x" * 300),
        ("sharing-links-per-pod", "1001"),
        ("sharing-link-max-days", "x"),
    ],
)
async def test_what_cannot_be_is_refused(operator: Browser, name: str, value: str) -> None:
    page = await operator.get(f"{SETTINGS}/{name}")
    page = await operator.send(page, f"{SETTINGS}/{name}", value=value)
    assert page.status == 400
    assert 'href="/.pages/console/settings"' in page.text
    assert "Who changed what" not in (await operator.get(SETTINGS)).text


@pytest.mark.parametrize("name", ["port", "token-secret", "no-such-thing", "database"])
async def test_other_settings_have_no_page(operator: Browser, name: str) -> None:
    assert (await operator.get(f"{SETTINGS}/{name}")).status == 404


async def test_the_configuration_is_stronger(start: Start, settings: Settings) -> None:
    given = read_settings({"registration": "closed"}, {}, folder=settings.root)
    server = await start(idp=True, registration="open", set_by=given.set_by)
    operator = await sign_in_operator(server, settings)
    page = await operator.get(SETTINGS)
    assert "Set by --registration; change it there" in page.text
    assert (await operator.get(f"{SETTINGS}/registration")).status == 404


async def test_a_change_requires_a_recent_sign_in(
    server: Server, operator: Browser, clock: FakeClock
) -> None:
    page = await operator.get(f"{SETTINGS}/registration")
    clock.advance(11 * 60)
    page = await operator.send(page, f"{SETTINGS}/registration", value="closed")
    assert page.path == "/idp/login"
    assert await registered(server, "carol") == 201


async def test_nobody_else_changes_settings(server: Server) -> None:
    for browser in (Browser(server.application), await sign_in_to_account(server, "bob")):
        for path in (f"{SETTINGS}/registration", f"{SETTINGS}/mail", f"{SETTINGS}/mail/trial"):
            assert (await browser.post(path, {"value": "closed"})).status == 404
    assert await registered(server, "carol") == 201


async def test_forged_changes_are_refused(server: Server, operator: Browser) -> None:
    page = await operator.post(f"{SETTINGS}/registration", {"value": "closed"})
    assert page.status == 403
    assert await registered(server, "carol") == 201


async def test_limits_of_links_change(server: Server, operator: Browser) -> None:
    share = "/.pages/share/alice/public/"
    await change(operator, "sharing-link-max-days", value="7")
    assert "after 7 days at the latest" in (await operator.get(share)).text
    await change(operator, "sharing-links-per-pod", value="0")
    page = await operator.get(share)
    page = await operator.send(
        page, "/.pages/sharing-links/alice/public/", change="create", kind="view"
    )
    assert page.status == 409


async def test_versions_the_backup_and_the_certificate_are_shown(operator: Browser) -> None:
    text = (await operator.get(HEALTH)).text
    for shown in ("Podstead", "Python", "migration", "Last backup", "Certificate ends"):
        assert shown in text
