"""The backtest: replays a recording through the live engine.

Guarantee I5 (docs/guarantees.md): with the rule versions of the time, the replay gives the alarms,
the staleness and the health that were recorded: the same ids, instants and texts. Staleness and
sustains are derived from the arrivals. Events, those of schedules and operators included, are read
as they were recorded. Nothing is sent, and nothing is written except the report.

Owners are independent of each other, so the work is divided by owner. Memory holds the states of
one owner at a time and the results: alarms, changes of staleness and events that start actions,
never datapoints.

Entry points: `tocsin backtest` opens a `recording`, runs `parallel.backtest` and writes a `report`.
`tocsin export` writes a recording to a file.
"""
