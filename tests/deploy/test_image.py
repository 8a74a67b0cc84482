"""The image: the build gets what the wheel is made of, and its user may write nothing."""

from __future__ import annotations

import tomllib

from tests.paths import ROOT

FILE = (ROOT / "deploy" / "image" / "Containerfile").read_text()
FINAL = FILE.rpartition("\nFROM ")[2]


def test_the_build_gets_the_packages_of_the_wheel_and_nothing_that_is_not_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    lines = (ROOT / ".containerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    others = {"pyproject.toml", "README.md", "LICENSE", "requirements", "hatch_build.py", "assets"}
    assert sent == {*packages, *others}


def test_the_base_can_be_pinned_and_stands_once() -> None:
    froms = [line for line in FILE.splitlines() if line.startswith("FROM ")]
    assert froms == ["FROM ${BASE} AS build", "FROM build AS sbom", "FROM ${BASE}"]


def test_the_image_installs_locked_files_only_and_no_embedded_servers() -> None:
    installs = [part for part in FILE.replace("\\\n", " ").split("&&") if "pip install" in part]
    assert len(installs) == 3
    assert all("--no-deps" in part for part in installs)
    assert all("--require-hashes" in part or "--no-build-isolation ." in part for part in installs)
    assert "embedded.txt" not in FILE


def test_the_final_stage_runs_as_a_user_without_rights() -> None:
    assert "USER 10001:10001" in FINAL
    assert "RUN " not in FINAL
    assert 'tocsin.sbom="/usr/share/doc/tocsin/tocsin.cdx.json"' in FINAL
