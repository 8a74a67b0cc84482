"""`tocsin run` without its servers."""

from __future__ import annotations

from tests.cli.conftest import CommandLine


def test_run_refuses_to_start_without_its_servers(alone: CommandLine) -> None:
    assert alone("run", "cdc", exit_code=2).err.startswith("tocsin: TOCSIN_POSTGRES is not set: ")
    assert "'clock', 'cdc', 'worker'" in alone("run", "api", exit_code=2).err
