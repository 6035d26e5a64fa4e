"""What a release consists of: wheel, source distribution, SBOM, changes, and checksums.

The SBOM (CycloneDX 1.6) lists the pinned packages of requirements/run.txt, with the hashes by which
they are installed, so it is true of an installation with these pins.

``REPOSITORY_URL`` in the environment is the address of the repository on the web. The metadata of
the package name it, and the links of its README lead there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]*?))?(?: \\)?$")
_LINKED_PICTURE = re.compile(r"\[!\[[^\]]*\]\([^)\s]+\)\]\([^)\s]+\)\n*")
_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)\s]+\)")
_RELATIVE_PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!https?:)")
_RELATIVE_TARGET = re.compile(r"\]\((?!https?:|#)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned package."""

    name: str
    version: str
    marker: str
    """The environments for which it is pinned; empty for all."""
    hashes: tuple[str, ...]


def pins(text: str) -> Iterator[Pin]:
    """The packages of a requirements file."""
    current: tuple[str, str, str] | None = None
    hashes: list[str] = []
    for line in [*text.splitlines(), ""]:
        start = _PIN.match(line)
        if start is not None or not line.strip():
            if current is not None:
                yield Pin(*current, tuple(hashes))
            current, hashes = None, []
        if start is not None:
            current = start[1], start[2], (start[3] or "").strip()
        hashes += _HASH.findall(line)


def sbom(version: str, packages: list[Pin]) -> dict[str, object]:
    """The bill of materials of an installation with these packages."""
    components = [
        {
            "type": "library",
            "bom-ref": _purl(pin),
            "name": pin.name,
            "version": pin.version,
            "purl": _purl(pin),
            "hashes": [{"alg": "SHA-256", "content": each} for each in pin.hashes],
            **(
                {"properties": [{"name": "python:marker", "value": pin.marker}]}
                if pin.marker
                else {}
            ),
        }
        for pin in packages
    ]
    own = f"pkg:pypi/podstead@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "podstead",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [_purl(pin) for pin in packages]}],
    }


def changes_of(changelog: str, version: str) -> str:
    """The section of a version, or that of what is not released yet."""
    for title in (version, "Unreleased"):
        found = re.search(
            rf"^## \[?{re.escape(title)}\]?[^\n]*\n(.*?)(?=^## |\Z)",
            changelog,
            re.MULTILINE | re.DOTALL,
        )
        if found is not None:
            return found[1].strip() + "\n"
    raise SystemExit(f"CHANGELOG.md has no section for {version}.")


def release(folder: Path) -> list[Path]:
    """Build everything into the folder. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty.")
    with TemporaryDirectory() as scratch:
        source = _unpacked_source(Path(scratch))
        _link_to_repository(source, os.environ.get("REPOSITORY_URL", "").rstrip("/"))
        _build(source, folder.absolute())
    [wheel] = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    packages = list(pins((ROOT / "requirements/run.txt").read_text(encoding="utf-8")))
    bill = folder / f"podstead-{version}.cdx.json"
    bill.write_text(json.dumps(sbom(version, packages), indent=1) + "\n", encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    changes = folder / f"podstead-{version}.changes.md"
    changes.write_text(changes_of(changelog, version), encoding="utf-8")
    files = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(lines), encoding="ascii")
    return [*files, sums]


def readme_for_packages(text: str, repository_url: str, revision: str) -> str:
    """The README with links that lead into the repository from anywhere; without an address of the
    repository, with the texts of such links alone, and without pictures."""
    if not repository_url:
        return _RELATIVE_LINK.sub(r"\1", _LINKED_PICTURE.sub("", text))
    text = _RELATIVE_PICTURE.sub(rf"\1{repository_url}/raw/{revision}/", text)
    return _RELATIVE_TARGET.sub(rf"]({repository_url}/blob/{revision}/", text)


def _unpacked_source(scratch: Path) -> Path:
    """A source tree as the source distribution has it."""
    _build(ROOT, scratch, "--target", "sdist")
    [packed] = scratch.iterdir()
    shutil.unpack_archive(packed, scratch)
    source = scratch / packed.name.removesuffix(".tar.gz")
    (source / "PKG-INFO").unlink()
    return source


def _link_to_repository(source: Path, url: str) -> None:
    """Give the package the address of its repository on the web, if there is one."""
    project = source / "pyproject.toml"
    page = source / "README.md"
    revision = f"v{source.name.rpartition('-')[2]}"
    text = readme_for_packages(page.read_text(encoding="utf-8"), url, revision)
    page.write_text(text, encoding="utf-8")
    if url:
        urls = {
            "Repository": url,
            "Documentation": f"{url}/blob/{revision}/docs/README.md",
            "Changelog": f"{url}/blob/{revision}/CHANGELOG.md",
            "Issues": f"{url}/issues",
        }
        lines = [f'{name} = "{address}"\n' for name, address in urls.items()]
        with project.open("a", encoding="utf-8") as file:
            file.writelines(["\n[project.urls]\n", *lines])


def _build(source: Path, folder: Path, *options: str) -> None:
    build = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name.lower().replace('_', '-')}@{pin.version}"


if __name__ == "__main__":
    for path in release(Path(sys.argv[1])):
        print(path)
