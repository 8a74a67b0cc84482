"""The npm packages of `assets/package-lock.json`, read for the checks of versions and licences."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.supply.lock_files import ROOT

FOLDER = ROOT / "assets"
# The name that a package gives to a licence, by its SPDX name.
_SPDX = {"BSD-0-Clause": "0BSD"}


@dataclass(frozen=True)
class NpmPackage:
    name: str
    version: str
    integrity: str
    licence: str
    is_shipped: bool
    """Whether the wheel has something of it. The others build or test."""


def read_npm_packages() -> list[NpmPackage]:
    entries = json.loads((FOLDER / "package-lock.json").read_bytes())["packages"]
    return [
        NpmPackage(
            location.rpartition("node_modules/")[2],
            entry["version"],
            entry.get("integrity", ""),
            _SPDX.get(entry["license"], entry["license"]),
            not entry.get("dev"),
        )
        for location, entry in entries.items()
        if location
    ]
