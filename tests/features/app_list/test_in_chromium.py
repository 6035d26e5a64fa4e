"""The suggested applications in a real browser, on a phone and on a desk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser_fixtures import axe, chromium
from tests.support.browser_people import Window, sign_in, violations
from tests.support.people import create_account
from tests.support.server import ServerProcess, running_server

pytestmark = pytest.mark.needs("chromium")

__all__ = ["axe", "chromium"]

LIST = """
[[app]]
name = "Field Notes"
url = "https://notes.example/"
description = "Notes with pictures, kept in your pod"
webid-parameter = "webid"

[[app]]
name = "Boards"
url = "https://boards.of-a-very-long-name-that-has-to-be-broken-somewhere.apps.example/"
description = "Plans for small groups"
"""


def test_the_page_about_applications_is_accessible(
    chromium: Browser, axe: str, tmp_path: Path
) -> None:
    file = tmp_path / "apps.toml"
    file.write_text(LIST)
    server = ServerProcess(tmp_path / "root", ["--idp", "--workers", "1", "--apps", str(file)])
    with running_server(server), Window().new_context(chromium) as context:
        page = context.new_page()
        sign_in(page, server, create_account(server))
        page.goto(f"{server.base_url}/.pages/apps")
        expect(page.get_by_role("link", name="Open: Field Notes")).to_be_visible()
        assert violations(page, axe) == {}
