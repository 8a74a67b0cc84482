"""Recordings: what a backtest reads, from the database or from a file."""
