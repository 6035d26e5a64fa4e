"""Write the generated pages of docs/, or with --check say which of them are out of date."""

import sys
from pathlib import Path

from podstead.cli.reference import commands_page
from podstead.config.reference import settings_page

REFERENCE = Path(__file__).resolve().parent.parent / "docs/reference"


def main() -> int:
    """Returns the exit code."""
    pages = {
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "commands.md": commands_page(),
    }
    if "--check" not in sys.argv[1:]:
        REFERENCE.mkdir(parents=True, exist_ok=True)
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [
        path
        for path, text in pages.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path.name} is out of date: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
