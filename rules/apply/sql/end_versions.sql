-- The versions that this apply replaces hold up to its own event.
update tocsin.rule_version v
set until_seq = %(seq)s
from unnest(%(kinds)s::text[], %(names)s::text[]) as d (kind, name)
where v.kind = d.kind and v.name = d.name and v.until_seq is null
