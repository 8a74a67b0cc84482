"""The licences of the locked packages, from the metadata of the installed ones and from npm's lock file.

Needs no network.

Guarantee: exit code 1 if a package has a licence that is neither allowed for every package nor named
for this one with a reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata

from tests.supply.lock_files import LOCK_FILES, read_pins
from tests.supply.npm_lock import read_npm_packages

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
}
# Weak copyleft: used unchanged, as separate packages that a user can replace.
NAMED = {
    "axe-core": "MPL-2.0",
    "certifi": "MPL-2.0",
    "hypothesis": "MPL-2.0",
    "pathspec": "MPL-2.0",
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "psycopg-pool": "LGPL-3.0-only",
}
# Older metadata has names instead of SPDX expressions.
_SPDX = {
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Packages whose metadata name no licence; the text of each was read.
_READ = {"promql-parser": "MIT"}
_LONGEST_NAME = 60


def find_licence(package: str) -> str:
    """The licence of an installed package as an SPDX expression, or as its metadata names it."""
    fields = metadata(package)
    if "License-Expression" in fields:
        return fields["License-Expression"]
    # Some packages have the whole text in this field.
    lines = "".join(fields.get_all("License") or ()).strip().splitlines()
    first_line = lines[0].strip() if lines else ""
    if first_line and len(first_line) <= _LONGEST_NAME:
        return _SPDX.get(first_line, first_line)
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in fields.get_all("Classifier") or ()
        if text.startswith("License ::")
    ]
    return " OR ".join(_SPDX.get(name, name) for name in classifiers) or _READ.get(package, "unknown")


def is_allowed(package: str, licence: str) -> bool:
    """Whether one alternative of the expression consists of allowed licences."""
    allowed = ALLOWED | {NAMED.get(package, "")}
    alternatives = re.sub(r"[()]", "", licence).split(" OR ")
    return any(all(name.strip() in allowed for name in one.split(" AND ")) for one in alternatives)


def find_refused() -> Iterator[str]:
    for pin in read_pins(LOCK_FILES[0]):
        marker = pin.requirement.marker
        if marker is not None and not marker.evaluate():
            continue
        try:
            licence = find_licence(pin.name)
        except PackageNotFoundError:
            yield f"{pin.name} is locked and not installed: run `make check` again"
            continue
        if not is_allowed(pin.name, licence):
            yield _refusal(pin.name, licence)
    for package in read_npm_packages():
        if not is_allowed(package.name, package.licence):
            yield _refusal(package.name, package.licence)


def _refusal(package: str, licence: str) -> str:
    return f"{package} has the licence '{licence}', which tests/supply/licences.py does not allow"


def main() -> int:
    refused = list(find_refused())
    sys.stdout.write("".join(f"{line}\n" for line in refused) or "licences: all allowed\n")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
