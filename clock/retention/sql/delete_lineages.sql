-- Delete lineages by their event. No other transaction changes them.
delete from tocsin.event_lineage where event_id = any (%(key_2)s::uuid[]) returning event_id
