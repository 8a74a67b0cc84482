-- Documents in force whose name has a text, among the first ones. Locks nothing. Index: rule_version_current.
select v.kind, v.name
from (
    select n.kind, n.name from tocsin.rule_version n where n.until_seq is null order by n.kind, n.name limit %(within)s
) v
where position(lower(%(part)s) in lower(v.name)) > 0
order by v.kind, v.name
limit %(most)s
