"""The backtest: the live engine over recorded time.

Guarantee (I5): replayed with the rule versions of the time, a recording gives the alarms and the staleness that were
recorded: the same ids, instants and texts. Gaps and sustains are derived again from arrivals; events, scheduled ones
and people's acts among them, are read as they were recorded. Nothing is sent, and nothing is written but the report.

Owners are independent of each other, so work is divided by owner, and memory holds the states of one owner at a time
and what was found: alarms, gaps and what starts actions, never datapoints.
"""
