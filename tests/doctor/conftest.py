"""Fixtures of the command line."""

from tests.cli.conftest import alone, tocsin

__all__ = ["alone", "tocsin"]
