"""Renders content in a process of its own, ``python -I -m podstead.features.previews.rendering``.

The process gets the name of its task, reads a line of JSON with the arguments and then the content
from standard input, and writes the result to standard output. It may use a few seconds of processor
time and a bounded amount of memory, may write no file, and is killed by its parent process when it
takes too long. Exit status 0 means a result; every other status means that there is none.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Final

Content = bytes | Callable[[], Awaitable[bytes]]
"""The content to render, or a function that reads it once a process is free."""


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
        from podstead.features.previews.pictures import thumbnail

        return thumbnail(content)
    text = content.decode()
    if task == "markdown":
        from podstead.features.previews.markdown import markdown

        return markdown(text, **arguments).encode()
    from podstead.features.previews.source import highlight

    return highlight(text, **arguments).encode()


if __name__ == "__main__":
    sys.exit(_main())
