-- The action_rules that led to these events. Runs before the append, in the same transaction. The
-- event of a sustain is written later, and the lineage of the input that armed it last counts.
insert into tocsin.event_lineage (event_id, lineage)
select d.event_id, array(select jsonb_array_elements_text(d.lineage))
from unnest(%(ids)s::uuid[], %(lineages)s::jsonb[]) as d (event_id, lineage)
on conflict (event_id) do update set lineage = excluded.lineage
