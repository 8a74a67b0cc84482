-- Insert the new versions: they are in force from the event of this apply on.
insert into tocsin.rule_version (kind, name, version, document, from_seq)
select item.kind, item.name, item.version, item.document, %(seq)s
from unnest(%(kinds)s::text[], %(names)s::text[], %(versions)s::integer[], %(documents)s::jsonb[])
    as item (kind, name, version, document)
