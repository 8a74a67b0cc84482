"""Data directories: used before, or short and accessible to other accounts."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.embedded import embedded_postgres


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("made")
    with embedded_postgres(data_dir, durable=False):
        pass
    return data_dir / "postgres"


@pytest.fixture
def warm_path(tmp_path: Path, made_cluster: Path) -> Path:
    """A data directory that Postgres has used: a copy takes a tenth of a first start."""
    data_dir = tmp_path / "warm"
    shutil.copytree(made_cluster, data_dir / "postgres")
    return data_dir


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory open to all accounts and short enough for a socket, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path
