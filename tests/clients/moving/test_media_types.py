"""The table of extensions, compared with the package from which other servers take theirs."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.node import COMMUNITY_SERVER, NODE, install_packages
from tests.support.server import DEADLINE_S

pytestmark = pytest.mark.feature("importers")


PRINTED = "console.log(JSON.stringify(require('mime-types').types))"
OLDER = {"js", "mjs", "wav", "aac", "sql"}
"""Types that have changed since the release that the Community Solid Server has; its reader knows
them."""


def test_types_are_those_of_the_package_that_other_servers_use() -> None:
    install_packages(COMMUNITY_SERVER)
    ran = subprocess.run(
        [NODE, "-e", PRINTED],
        cwd=COMMUNITY_SERVER,
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    theirs: dict[str, str] = json.loads(ran.stdout)
    folders = pytest.importorskip("podstead.features.importers.folders")
    ours = {extension: folders.type_by_extension(extension) for extension in theirs}
    known = {extension: media_type for extension, media_type in ours.items() if media_type}
    assert len(known) > 300
    wrong = {each: (known[each], theirs[each]) for each in known if known[each] != theirs[each]}
    assert wrong.keys() == OLDER
