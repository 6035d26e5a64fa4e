"""What ``pip install podstead`` brings: everything that the server needs, and its command."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S, ServerProcess, running_server

PACKAGE = REPOSITORY / "src/podstead"


def run(*command: str, folder: Path = REPOSITORY) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(folder: Path, target: str, *, source: Path = REPOSITORY) -> Path:
    """Build a wheel or a source distribution."""
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), folder=source)
    [built] = [path for path in folder.iterdir() if path.is_file()]
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("source"), "sdist")


def content(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, without its list of them."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist() if "/RECORD" not in name}


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    """Templates, translations, migrations and static files as well."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "src/podstead")
    tracked = {name.removeprefix("src/") for name in listed.splitlines()}
    packed = {name for name in content(wheel) if ".dist-info/" not in name}
    assert packed == {name for name in tracked if (REPOSITORY / "src" / name).exists()}
    suffixes = {Path(name).suffix for name in packed}
    assert {".html", ".po", ".sql", ".css", ".js", ".py"} <= suffixes


def test_the_source_distribution_builds_the_same_wheel(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    with tarfile.open(source) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(tmp_path)
    [unpacked] = tmp_path.iterdir()
    again = build(tmp_path / "built", "wheel", source=unpacked)
    assert content(again) == content(wheel)
    assert (unpacked / "CHANGELOG.md").exists()


def test_every_library_that_is_imported_is_declared(wheel: Path) -> None:
    [metadata] = [
        data.decode() for name, data in content(wheel).items() if name.endswith("/METADATA")
    ]
    found = re.findall(r"^Requires-Dist: ([\w.-]+)", metadata, re.MULTILINE)
    declared = {_normal(name) for name in found}
    used = (
        {module.partition(".")[0] for path in PACKAGE.rglob("*.py") for module in _imports(path)}
        - set(sys.stdlib_module_names)
        - {"podstead", "__future__"}
    )
    distributions = packages_distributions()
    missing = {
        name for name in used if not {_normal(each) for each in distributions[name]} & declared
    }
    assert missing == set()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imports(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found.append(node.module)
    return found


def test_a_fresh_environment_with_the_wheel_starts_a_server(wheel: Path, tmp_path: Path) -> None:
    """With the pages and their translations."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    interpreter = environment / "bin/python"
    uv = Path(sys.executable).with_name("uv")
    run(
        *(str(uv), "pip", "install", "--quiet", "--no-deps", "--offline"),
        *("--python", str(interpreter), str(wheel)),
    )
    # The dependencies are those of the tests; the package itself is the installed one.
    [packages] = (environment / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    program = environment / "bin/podstead"
    where = run(str(interpreter), "-c", "import podstead; print(podstead.__file__)")
    assert where.startswith(str(environment))
    server = ServerProcess(
        tmp_path / "root", ("--idp",), (str(program), "start"), own_interpreter=True
    )
    with running_server(server):
        page = server.get("/", {"Accept": "text/html", "Accept-Language": "de"})
        assert page.status == 200
        assert 'lang="de"' in page.text
        [style, *_] = re.findall(r'href="(/[^"]+\.css[^"]*)"', page.text)
        assert server.get(style).status == 200
        assert server.get("/idp/register").status == 200
        assert server.get("/.well-known/solid").status == 200
    assert "Error" not in server.errors
