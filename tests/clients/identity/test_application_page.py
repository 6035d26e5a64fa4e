"""The examples of the page for people who write applications work as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.applications.sites import bundled
from tests.clients.identity.field_notes import sign_in_at_provider
from tests.support.node import CLIENTS, NODE, install_packages
from tests.support.people import Account, Person
from tests.support.processes import REPOSITORY
from tests.support.websites import running_website

PAGE = (REPOSITORY / "docs/build/write-an-application.md").read_text(encoding="utf-8")
DEADLINE_S = 120


def example(language: str) -> str:
    """The only block of the page in a language."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(block)


def run(person: Person, *command: str | Path) -> str:
    """Run a command with the variables that the page names, as a machine of the person has them."""
    account = person.account
    named = dict(line.split("=", 1) for line in example("ini").splitlines())
    assert named == {"ISSUER": "http://localhost:3000", "POD": "http://localhost:3000/carol/"}
    client_id, secret = person.make_credential()
    environment = {
        "ISSUER": account.provider.base_url,
        "POD": account.pod_url,
        "CLIENT_ID": client_id,
        "CLIENT_SECRET": secret,
    }
    ended = subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def stored(person: Person, name: str) -> str:
    """What the owner finds in the pod; the public finds nothing."""
    path = f"/{person.account.name}/private/{name}"
    assert person.account.provider.get(path).status == 401
    with person.account.owner() as owner:
        return str(owner.get(path).text)


def test_the_script_for_node_works(person: Person, tmp_path: Path) -> None:
    install_packages(CLIENTS)
    (tmp_path / "node_modules").symlink_to(CLIENTS / "node_modules")
    (tmp_path / "notes.mjs").write_text(example("mjs"))
    said = run(person, NODE, tmp_path / "notes.mjs")
    assert person.account.web_id in said
    assert "Written by Node" in said
    assert "Written by Node" in stored(person, "from-node.ttl")


def test_the_script_in_python_works(person: Person, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(example("python"))
    assert "Written by Python" in run(person, sys.executable, tmp_path / "notes.py")
    assert "Written by Python" in stored(person, "from-python.ttl")


def test_the_commands_with_curl_work(person: Person) -> None:
    said = run(person, "bash", "-euo", "pipefail", "-c", example("sh"))
    assert "Buy oat milk" in said
    assert "Buy milk" not in said
    assert "private/todo.ttl" in said or "<todo.ttl>" in said
    with person.account.owner() as owner:
        assert owner.get(f"/{person.account.name}/private/todo.ttl").status == 404


@pytest.mark.needs("chromium")
def test_the_application_for_browsers_works(
    person: Person, chromium: Browser, tmp_path: Path
) -> None:
    """And somebody who reloads it is still signed in."""
    install_packages(CLIENTS)
    (tmp_path / "node_modules").symlink_to(CLIENTS / "node_modules")
    (tmp_path / "notes.js").write_text(example("js"))
    account: Account = person.account
    url = f"{account.pod_url}private/note.ttl"
    with running_website() as website:
        website.publish("/", example("html").encode(), "text/html")
        website.publish("/notes.js", bundled(tmp_path / "notes.js"), "text/javascript")
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{website.origin}/")
        page.get_by_label("Provider").fill(account.provider.base_url)
        page.get_by_role("button", name="Sign in").click()
        sign_in_at_provider(page, account)
        expect(page.locator("#who")).to_have_text(account.web_id)
        for text in ("first words", "other words"):
            page.get_by_label("Document").fill(url)
            page.get_by_label("Note").fill(text)
            page.get_by_role("button", name="Save").click()
            expect(page.locator("#saved")).to_have_text(f"Saved: {text}")
            page.reload()
            expect(page.locator("#who")).to_have_text(account.web_id)
        context.close()
    assert "other words" in stored(person, urlsplit(url).path.rpartition("/")[2])
