"""What a process does that works on what strangers send: it limits itself, before it loads the
libraries for that, and carries out its task (``guarded_processes.py``)."""

import json
import resource
import sys
from collections.abc import Callable, Mapping


def limit_this_process(*, memory_mib: int, processor_s: int | None = None) -> None:
    """Set limits that this process cannot raise again. It may then write no file."""
    limits = {
        resource.RLIMIT_AS: memory_mib * 1024 * 1024,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
    }
    if processor_s is not None:
        limits[resource.RLIMIT_CPU] = processor_s
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))


def carry_out_task(work: Callable[[str, Mapping[str, str], bytes], bytes]) -> None:
    """Call ``work`` with the task, the arguments and the content, and write what it returns. If it
    raises, the exit status of the process tells that there is no result."""
    task, memory_mib, processor_s = sys.argv[1:]
    limit_this_process(memory_mib=int(memory_mib), processor_s=int(processor_s))
    arguments: Mapping[str, str] = json.loads(sys.stdin.buffer.readline())
    sys.stdout.buffer.write(work(task, arguments, sys.stdin.buffer.read()))
    sys.stdout.buffer.flush()
