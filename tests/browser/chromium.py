"""The Chromium of the tests: found, or installed where that is possible.

`make test` runs this module first: `python -m tests.browser.chromium`. It takes, in this order: the program
that `TOCSIN_TEST_CHROMIUM` names, one on the path, the one that Playwright has downloaded, Debian's package
(as root, with apt-get), a download by Playwright.

Without any, the tests in a browser are skipped, and one line says so. With `CI` in the environment they
fail instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "there is no Chromium, so nothing was tested in a browser: install 'chromium', "
    "or name its program in TOCSIN_TEST_CHROMIUM"
)
OPTIONS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--font-render-hinting=none"),
)
_INSTALL_WITHIN_S = 600


def find_chromium() -> str | None:
    """The program of a Chromium on this machine."""
    named = os.environ.get("TOCSIN_TEST_CHROMIUM")
    if named:
        return named
    return next((found for name in NAMES if (found := shutil.which(name))), None) or _downloaded()


def _downloaded() -> str | None:
    with sync_playwright() as playwright:
        program = playwright.chromium.executable_path
    return program if Path(program).is_file() else None


def install_chromium() -> str | None:
    """Install one by what this machine has; returns its program."""
    for install in (_install_by_apt, _install_by_playwright):
        if install() and (found := find_chromium()):
            return found
    return None


def _install_by_apt() -> bool:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    options = ("--yes", "--no-install-recommends", "-o=DPkg::Lock::Timeout=120")
    return _succeeds("apt-get", "--quiet", "update") and _succeeds(
        "apt-get", "--quiet", "install", *options, "chromium", "fonts-dejavu-core"
    )


def _install_by_playwright() -> bool:
    return _succeeds(sys.executable, "-m", "playwright", "install", "--only-shell", "chromium")


def _succeeds(*words: str) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, check=False, timeout=_INSTALL_WITHIN_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def main() -> int:
    if find_chromium() is None and install_chromium() is None:
        sys.stderr.write(f"BROWSER TESTS {'FAIL' if os.environ.get('CI') else 'ARE SKIPPED'}: {MISSING}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
