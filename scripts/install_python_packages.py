"""Runs ``pip install`` with the arguments given, and says what it installs while it does.

Exits as pip does; if that fails, prints all that it said.
"""

from __future__ import annotations

import re
import subprocess
import sys

_PIP = (
    "-m",
    "pip",
    "install",
    "--disable-pip-version-check",
    "--no-input",
    "--progress-bar",
    "off",
)
_FETCHING = re.compile(r"Collecting ([A-Za-z0-9._-]+)==([^\s;]+)")


def main(arguments: list[str]) -> int:
    """The exit code of pip."""
    command = [sys.executable, *_PIP, "--no-warn-script-location", *arguments]
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        for line in pip.stdout or ():
            said.append(line)
            if fetching := _FETCHING.match(line):
                _say(f"  {fetching[1]} {fetching[2]}")
            elif line.startswith("Installing collected packages"):
                _say("  Unpacking …")
    if pip.returncode:
        sys.stderr.writelines(said)
    return pip.returncode


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
