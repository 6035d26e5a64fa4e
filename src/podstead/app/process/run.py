"""Starts the server: everything that can refuse the start comes before the first worker.

There is a worker for each core by default. The kernel knows three limits: the cores that exist, the
affinity of the process (taskset, cpusets), and the processor time that a control group may take,
which is how containers and systemd's CPUQuota limit a service. The standard library knows only the
first two.
"""

import dataclasses
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from podstead.app.adapters.engine import share_rows
from podstead.app.adapters.root import former_base_urls, prepared_root
from podstead.app.process import certificate, logs, worker
from podstead.app.process.admin import opened_admin
from podstead.app.process.listening import closing_all, inherited_listener, open_listeners
from podstead.app.process.preload import preload
from podstead.app.process.serve import ExitReason, serve
from podstead.config import Settings
from podstead.features import features, only_offer

MAX_CORES = 64
"""The largest number of workers that the setting accepts."""


def usable_cores(system: Path = Path("/")) -> int:
    """The number of cores, at least 1; a limit of one and a half cores is one.

    ``system`` is the folder in which ``proc`` and ``sys`` are mounted.
    """
    return max(1, min(_cores_by_affinity(), MAX_CORES, *_limits(system)))


def _cores_by_affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits(system: Path) -> Iterator[int]:
    """The limits of the control groups that the process is in, in whole cores."""
    for line in _read(system / "proc/self/cgroup").splitlines():
        _hierarchy, controllers, group = line.split(":", 2)
        if "cpu" in controllers.split(","):  # version 1
            mount = system / "sys/fs/cgroup/cpu"
        elif not controllers:  # version 2
            mount = system / "sys/fs/cgroup"
        else:
            continue
        # The limit of each group above applies as well. Inside a container, the group may be named
        # as the host knows it; what is mounted then is the container's own group.
        below = mount / group.lstrip("/")
        for folder in (below, *below.parents):
            if folder.is_relative_to(mount):
                yield from _limit_of(folder)


def _limit_of(group: Path) -> Iterator[int]:
    quotas = _read(group / "cpu.max").split() or [
        *_read(group / "cpu.cfs_quota_us").split(),
        *_read(group / "cpu.cfs_period_us").split(),
    ]
    with suppress(ValueError):  # no limit: "max" in version 2, no file in the group at the top
        quota_us, period_us = map(int, quotas)
        if quota_us > 0:  # in version 1, -1 is no limit
            yield quota_us // period_us


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def run_server(
    settings: Settings,
    *,
    factory: worker.Factory,
    on_ready: Callable[[Settings], None],
    accept_loss: bool = False,
) -> ExitReason:
    """Run the server until it is stopped.

    ``factory`` makes the application of each worker; ``on_ready`` is called when all answer. Both
    get the settings with the port that was really opened and the number of workers.

    Raises StartRefused or RootUnusable, before anything is served, and StorageError.
    """
    logs.configure_logging(settings)
    workers = settings.workers or usable_cores()
    settings = dataclasses.replace(settings, workers=workers)
    source = only_offer(each if each.has_certificate(settings) else None for each in features())
    keys = None if source else certificate.prepare_keys(settings)
    for feature in features():
        feature.check_machine(settings)
    keep_certificate = None
    with ExitStack() as held:
        inherited = inherited_listener()
        listening = open_listeners(settings, workers, inherited)
        held.enter_context(closing_all(listening.all))
        settings = listening.noted_in(settings)
        admin = held.enter_context(opened_admin(settings))
        address = None if admin is None else admin.address
        settings = dataclasses.replace(settings, admin_listen=address)
        held.enter_context(prepared_root(settings, accept_loss=accept_loss))
        former = former_base_urls(settings)
        settings = dataclasses.replace(settings, former_base_urls=former)
        if source is not None:
            own = source.certificate(settings)
            own.ensure()  # before anything is served
            settings = dataclasses.replace(settings, ssl_cert=own.file, ssl_key=own.file)
            keys = certificate.prepare_keys(settings)
            keep_certificate = own.keep
        preload(settings)
        share_rows(settings)
        return serve(
            settings,
            listening,
            keys,
            factory=factory,
            on_ready=partial(on_ready, settings),
            admin=admin,
            keep_certificate=keep_certificate,
            others_serve=inherited is not None or settings.database is not None,
        )
