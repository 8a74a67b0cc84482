"""Writes deploy/nats/permissions.conf: `python -m tocsin.nats_access`."""

from __future__ import annotations

from pathlib import Path

from tocsin.nats_access.example import NAMESPACE, example_roles, permissions_file

if __name__ == "__main__":
    path = Path(__file__).parents[2] / "deploy" / "nats" / "permissions.conf"
    path.write_text(permissions_file(NAMESPACE, example_roles()), encoding="utf-8")
