"""Writes deploy/postgres/roles.sql: `python -m migrations.roles`."""

from __future__ import annotations

from pathlib import Path

from migrations.roles.script import script

if __name__ == "__main__":
    path = Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql"
    path.write_text(script(), encoding="utf-8")
