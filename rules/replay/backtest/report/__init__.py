"""The report of a backtest: the comparison of recorded and replayed alarms, as data and as HTML."""
