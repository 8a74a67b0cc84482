-- The versions of some kinds that hold for records after a seq, whole.
select kind, name, version, document, from_seq, until_seq
from tocsin.rule_version
where kind = any (%(kinds)s::text[]) and (until_seq is null or until_seq > %(after)s)
order by kind, name, version
