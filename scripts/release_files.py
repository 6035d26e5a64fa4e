"""What a release consists of: wheel, source distribution, SBOM, changes, and checksums.

The SBOM (CycloneDX 1.6) lists the pinned packages of requirements/run.txt, with the hashes by which
they are installed, so it is true of an installation with these pins.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]*?))?(?: \\)?$")
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
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.absolute())]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
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


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name.lower().replace('_', '-')}@{pin.version}"


if __name__ == "__main__":
    for path in release(Path(sys.argv[1])):
        print(path)
