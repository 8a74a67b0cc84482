"""Results of a backtest: comparison, mismatches, notifications, and the HTML report."""
