-- New versions hold from the event of this apply on.
insert into tocsin.rule_version (kind, name, version, document, from_seq)
select d.kind, d.name, d.version, d.document, %(seq)s
from unnest(%(kinds)s::text[], %(names)s::text[], %(versions)s::integer[], %(documents)s::jsonb[])
    as d (kind, name, version, document)
