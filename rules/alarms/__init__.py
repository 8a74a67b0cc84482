"""Alarms: held incidents, what people do to them, and what workers conclude about them.

Guarantees: at most one alarm of an (event_rule, owner) is pending or open, whatever races: a partial unique index
holds it. Every edge is an event of the record log, once. Acknowledgement and snooze are facts beside the state: a
person never resolves an alarm, the rule does.

Why acts and verdicts are apart: a worker's verdict is fenced by its partition and verified by version; a person's act
is a short transaction of its own that changes no state the engine reads.
"""
