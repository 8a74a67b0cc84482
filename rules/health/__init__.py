"""Health of systems: from the series and alarms of their members to ok, degraded, outage or unknown.

Guarantee: `tocsin.append` rolls up, under the log's lock, in the transaction of whatever changed a member: a verdict
of the clock or a worker, an alarm's edge, an apply. So health is never older than the records beside it, each change
of it is one calculated datapoint, and no writer has to think of it. `rollup` says the same in Python.
"""
