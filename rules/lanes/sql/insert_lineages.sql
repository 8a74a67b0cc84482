-- The action_rules that led to these events. Runs before the append, in the same transaction.
insert into tocsin.event_lineage (event_id, lineage)
select d.event_id, array(select jsonb_array_elements_text(d.lineage))
from unnest(%(ids)s::uuid[], %(lineages)s::jsonb[]) as d (event_id, lineage)
on conflict do nothing
