"""Checks the types of the scripts of the pages, which stand in JSDoc comments, with TypeScript.

Node.js and the npm packages are those of the tests (``tests/support/node.py``).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.node import NODE, TYPESCRIPT, install_packages


def main() -> int:
    """The exit code of the compiler, which names what is wrong."""
    install_packages(TYPESCRIPT)
    compiler = TYPESCRIPT / "node_modules/typescript/bin/tsc"
    command = [str(NODE), str(compiler), "--project", str(TYPESCRIPT / "tsconfig.json")]
    return subprocess.run(command, check=False, cwd=Path(__file__).parent.parent).returncode


if __name__ == "__main__":
    sys.exit(main())
