"""What holds for every test: event loop, property tests, and absent system packages."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from podstead.features import features
from podstead.web.pages.texts import ENGLISH, texts_in, use_texts
from tests.support.engine_choice import CHOICE
from tests.support.features import LEFT_OUT, features_of
from tests.support.memory import MEMORY, has_room_in_memory
from tests.support.system_packages import is_installed, needed_by

# The assertions of the engine suite explain themselves like those of any test module.
pytest.register_assert_rewrite("tests.storage.engine_suite")

# Compiled modules are kept: the tests start hundreds of processes, each of which imports them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has its jobs in the background ignore SIGINT, and what the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files of tests are in memory where that is possible: a server waits for the disk at each commit.
# What is to be shown on a disk asks for `disk_path`. A TMPDIR that is set applies to all others.
if "TMPDIR" not in os.environ and has_room_in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# As in each process of the program, the engines know the tables of features from the start.
features()

# No test depends on time taken: the machine may be busy.
settings.register_profile(
    "podstead",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("podstead")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Asynchronous tests run on the event loop that the server runs on."""
    return "asyncio", {"use_uvloop": True}


def pytest_xdist_auto_num_workers() -> int:
    """More workers than processors: many tests wait for servers and browsers."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) + 2
    return (os.cpu_count() or 1) + 2


def pytest_collectstart() -> None:
    """While tests are collected, hardly anything is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays until the end: no collection of garbage looks at it again."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _in_english() -> None:
    """A page that an earlier test asked for in another language changes nothing here."""
    use_texts(texts_in(ENGLISH))


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A new folder on a disk, for tests of what is left after a process was killed."""
    with tempfile.TemporaryDirectory(prefix="podstead-", dir="/var/tmp") as folder:
        yield Path(folder)


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Honour ``@pytest.mark.embedded``."""
    CHOICE.choose(is_embedded=item.get_closest_marker("embedded") is not None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Honour ``@pytest.mark.feature("git")`` and ``@pytest.mark.needs("nginx")``; in CI no package
    may be missing."""
    for name in features_of(item):
        if name in LEFT_OUT:
            pytest.skip(f"is about the feature {name}, which is left out")
    for package in needed_by(item):
        if not is_installed(package):
            message = f"needs the Debian package {package} (scripts/install-packages)"
            if os.environ.get("CI") == "true":
                pytest.fail(message, pytrace=False)
            pytest.skip(message)
