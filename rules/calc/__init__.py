"""Calculated series: `calc_rule` documents over the datapoints of other series.

Guarantee: the value at the end of a window is a function of the datapoints that arrived up to it,
of the documents in force, and of nothing else (`functions`, `rule` and `window`, all pure). Live,
a window is calculated once the watermarks of all partitions have passed its end (`evaluator`), by
one worker at a time, and its results and the position behind it commit together. Rule tests and
backtests call the same functions with the same vectors (`memory`).

A datapoint belongs to the windows of its arrival, as everything else does (docs/decisions/0012). A
result is a calculated datapoint. It travels through the record stream and the data stream like
health, so event_rules, systems and consumers see it as any other series.

On failure nothing was calculated, and any worker tries again.
"""
