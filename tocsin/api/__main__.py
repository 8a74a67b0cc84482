"""Writes docs/openapi.json: `python -m tocsin.api`."""

from __future__ import annotations

import json
from pathlib import Path

from tocsin.api.app import create_api

if __name__ == "__main__":
    path = Path(__file__).parents[2] / "docs" / "openapi.json"
    path.write_text(json.dumps(create_api().openapi(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
