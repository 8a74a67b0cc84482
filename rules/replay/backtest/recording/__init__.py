"""Recordings, the input of a backtest: read from the database, or written to and read from a file."""
