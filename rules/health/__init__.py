"""Health of systems, from the series and alarms of their members.

Guarantee: the health at an instant follows from the conditions of the members after everything that
happened up to that instant (`systems`, pure). Live, it is decided once all partitions have been
read up to the instant (`decide`), and each change is one calculated datapoint. Code that changes a
series or an alarm of a member records an observation (`observations`) and needs no knowledge of
systems.

Entry points: the worker runs `decide`, an apply replaces the systems with `store`, and `tocsin
health` reads with `queries`.
"""
