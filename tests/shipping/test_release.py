"""A release is complete, and says truly what it consists of."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from scripts.release_files import Pin, changes_of, pins, release
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

REPOSITORY_URL = "https://code.example/podstead"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release without an address of the repository."""
    return _released(tmp_path_factory.mktemp("release"), "")


def _released(folder: Path, url: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPOSITORY_URL", url)
        release(folder)
    return folder


def test_a_release_has_all_its_files_and_their_checksums(released: Path) -> None:
    suffixes = {".whl", ".gz", ".json", ".md", ""}
    assert {path.suffix for path in released.iterdir()} == suffixes
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=released,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": OK") == len(list(released.iterdir())) - 1


def test_the_bill_of_materials_lists_every_pinned_package_with_its_hashes(released: Path) -> None:
    """CycloneDX 1.6."""
    [path] = released.glob("*.cdx.json")
    bill = json.loads(path.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    pinned = (REPOSITORY / "requirements/run.txt").read_text()
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", pinned, re.MULTILINE)
    components = bill["components"]
    assert [(each["name"], each["version"]) for each in components] == found
    hashes = [each["content"] for component in components for each in component["hashes"]]
    assert hashes == re.findall(r"sha256:([0-9a-f]{64})", pinned)
    references = [each["bom-ref"] for each in components]
    assert len(set(references)) == len(references)
    assert bill["dependencies"][0]["dependsOn"] == references


def test_the_links_of_the_package_work_outside_of_the_repository(tmp_path: Path) -> None:
    """Nobody who reads the README elsewhere meets a link that leads nowhere."""
    fields = _metadata(_released(tmp_path, REPOSITORY_URL))
    begin = f"{REPOSITORY_URL}/blob/v{fields['Version']}/"
    pictures = begin.replace("/blob/", "/raw/")
    targets = [
        each.removeprefix(begin).removeprefix(pictures)
        for each in _links(fields)
        if each.startswith(REPOSITORY_URL)
    ]
    assert len(targets) > 20
    assert all((REPOSITORY / each.partition("#")[0]).exists() for each in targets)
    addresses = [each.partition(", ")[2] for each in fields.get_all("Project-URL", [])]
    assert all(each.startswith(REPOSITORY_URL) for each in addresses)
    assert len(addresses) == 4


def test_without_an_address_of_the_repository_no_link_leads_there(released: Path) -> None:
    fields = _metadata(released)
    assert _links(fields)
    assert fields.get_all("Project-URL", []) == []


def _metadata(folder: Path) -> Message:
    [wheel] = folder.glob("*.whl")
    [metadata] = [path for path in zipfile.Path(wheel).iterdir() if path.name.endswith("info")]
    return message_from_string((metadata / "METADATA").read_text(encoding="utf-8"))


def _links(fields: Message) -> list[str]:
    """The addresses to which the README leads; none is relative."""
    links = re.findall(r"\]\(([^)\s]+)\)", str(fields.get_payload()))
    assert [each for each in links if not each.startswith(("https://", "#"))] == []
    return links


def test_pins_have_markers() -> None:
    text = "a==1 ; python_version < '3.14' \\\n    --hash=sha256:" + "0" * 64 + "\nb==2\n"
    assert list(pins(text)) == [
        Pin("a", "1", "python_version < '3.14'", ("0" * 64,)),
        Pin("b", "2", "", ()),
    ]


def test_the_changes_are_those_of_the_version() -> None:
    text = "# Changes\n\n## Unreleased\n\n- new\n\n## 0.2.0 (2026)\n\n- two\n\n## 0.1.0\n\n- one\n"
    assert changes_of(text, "0.2.0") == "- two\n"
    assert changes_of(text, "0.1.0") == "- one\n"
    assert changes_of(text, "0.3.0") == "- new\n"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with pytest.raises(SystemExit, match="is not empty"):
        release(tmp_path)
