"""Benchmarks: each measures us beside a limit or a peer in the same run, and reports the ratio.

Absolute figures mean little on a noisy machine; a ratio taken in one run means more. Every benchmark prints one
JSON object with at least `name`, `ours`, `limit` and `ratio` (`--json`), or a table.
"""
