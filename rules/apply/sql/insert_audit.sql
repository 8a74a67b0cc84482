-- Insert the audit rows of changed documents, with their old and new content. Schedules have rows
-- of their own.
select tocsin.write_audit(%(who)s::text, %(via)s::text, item.verb, item.kind, '', item.name, item.old, item.new)
from unnest(%(verbs)s::text[], %(kinds)s::text[], %(names)s::text[], %(old)s::jsonb[], %(new)s::jsonb[])
    with ordinality as item (verb, kind, name, old, new, position)
order by item.position
