"""Benchmarks: each measures Tocsin and a limit or a peer in the same run, and reports the ratio.

Absolute numbers mean little on a noisy machine; a ratio from one run means more. Every benchmark
prints one JSON object with at least `name`, `ours`, `limit` and `ratio` (`--json`), or a table.
"""
