"""The operator's commands in the process of a test: another one than the server's, all the same."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from click.testing import CliRunner, Result

from podstead.cli import main
from tests.support.engine import engine_environment


def invoke(root: Path, *arguments: str, typed: str | IO[bytes] = "", **environment: str) -> Result:
    """``podstead … --root …``, with what is typed into it."""
    runner = CliRunner(env={**engine_environment(root), **environment})
    return runner.invoke(main, [*arguments, "--root", str(root)], input=typed)
