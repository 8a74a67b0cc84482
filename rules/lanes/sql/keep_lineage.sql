-- Which action_rules led to these events; before their append in the same transaction, or never.
insert into tocsin.event_lineage (event_id, lineage)
select d.event_id, array(select jsonb_array_elements_text(d.lineage))
from unnest(%(ids)s::uuid[], %(lineages)s::jsonb[]) as d (event_id, lineage)
on conflict do nothing
