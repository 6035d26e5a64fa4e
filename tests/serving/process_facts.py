"""What a process finds at its start, as JSON; what it does then is its first argument.

exit       nothing more
message    end with a message as the exit code
signal     end by a signal that it sends to itself
wait       wait for a signal
"""

from __future__ import annotations

import atexit
import json
import os
import random
import secrets
import signal
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path


def main() -> None:
    facts = {
        "arguments": sys.argv,
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "search path": sys.path,
        "flags": str(sys.flags),
        "module": sys.modules["__main__"].__spec__.name,  # type: ignore[union-attr]
        "descriptors": {path.name: _kind(path) for path in _descriptors()},
        "streams": [str(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "leads a session": os.getsid(0) == os.getpid() == os.getpgid(0),
        "signals": {str(each): str(signal.getsignal(each)) for each in signal.valid_signals()},
        "masks": _signal_masks(),
        "umask": os.umask(0o022),
        "threads": threading.active_count(),
        "time zone": time.tzname,
        "temporary folder": tempfile.gettempdir(),
        "random": [random.random(), secrets.token_hex()],
    }
    atexit.register(print, "at exit")
    print(json.dumps(facts), flush=True)  # noqa: T201
    match sys.argv[1]:
        case "message":
            sys.exit("a message")
        case "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        case "wait":
            while True:  # a SIGINT that comes just before a wait is noticed only after it
                time.sleep(1)


def _descriptors() -> list[Path]:
    return [path for path in Path("/proc/self/fd").iterdir() if path.exists()]


def _kind(descriptor: Path) -> str:
    return str(stat.S_IFMT(descriptor.stat().st_mode))


def _signal_masks() -> list[str]:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return [line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]


if __name__ == "__main__":
    main()
