-- The newest entries of the audit first; optionally of one name.
select id, at, who, claimed, via, verb, kind, owner, name, old, new
from tocsin.audit
where %(name)s::text is null or name = %(name)s
order by id desc
limit %(limit)s
