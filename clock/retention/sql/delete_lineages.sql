-- Lineages by their event. Nobody changes one.
delete from tocsin.event_lineage where event_id = any (%(key_2)s::uuid[]) returning event_id
