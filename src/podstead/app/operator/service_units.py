"""The units with which systemd runs the server and its backups, filled in for one installation.

The files are written and nothing is started: what has to be done next is printed, for the operator
to read first. The unit for the whole system gives the server no more than it needs; a person's own
service manager cannot take much away, so its unit is short.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from podstead.config import Settings, StartRefused
from podstead.features import client_certificate_setting, features

UNITS: Final = Path("/etc/systemd/system")
ACCOUNTS: Final = Path("/etc/sysusers.d")
KEEP: Final = "7d,4w,6m"
_TEMPLATES: Final = Path(__file__).parent / "units"
_FIRST_UNPRIVILEGED_PORT: Final = 1024
_HOMES: Final = (Path("/home"), Path("/root"), Path("/run/user"))


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """One file to install: where, from which template."""

    path: Path
    template: str


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What a service needs to know."""

    settings: Settings
    config: Path
    is_system: bool
    backups: Path | None = None
    """Where backups go, if there is to be a timer for them."""


def user_units() -> Path:
    """Where the current user's service manager looks for units."""
    return Path.home() / ".config/systemd/user"


def files(*, is_system: bool, with_backups: bool, into: Path | None = None) -> list[ServiceFile]:
    """The files of a service; all in the folder ``into``, if it is given."""
    if is_system:
        units, accounts = into or UNITS, into or ACCOUNTS
        found = [
            ServiceFile(accounts / "podstead.conf", "podstead.sysusers"),
            ServiceFile(units / "podstead.service", "podstead.service"),
        ]
        backup = "podstead-backup.service"
    else:
        units = into or user_units()
        found = [ServiceFile(units / "podstead.service", "user.service")]
        backup = "user-backup.service"
    if with_backups:
        found.append(ServiceFile(units / "podstead-backup.service", backup))
        found.append(ServiceFile(units / "podstead-backup.timer", "podstead-backup.timer"))
    return found


def write_units(plan: ServicePlan, *, into: Path | None = None) -> list[Path]:
    """Write the files of a service, over earlier ones. Returns their paths. Raises StartRefused if
    one cannot be written."""
    values = _values(plan)
    written: list[Path] = []
    with_backups = plan.backups is not None
    for file in files(is_system=plan.is_system, with_backups=with_backups, into=into):
        text = (_TEMPLATES / file.template).read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        try:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _cannot("write", file.path, error) from error
        written.append(file.path)
    return written


def remove_units(*, is_system: bool, into: Path | None = None) -> list[Path]:
    """Remove what was installed. Returns the paths of what was there."""
    removed: list[Path] = []
    for file in files(is_system=is_system, with_backups=True, into=into):
        try:
            file.path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _cannot("remove", file.path, error) from error
        removed.append(file.path)
    return removed


def next_steps(plan: ServicePlan) -> list[str]:
    """The commands that start what was installed."""
    steps: list[str] = []
    manager = "systemctl" if plan.is_system else "systemctl --user"
    if plan.is_system:
        steps.append("systemd-sysusers")
        folders = [plan.settings.root, *([plan.backups] if plan.backups else [])]
        steps += [f"install -d -o podstead -g podstead -m 700 {_word(each)}" for each in folders]
    steps.append(f"{manager} daemon-reload")
    steps.append(f"{manager} enable --now podstead.service")
    if plan.backups is not None:
        steps.append(f"{manager} enable --now podstead-backup.timer")
    if not plan.is_system:
        steps.append("loginctl enable-linger    # so that it runs while you are not signed in")
    return steps


def _values(plan: ServicePlan) -> dict[str, str]:
    settings = plan.settings
    ports = [settings.port, *([settings.sockets_port] if settings.sockets_port else [])]
    ports += [port for feature in features() for port in feature.ports(settings)]
    is_privileged = any(0 < port < _FIRST_UNPRIVILEGED_PORT for port in ports)
    paths = [settings.root, plan.config, *([plan.backups] if plan.backups else [])]
    in_homes = any(path.is_relative_to(home) for path in paths for home in _HOMES)
    return {
        "program": _program(),
        "config": _word(plan.config),
        "root": _word(settings.root),
        "backups": _word(plan.backups or ""),
        "keep": KEEP,
        "capabilities": "CAP_NET_BIND_SERVICE" if is_privileged else "",
        # The listener for client certificates creates callbacks in memory that can be executed.
        "executable": "" if client_certificate_setting(settings) else "MemoryDenyWriteExecute=yes",
        "home": "no" if in_homes else "yes",
    }


def _program() -> str:
    beside = Path(sys.executable).with_name("podstead")
    found = str(beside) if beside.exists() else shutil.which("podstead")
    if found is not None:
        return _word(found)
    return f"{_word(sys.executable)} -m podstead.cli"


def _word(text: Path | str) -> str:
    """One word of a unit (systemd.syntax(7), systemd.unit(5) on specifiers)."""
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if any(each in escaped for each in " \t'\"\\") else escaped


def _cannot(act: str, path: Path, error: OSError) -> StartRefused:
    return StartRefused(
        f"Cannot {act} {path}: {error.strerror}. Run the command as root, or with --user for a "
        "service of your own."
    )
