"""Renders content in a process of its own: ``python -I -m podstead.previews.rendering <task>``.

The process reads a line of JSON with the arguments and then the content from standard input, and
writes the result to standard output. It may use a few seconds of processor time and a bounded
amount of memory, may write no file, and is killed by its parent process when it takes too long.
Exit status 0 means a result; every other status means that there is none.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

Content = bytes | Callable[[], Awaitable[bytes]]
"""The content to render, or a function that reads it once a process is free."""


class ContentRenderer(Protocol):
    """Runs one task in a process of its own."""

    async def render(
        self, task: str, arguments: Mapping[str, str], content: Content, *, requester: str
    ) -> bytes | None:
        """The result; ``None`` if there is none, for whatever reason.

        The rendering counts against the share of ``requester``. Large content is passed as a
        function, so that it takes no memory while it waits for a process. Raises Overloaded if too
        many renderings are waiting, and what reading the content raises.
        """


MEMORY_BYTES: Final = 1024 * 1024 * 1024
PROCESSOR_S: Final = 5
TASKS: Final = ("markdown", "highlight", "thumbnail")


def _limit_itself() -> None:
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, PROCESSOR_S),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def _main() -> int:
    """Carry out the task that the command line names."""
    _limit_itself()
    task = sys.argv[1]
    arguments = json.loads(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read()
    sys.stdout.buffer.write(_carried_out(task, arguments, content))
    sys.stdout.buffer.flush()
    return 0


def _carried_out(task: str, arguments: dict[str, str], content: bytes) -> bytes:
    # Each task loads its own libraries and no others.
    if task == "thumbnail":
        from podstead.previews.pictures import thumbnail  # noqa: PLC0415

        return thumbnail(content)
    text = content.decode()
    if task == "markdown":
        from podstead.previews.markdown import markdown  # noqa: PLC0415

        return markdown(text, **arguments).encode()
    from podstead.previews.source import highlight  # noqa: PLC0415

    return highlight(text, **arguments).encode()


if __name__ == "__main__":
    sys.exit(_main())
