"""Write the generated pages of docs/, or with --check say which of them are out of date.

Run it as ``python -m scripts.generate_docs`` at the root of the repository.
"""

import re
import sys
from collections.abc import Iterator
from inspect import getdoc
from pathlib import Path

from podstead.web.errors import STATUSES
from scripts.reference_pages import commands_page, metrics_page, settings_page
from scripts.requirements_page import requirements_page
from tests.support.features import LEFT_OUT

DOCS = Path(__file__).resolve().parent.parent / "docs"


ERRORS_INTRODUCTION = """\
# Errors

<!-- Written by `make docs` from src/podstead/web/errors.py and core/errors.py. -->

The body of a refusal is `{"error": …, "message": …}`: the reason phrase below, and a sentence for
people. If the `Accept` header prefers HTML, the body is a page instead. A 429 also has
`retryAfter`, in seconds. A 507 for an exhausted quota also has `usedBytes`, `limitBytes` and, if it
is known, `neededBytes`.

| status | error | when |
| --- | --- | --- |
"""


def errors_page() -> str:
    """The page ``docs/build/errors.md``."""
    return ERRORS_INTRODUCTION + "".join(_error_rows())


def _error_rows() -> Iterator[str]:
    for error, (status, reason) in sorted(STATUSES.items(), key=lambda entry: entry[1]):
        first_paragraph = (getdoc(error) or "").partition("\n\n")[0].replace("\n", " ")
        # What is noted for readers of the code: requirement IDs, and names of parameters.
        text = re.sub(r" \([A-Z]-[0-9]+[^)]*\)|; ``[^.]*", "", first_paragraph)
        yield f"| {status} | {reason} | {text.replace('``', '`')} |\n"


def main() -> int:
    """Returns the exit code."""
    pages = {
        DOCS / "operate/settings.md": settings_page(),
        DOCS / "operate/commands.md": commands_page(),
        DOCS / "build/errors.md": errors_page(),
        DOCS / "operate/metrics.md": metrics_page(),
        DOCS / "evidence/requirements.md": requirements_page(),
    }
    if "--check" not in sys.argv[1:]:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return 0
    if LEFT_OUT:
        print(f"Pages that are about all features are not checked: no {', '.join(LEFT_OUT)}")
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
