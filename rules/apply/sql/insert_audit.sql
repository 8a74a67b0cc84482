-- Insert the audit rows of changed documents, with their old and new content. Schedules have rows
-- of their own.
insert into tocsin.audit (at, who, via, verb, kind, name, old, new)
select %(at)s, %(who)s, %(via)s, item.verb, item.kind, item.name, item.old, item.new
from unnest(%(verbs)s::text[], %(kinds)s::text[], %(names)s::text[], %(old)s::jsonb[], %(new)s::jsonb[])
    with ordinality as item (verb, kind, name, old, new, position)
order by item.position
