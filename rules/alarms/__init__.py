"""Alarms: what workers decide about them, and what operators do to them.

Guarantees: at most one alarm of an (event_rule, owner, instance) is pending or open: a partial unique
index enforces it. Every transition is one event of the record log. Acknowledgement and snooze are stored
next to the state: an operator never resolves an alarm, the rule does.

Why the work of operators is separate: a worker commits under the fence of its partition and
compares versions. The command of an operator is a short transaction that changes no state that the
engine reads.

Entry points: the lanes call `over_series` and `over_events`, commands of operators use `operator`,
`queries`, `series_queries` and `explain`.
"""
