-- The action_rules that led to these events. Most events have none, and no row. No lock. Index: the
-- key of event_lineage.
select event_id, lineage from tocsin.event_lineage where event_id = any(%(ids)s::uuid[])
