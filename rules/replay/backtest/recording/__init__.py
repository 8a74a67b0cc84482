"""Recordings, the input of a backtest: in the database, or exported to a file."""
