"""Alarms: what workers decide about them, and what operators do to them.

Guarantees: at most one alarm of an (event_rule, owner, instance) is pending or open: a partial unique
index enforces it. Every transition is one event of the record log. Acknowledgement and snooze are stored
next to the state. An alarm that an operator resolves opens again only at the next transition of its
rule.

Why the work of operators is separate: a worker commits under the fence of its partition and
compares versions. An acknowledgement or a snooze is a short transaction that changes no state that
the engine reads. `resolve` changes it, and therefore locks the partition like an apply.

Entry points: the lanes call `over_series` and `over_events`, commands of operators use `operator`,
`queries`, `series_queries` and `explain`.
"""
