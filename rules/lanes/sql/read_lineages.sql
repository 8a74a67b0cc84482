-- Which action_rules led to these events. Most have none, and no row. Locks nothing. Index: event_lineage's key.
select event_id, lineage from tocsin.event_lineage where event_id = any(%(ids)s::uuid[])
