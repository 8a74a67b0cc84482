"""The command line of tests/cli, here too."""

from tests.cli.conftest import alone, tocsin

__all__ = ["alone", "tocsin"]
