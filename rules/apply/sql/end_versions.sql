-- End the versions that this apply replaces: they are in force up to its own event.
update tocsin.rule_version v
set until_seq = %(seq)s
from unnest(%(kinds)s::text[], %(names)s::text[]) as item (kind, name)
where v.kind = item.kind and v.name = item.name and v.until_seq is null
