"""The process that does costly work on RDF: ``python -I -m …rdf_child <seconds> <MiB>``.

The arguments are the processor time of each task, and the memory for all of them.

It says that it is ready, and then answers one task after the other until its standard input ends.
Each task has a bounded time of the processor, and all of them a bounded amount of memory; the
process is killed at once when it exceeds them. It leaves the processors to whoever needs them more.
"""

import contextlib
import os
import pickle
import resource
import struct
import sys
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.adapters.guarded_child import limit_this_process
from podstead.core.errors import PodsteadError
from podstead.rdf.tasks import Failure, Task

READY: Final = b"ready"
LENGTH: Final = struct.Struct("!Q")
"""What precedes each message."""
_NICENESS: Final = 5


class Reply(msgspec.Struct, array_like=True):
    """The result of a task or its failure, and what it took."""

    result: bytes = b""
    failure: Failure | None = None
    processor_s: float = 0.0
    peak_bytes: int = 0
    """The most memory that the process has used so far."""


def _main() -> None:
    os.nice(_NICENESS)
    # Before the libraries are loaded, and together with them, so that no task can change it.
    processor_s, memory_mib = int(sys.argv[1]), int(sys.argv[2])
    limit_this_process(memory_mib=memory_mib)
    from podstead.app.adapters.bundled_contexts import bundled_contexts

    read, write = sys.stdin.buffer, sys.stdout.buffer
    write.write(READY)
    write.flush()
    while length := read.read(LENGTH.size):
        task: Task = pickle.loads(read.read(*LENGTH.unpack(length)))  # noqa: S301 - from the server
        began_s = _processor_s()
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(began_s) + processor_s + 1, hard))
        reply = Reply()
        try:
            reply.result = task.carry_out(bundled_contexts())
        except PodsteadError as error:
            reply.failure = Failure.of(error)
        del task
        reply.processor_s = _processor_s() - began_s
        reply.peak_bytes = _peak_bytes()
        encoded = msgspec.msgpack.encode(reply)
        write.write(LENGTH.pack(len(encoded)))
        write.write(encoded)
        write.flush()


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_bytes() -> int:
    """From /proc, where there is one: ``ru_maxrss`` begins with the peak of the process that
    started this one (getrusage(2))."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes


if __name__ == "__main__":
    _main()
