"""Health of systems: from the series and alarms of their members to ok, degraded, outage or unknown.

Guarantee: health at an instant is what the members are in after everything that happened up to then (`systems`, pure);
live it is said when that is decided in all partitions (`deciding`), and each change of it is one calculated datapoint.
Whoever concludes something about a member notes a fact (`facts`) and need not think of systems.
"""
